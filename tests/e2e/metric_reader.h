// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <absl/time/time.h>

#include <condition_variable>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "tests/cluster/control_plane.h"
#include "tests/cluster/pki.h"

namespace outrigger::tests {

// A way to a metrics API, and as whom.
struct MetricDoor {
  std::string url;         // without a path
  std::string connect_to;  // "address:port" that is dialled instead of the URL's; "": the URL's
  std::string ca_file;
  KeyFiles identity;  // empty: no client certificate
  std::vector<std::string> headers;
};
// Through kube-apiserver and its aggregation layer, as the cluster's admin.
MetricDoor ThroughTheApiService(const ControlPlane& plane);
// One replica past the APIService, as kube-apiserver's front proxy.
MetricDoor DirectlyAt(const ControlPlane& plane, const std::string& address, uint16_t port);

// Of the metric of a ScaledObject, as the HPA controller asks for it.
std::string MetricPath(const std::string& namespace_name, const std::string& metric,
                       const std::string& scaled_object);

struct MetricAnswer {
  absl::Time asked;
  absl::Time came;
  long code = 0;     // of HTTP; 0: there was no answer
  std::string text;  // the body, or why there was no answer

  bool ok() const { return code == 200; }
  // "23" of a list with one value; else what came.
  std::string Value() const;
};
std::string Print(const std::vector<MetricAnswer>& answers);  // the first ten

// One read on a connection of its own. It ends within 15 s.
MetricAnswer ReadMetric(const MetricDoor& door, const std::string& path);

// Reads one metric all the time, from several threads: some keep their connection, some dial for
// each read. Stops with its destruction.
class MetricReaders {
 public:
  struct Options {
    int keeping = 3;
    int dialling = 2;
    absl::Duration pause = absl::Milliseconds(10);  // of a thread between two reads
  };
  MetricReaders(MetricDoor door, std::string path, Options options);
  MetricReaders(MetricDoor door, std::string path)
      : MetricReaders(std::move(door), std::move(path), Options()) {}

  size_t count() const;
  std::vector<MetricAnswer> Answers() const;
  // Those that were asked for at `since` or later and were not answered with 200.
  std::vector<MetricAnswer> Failures(absl::Time since = absl::InfinitePast()) const;
  // Fails the test when no `more` reads are answered, well or not, within 20 s.
  void WaitForMore(size_t more) const;
  // The reads that are under way end first.
  void Stop();

 private:
  void Read(const std::stop_token& stop, bool keep);

  const MetricDoor door_;
  const std::string path_;
  const Options options_;
  mutable std::mutex mutex_;
  std::condition_variable_any pause_;
  std::vector<MetricAnswer> answers_;  // guarded by mutex_
  std::vector<std::jthread> threads_;
};

}  // namespace outrigger::tests

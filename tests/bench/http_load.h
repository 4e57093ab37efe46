// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <absl/status/statusor.h>
#include <absl/time/time.h>

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "tests/bench/percentile.h"
#include "tests/cluster/control_plane.h"

namespace outrigger::bench {

struct HttpRequest {
  std::string path;    // with its query
  std::string body;    // "": a GET; else a POST of JSON
  std::string accept;  // "": JSON
};

// What came of many requests.
struct LoadResult {
  double seconds = 0;
  std::map<int64_t, int64_t> codes;  // HTTP code, 0 when there was no answer; how often
  std::vector<double> latencies_ms;  // ascending
  std::string first_failure;         // of a code above 299: what it said

  double Percentile(double percent) const { return bench::Percentile(latencies_ms, percent); }
  double Rate() const;  // requests per second
};

// The API server's client of the benchmarks, as the cluster's admin (whom flow control exempts):
// kubectl needs a process per request and would be measured instead of the server.
//
// `connections` of HTTP/1.1, kept alive; each has one request under way. One thread. A request ends
// within 30 s.
class HttpLoad {
 public:
  HttpLoad(const tests::ControlPlane& plane, int connections);
  ~HttpLoad();

  // One request; its body, or UNAVAILABLE with code and text.
  absl::StatusOr<std::string> Ask(const HttpRequest& request);
  // Each request once.
  LoadResult Send(const std::vector<HttpRequest>& requests);
  // The requests in turn, again and again, as fast as the answers come.
  LoadResult Repeat(const std::vector<HttpRequest>& requests, absl::Duration time);

 private:
  struct Connection;
  class Run;

  const std::string url_;
  std::vector<std::unique_ptr<Connection>> connections_;
};

}  // namespace outrigger::bench

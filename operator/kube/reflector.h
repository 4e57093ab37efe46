// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <absl/status/status.h>
#include <absl/time/time.h>

#include <boost/json/value.hpp>
#include <cstdint>
#include <stop_token>
#include <string>

#include "host/base/clock.h"
#include "host/base/event.h"
#include "host/base/logging.h"
#include "host/base/random.h"
#include "operator/api/namespaced_name.h"
#include "operator/kube/api.h"

namespace outrigger::controller::kube {

// Who an object of the API server is and which version of it this is; empty members where it does
// not say.
struct ObjectIdentity {
  api::NamespacedName key;
  std::string uid;
  std::string resource_version;
};
ObjectIdentity IdentityOf(const boost::json::value& object);

// Keeps a Sink equal to one kind of object of the API server: lists all in pages, watches from that
// version, resumes a watch from the last version that it saw, and lists again when that version is
// too old.
//
// Used by Informer. All on the caller's strand: Run(), Stop() and the calls of the sink. Api and
// sink must outlive Run(). Nothing ends it but Stop(): errors are logged and tried again after 0.8
// s doubling to 30 s with jitter, or after the server's Retry-After, and the first watch that works
// resets that.
// Source: requirements.md R21; design.md section 5, "Kubernetes client".
class Reflector {
 public:
  struct Options {
    Resource resource;
    std::string namespace_name;  // "" = all
    std::string label_selector;
    std::string field_selector;
    bool metadata_only = false;
    int page_size = 500;
    absl::Duration page_timeout = absl::Seconds(30);
    // A watch is ended and resumed after a random time between these, so that after a restart of
    // the server the watches do not all return at once.
    absl::Duration shortest_watch = absl::Minutes(5);
    absl::Duration longest_watch = absl::Minutes(10);
    absl::Duration first_backoff = absl::Milliseconds(800);
    absl::Duration longest_backoff = absl::Seconds(30);
    // Told of each event of a watch, bookmarks left out: from its arrival until the sink has taken
    // it. May be empty.
    std::function<void(absl::Duration took)> on_event_taken = {};
  };

  class Sink {
   public:
    virtual ~Sink() = default;
    virtual void OnListBegin() = 0;
    // Of a list or a watch: new, changed, or as it was.
    virtual void OnObject(const boost::json::value& object) = 0;
    virtual void OnDeleted(const boost::json::value& last_state) = 0;
    // What is known and did not come since OnListBegin() is gone. Not called for a list that broke
    // off.
    virtual void OnListEnd() = 0;
  };

  struct Counts {
    int64_t lists = 0;  // complete ones
    int64_t watches = 0;
    int64_t events = 0;
    int64_t errors = 0;  // of lists and watches
  };

  Reflector(host::Clock& clock, Api& api, host::Random random, const host::Logger& log,
            Options options, Sink& sink);

  // Once. Ends soon after Stop(); the sink is not called after it.
  host::Task<void> Run();
  void Stop();

  const Counts& counts() const { return counts_; }
  // Of the last list or watch: why there is no news. OK while all is well.
  const absl::Status& last_error() const { return last_error_; }
  const Options& options() const { return options_; }

 private:
  host::Task<absl::Status> ListAll();
  host::Task<absl::Status> WatchOnce();
  void OnEvent(const WatchEvent& event);
  void Judge(const absl::Status& status);
  host::Task<void> BackOff(absl::Status status);
  bool stopped() const { return stop_.stop_requested(); }

  host::Clock& clock_;
  Api& api_;
  host::Random random_;
  const host::Logger log_;
  const Options options_;
  Sink& sink_;

  std::stop_source stop_;
  host::Event wake_;
  std::string version_;        // to watch from; "": list first
  absl::Duration backoff_;     // of the next failure
  bool watch_worked_ = false;  // the last one delivered something, or lasted
  Counts counts_;
  absl::Status last_error_;
};

}  // namespace outrigger::controller::kube

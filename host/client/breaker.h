// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <absl/time/time.h>

#include "host/base/clock.h"

namespace outrigger::host {

// Decides when a connected plugin is so silent that asking it only holds callers up.
//
// Five calls in a row that ended at their deadline with no answer of any kind ask for one health
// Check; only if that is not answered either does the breaker open. So a plugin whose *sources* are
// black holes, and that therefore is as slow as they are, stays in use. While open the owner probes
// (a Check after 1 s, then 2, 4, … 10 s) until one is answered.
//
// Pure: the owner makes the Checks. Use from one strand. Source: design.md section 5, bulkheads.
class Breaker {
 public:
  struct Options {
    int silent_calls = 5;
    absl::Duration first_probe = absl::Seconds(1);
    absl::Duration longest_probe = absl::Seconds(10);
  };
  explicit Breaker(const Clock& clock) : Breaker(clock, Options()) {}
  Breaker(const Clock& clock, Options options) : clock_(clock), options_(options) {}

  // The plugin said something, an error included.
  void OnAnswer();
  // A call ended at its deadline with nothing. True: make one Check and report it by OnCheck().
  [[nodiscard]] bool OnSilence();
  // True: the breaker has just opened; probe until one is answered.
  [[nodiscard]] bool OnCheck(bool answered);
  // False: still open. Has the next delay grow.
  bool OnProbe(bool answered);
  // A new connection starts anew.
  void Reset();

  bool open() const { return open_; }
  // Wall time of the end of the first silent call of the row; meaningless while none was silent.
  absl::Time silent_since() const { return silent_since_; }
  // How long to wait before the next probe.
  absl::Duration probe_delay() const { return probe_delay_; }

 private:
  const Clock& clock_;
  const Options options_;
  int silent_ = 0;
  bool checking_ = false;
  bool open_ = false;
  absl::Time silent_since_;
  absl::Duration probe_delay_ = options_.first_probe;
};

}  // namespace outrigger::host

// SPDX-License-Identifier: Apache-2.0
#include "host/client/breaker.h"

#include <algorithm>

namespace outrigger::host {

void Breaker::OnAnswer() {
  // An open breaker is closed by a probe only, so that late answers do not make it flap.
  if (!open_) silent_ = 0;
}

bool Breaker::OnSilence() {
  if (silent_++ == 0) silent_since_ = clock_.WallNow();
  if (open_ || checking_ || silent_ < options_.silent_calls) return false;
  checking_ = true;
  return true;
}

bool Breaker::OnCheck(bool answered) {
  if (!checking_) return false;  // Reset() meanwhile: the check was of another connection
  checking_ = false;
  if (answered) silent_ = 0;
  // A call that was answered during the Check has set the count back.
  open_ = !answered && silent_ >= options_.silent_calls;
  return open_;
}

bool Breaker::OnProbe(bool answered) {
  if (answered) {
    Reset();
    return true;
  }
  probe_delay_ = std::min(probe_delay_ * 2, options_.longest_probe);
  return false;
}

void Breaker::Reset() {
  silent_ = 0;
  checking_ = open_ = false;
  probe_delay_ = options_.first_probe;
}

}  // namespace outrigger::host

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <absl/status/status.h>

#include "host/base/clock.h"
#include "operator/ctl/command_line.h"

namespace outrigger::controller::ctl {

// `outriggerctl local`, from its start to its end: Ctrl-C, --exit-after-idle or --timeout. Runs on
// the calling thread, which must outlive it (child processes end with the thread that started
// them). A second Ctrl-C kills what is asked to end and leaves the program, with exit code 130. An
// error may have several lines, one for each thing that is wrong; if it is about files,
// flags or a port that is in use, nothing was started.
absl::Status RunLocal(host::Clock& clock, const LocalFlags& flags);

}  // namespace outrigger::controller::ctl

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "host/base/clock.h"
#include "operator/local/local_state.h"

namespace outrigger::controller::ctl {

// Where `outriggerctl local` shows what happens. One strand. A terminal that takes nothing (Ctrl-S)
// holds up the whole run: it is one person's own.
class Screen {
 public:
  virtual ~Screen() = default;
  // A step, with its time in front; of several lines none.
  virtual void AddStep(const std::string& line) = 0;
  virtual void Show(const local::LocalState& state) = 0;
  // Shows all of it anew: the terminal has another size now, or something else has written there.
  virtual void Redraw() {}
  // Gives the terminal back for as long as we are stopped (Ctrl-Z), and takes it again.
  virtual void Suspend() {}
  virtual void Resume() {}
};

// The first line of what is shown.
struct Title {
  std::string text;  // "outriggerctl local, gRPC port 127.0.0.1:40123"
};

// On a terminal that can move its cursor and is large enough: a table that is redrawn in place when
// it changes (RenderTable()), on the terminal's other screen, so that it comes back as it was; the
// steps are printed there at the end. The destructor gives it back. Else one line per step.
std::unique_ptr<Screen> MakeScreen(host::Clock& clock, Title title);

// Whether stdout is such a terminal.
bool CanShowTable();

}  // namespace outrigger::controller::ctl

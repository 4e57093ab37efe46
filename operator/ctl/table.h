// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "operator/local/local_state.h"

namespace outrigger::controller::ctl {

struct TableSize {
  int width = 80;
  int height = 24;
};

// What a terminal shows of an embedded run: `title`; a row per ScaledObject (target, whether it is
// active, replicas that run and that are wanted, each trigger's value and target, and what was
// decided last, when and why); a row per plugin with its state; and as many of the last steps as
// there is room for. At most `height` lines of at most `width` columns, so that nothing wraps and
// nothing scrolls. Where a row has no room for the reason, it stands on a line below. Pure.
std::vector<std::string> RenderTable(const std::string& title, const local::LocalState& state,
                                     const std::vector<std::string>& steps, TableSize size);

// Rows, each of as many cells, as lines with their columns one below the other.
std::vector<std::string> AlignColumns(const std::vector<std::vector<std::string>>& rows);

// The text cut to `width` columns, with "…" where something is left out. Control characters, which
// a plugin's message could bring, become "?", so that they move no cursor. A wide character (CJK,
// emoji) counts as two columns.
std::string FitColumns(const std::string& text, int width);

}  // namespace outrigger::controller::ctl

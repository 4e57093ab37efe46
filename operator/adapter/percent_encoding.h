// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <absl/status/statusor.h>
#include <absl/strings/string_view.h>

#include <string>

namespace outrigger::controller::adapter {

// Whether '+' stands for itself (paths, header names) or for a space (queries).
enum class Plus { kIsPlus, kIsSpace };

// "a%2Fb" -> "a/b". INVALID_ARGUMENT: '%' without two hex digits. Pure.
absl::StatusOr<std::string> PercentDecode(absl::string_view text, Plus plus);

}  // namespace outrigger::controller::adapter

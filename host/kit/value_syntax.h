// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <absl/strings/string_view.h>
#include <absl/time/time.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace outrigger::host::kit {

// How the texts of parameters are read. Each returns nullopt for what it does not accept; no
// surrounding space is allowed. The rules are those of the JSON and Go parsers that users of
// existing manifests met before (spec/authentication.md section 7).

// JSON syntax of a whole number in the range of int64: "5", "-5"; not "+5", "05", "5.0", "1e3".
std::optional<int64_t> ParseInteger(absl::string_view text);
// JSON syntax of a number with a finite double: "1.5", "1e3"; not ".5", "5.", "0x10", "nan".
std::optional<double> ParseNumber(absl::string_view text);
// 1 t T TRUE true True 0 f F FALSE false False, nothing else.
std::optional<bool> ParseBoolean(absl::string_view text);
// A Go duration ("1m30s") or whole milliseconds ("1500"); not negative.
std::optional<absl::Duration> ParseDuration(absl::string_view text);
// Comma separated, each item trimmed; "" has one empty item.
std::vector<std::string> SplitList(absl::string_view text);

}  // namespace outrigger::host::kit

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>
#include <absl/strings/str_cat.h>
#include <absl/strings/string_view.h>

// Debian's Abseil (20220623) has no status macros; these are ours. In a coroutine use the CO_
// forms.
#define OUTRIGGER_CONCAT_INNER_(a, b) a##b
#define OUTRIGGER_CONCAT_(a, b) OUTRIGGER_CONCAT_INNER_(a, b)

#define RETURN_IF_ERROR(expr)                                       \
  do {                                                              \
    if (absl::Status status_macro_ = (expr); !status_macro_.ok()) { \
      return status_macro_;                                         \
    }                                                               \
  } while (false)

#define CO_RETURN_IF_ERROR(expr)                                    \
  do {                                                              \
    if (absl::Status status_macro_ = (expr); !status_macro_.ok()) { \
      co_return status_macro_;                                      \
    }                                                               \
  } while (false)

#define ASSIGN_OR_RETURN(lhs, expr) \
  OUTRIGGER_ASSIGN_OR_RETURN_(OUTRIGGER_CONCAT_(status_or_, __LINE__), lhs, expr, return)
#define CO_ASSIGN_OR_RETURN(lhs, expr) \
  OUTRIGGER_ASSIGN_OR_RETURN_(OUTRIGGER_CONCAT_(status_or_, __LINE__), lhs, expr, co_return)
#define OUTRIGGER_ASSIGN_OR_RETURN_(var, lhs, expr, ret) \
  auto var = (expr);                                     \
  if (!var.ok()) ret std::move(var).status();            \
  lhs = *std::move(var)

namespace outrigger::host {

// Puts context before the message and keeps code and payloads: Annotate(s, "ScaledObject ", key)
// gives "ScaledObject ns/a: <message>". OK stays OK.
absl::Status AnnotateWith(const absl::Status& status, absl::string_view context);

template <typename... Parts>
absl::Status Annotate(const absl::Status& status, const Parts&... parts) {
  if (status.ok()) return status;
  return AnnotateWith(status, absl::StrCat(parts...));
}

// "NOT_FOUND: message", for logs and people.
std::string Describe(const absl::Status& status);

}  // namespace outrigger::host

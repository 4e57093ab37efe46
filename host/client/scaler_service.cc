// SPDX-License-Identifier: Apache-2.0
#include "host/client/scaler_service.h"

#include <absl/strings/numbers.h>
#include <absl/strings/str_cat.h>

#include <map>

#include "host/base/secret.h"

namespace outrigger::host {
namespace {

constexpr absl::string_view kUnreachableUrl = "outrigger.dev/host.PluginUnreachable";
constexpr absl::string_view kRetryAfterUrl = "outrigger.dev/host.RetryAfter";  // "<milliseconds>"

// Length-prefixed, so that no two different triggers give the same text.
void Append(std::string& text, absl::string_view part) {
  absl::StrAppend(&text, part.size(), ":", part);
}

void AppendMap(std::string& text, const google::protobuf::Map<std::string, std::string>& map) {
  const std::map<std::string, std::string> sorted(map.begin(), map.end());
  absl::StrAppend(&text, sorted.size(), ";");
  for (const auto& [key, value] : sorted) {
    Append(text, key);
    Append(text, value);
  }
}

}  // namespace

const char* PluginStateName(PluginState state) {
  switch (state) {
    case PluginState::kConnecting:
      return "connecting";
    case PluginState::kReady:
      return "ready";
    case PluginState::kUnavailable:
      return "unavailable";
    case PluginState::kRefused:
      return "refused";
  }
  return "unknown";
}

void MarkPluginUnreachable(absl::Status& status) {
  status.SetPayload(kUnreachableUrl, absl::Cord("1"));
}

bool IsPluginUnreachable(const absl::Status& status) {
  return status.GetPayload(kUnreachableUrl).has_value();
}

void SetRetryAfter(absl::Status& status, absl::Duration delay) {
  const std::string text = absl::StrCat(absl::ToInt64Milliseconds(delay));
  status.SetPayload(kRetryAfterUrl, absl::Cord(absl::string_view(text)));
}

std::optional<absl::Duration> RetryAfter(const absl::Status& status) {
  const auto payload = status.GetPayload(kRetryAfterUrl);
  int64_t milliseconds = 0;
  if (!payload || !absl::SimpleAtoi(std::string(*payload), &milliseconds)) return std::nullopt;
  return absl::Milliseconds(milliseconds);
}

void SetFingerprint(scaler::v1::Trigger& trigger, bool per_object, absl::string_view key) {
  std::string text;
  Append(text, trigger.type());
  absl::StrAppend(&text, static_cast<int>(trigger.metric_type()), ";");
  AppendMap(text, trigger.metadata());
  AppendMap(text, trigger.environment());
  AppendMap(text, trigger.authentication());
  if (per_object) {
    Append(text, trigger.object().uid());
    absl::StrAppend(&text, trigger.index(), ";");
  }
  trigger.set_fingerprint(HmacSha256(key, text));
}

}  // namespace outrigger::host

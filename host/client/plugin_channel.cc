// SPDX-License-Identifier: Apache-2.0
#include "host/client/plugin_channel.h"

#include <absl/strings/cord.h>

namespace outrigger::host {
namespace {
constexpr absl::string_view kTooLargeUrl = "outrigger.dev/host.MessageTooLarge";
}  // namespace

void MarkMessageTooLarge(absl::Status& status) { status.SetPayload(kTooLargeUrl, absl::Cord("1")); }

bool IsMessageTooLarge(const absl::Status& status) {
  return status.GetPayload(kTooLargeUrl).has_value();
}

}  // namespace outrigger::host

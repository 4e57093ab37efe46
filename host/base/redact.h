// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <google/protobuf/message.h>

#include <string>

namespace outrigger::host {

// One-line text of a message with the content of every field marked (outrigger.scaler.v1.secret)
// replaced by
// "<redacted>", without fields that this build does not know. The only way in which a message of
// the scaler contract may be printed.
std::string PrintRedacted(const google::protobuf::Message& message);

}  // namespace outrigger::host

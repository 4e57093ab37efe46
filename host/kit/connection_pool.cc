// SPDX-License-Identifier: Apache-2.0
#include "host/kit/connection_pool.h"

#include <absl/strings/str_cat.h>

#include "host/base/secret.h"

namespace outrigger::host::kit {

std::string ConnectionFingerprint(std::initializer_list<absl::string_view> parts) {
  static const std::string& key = *new std::string(RandomBytes(32));
  std::string text;
  for (absl::string_view part : parts) absl::StrAppend(&text, part.size(), ":", part);
  return HmacSha256(key, text);
}

}  // namespace outrigger::host::kit

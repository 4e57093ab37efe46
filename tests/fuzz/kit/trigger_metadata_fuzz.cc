// SPDX-License-Identifier: Apache-2.0
// Trigger metadata as users write it, through the parser and a schema that uses most of its rules.
// Input: pairs of lines, "M|E|A <name>" and a value.
#include <absl/strings/str_split.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <vector>

#include "plugins/redis/redis_trigger.h"

namespace {

using outrigger::host::kit::ParameterType;
using outrigger::host::kit::Source;

// The types that redis has no use for.
outrigger::host::kit::TriggerSchema OtherTypes() {
  outrigger::host::kit::TriggerSchema schema;
  schema.parameters = {
      {.name = "listLength", .type = ParameterType::kNumber},
      {.name = "address", .type = ParameterType::kDuration},
      {.name = "listName",
       .type = ParameterType::kStringList,
       .enum_values = {"a", "b"},
       .exclusive_values = {"a"}},
      {.name = "password", .sources = {Source::kAuthentication}, .removed = "gone"}};
  return schema;
}

void CheckMessage(const std::string& message) {
  for (const char c : message) {
    if (static_cast<unsigned char>(c) < 0x20) std::abort();  // a line break or worse got through
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  const std::vector<std::string> lines = absl::StrSplit(text, '\n');
  outrigger::scaler::v1::Trigger trigger;
  for (size_t i = 0; i + 1 < lines.size(); i += 2) {
    if (lines[i].size() < 2) continue;
    const std::string name = lines[i].substr(2);
    auto& map = lines[i][0] == 'A'   ? *trigger.mutable_authentication()
                : lines[i][0] == 'E' ? *trigger.mutable_environment()
                                     : *trigger.mutable_metadata();
    map[name] = lines[i + 1];
  }
  outrigger::host::kit::Violations violations;
  const auto parameters = outrigger::host::kit::ParseParameters(
      outrigger::plugins::redis::RedisSchema(), trigger, violations);
  const auto parsed = outrigger::plugins::redis::ParseRedisTrigger(parameters, violations);
  if (violations.empty() && (parsed->target <= 0 || parsed->server.port == 0)) std::abort();
  CheckMessage(violations.ToString());
  outrigger::host::kit::Violations others;
  outrigger::host::kit::ParseParameters(OtherTypes(), trigger, others);
  CheckMessage(others.ToString());
  return 0;
}

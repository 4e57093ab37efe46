// SPDX-License-Identifier: Apache-2.0
#include <cstddef>
#include <cstdint>

#include "host/kit/label_selector.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const absl::string_view text(reinterpret_cast<const char*>(data), size);
  const auto selector = outrigger::host::kit::LabelSelector::Parse(text);
  if (!selector.ok()) return 0;
  google::protobuf::Map<std::string, std::string> labels;
  selector->Matches(labels);
  labels["app"] = "web";
  selector->Matches(labels);
  return 0;
}

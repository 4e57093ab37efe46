// SPDX-License-Identifier: Apache-2.0
// The watch-line splitter: whatever comes, in whatever pieces, it neither crashes nor depends on
// where the pieces were cut.
#include <absl/strings/str_cat.h>
#include <absl/strings/string_view.h>

#include <boost/json/serialize.hpp>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "operator/kube/watch_framer.h"

namespace {

using outrigger::controller::kube::WatchEvent;
using outrigger::controller::kube::WatchFramer;

constexpr size_t kMaxLineBytes = 512;

// All that a consumer can see: events, and how it ended.
std::string Story(absl::string_view bytes, size_t piece) {
  WatchFramer framer("pods", kMaxLineBytes);
  std::string story;
  const auto note = [&story](const WatchEvent& event) {
    absl::StrAppend(&story, static_cast<int>(event.type), " ", boost::json::serialize(event.object),
                    "\n");
  };
  absl::Status status;
  while (status.ok() && !bytes.empty()) {
    status = framer.Feed(bytes.substr(0, piece), note);
    bytes.remove_prefix(std::min(piece, bytes.size()));
  }
  if (status.ok()) status = framer.Finish();
  absl::StrAppend(&story, status.ToString());
  return story;
}

}  // namespace

// The first byte says how large the pieces are.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const absl::string_view bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  const size_t piece = data[0] % 64 + 1;
  if (Story(bytes, bytes.size() + 1) != Story(bytes, piece)) std::abort();
  return 0;
}

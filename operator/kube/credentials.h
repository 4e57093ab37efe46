// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <absl/status/status.h>
#include <sys/types.h>

#include <ctime>
#include <string>

#include "host/base/secret.h"
#include "operator/kube/api_config.h"

namespace outrigger::controller::kube {

// One credential as it is now. A file is looked at on each Refresh() (one stat) and read again when
// it was replaced or changed, so that a rotated token or certificate is used from the next request
// on. When a new file cannot be read, the last good text stays.
//
// One thread; blocks for a small local file only. Owned by CurlLoop, on whose thread it is used.
class Credential {
 public:
  explicit Credential(const CredentialRef& ref) : file_(ref.file), text_(ref.text) {}

  // NOT_FOUND when a file was never readable.
  absl::Status Refresh();
  const host::Secret& text() const { return text_; }
  bool empty() const { return text_.empty(); }

 private:
  const std::string file_;
  host::Secret text_;
  ino_t inode_ = 0;
  off_t size_ = -1;
  timespec modified_ = {};
};

}  // namespace outrigger::controller::kube

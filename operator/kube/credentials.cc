// SPDX-License-Identifier: Apache-2.0
#include "operator/kube/credentials.h"

#include <absl/strings/ascii.h>
#include <absl/strings/str_cat.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <sstream>

namespace outrigger::controller::kube {

absl::Status Credential::Refresh() {
  if (file_.empty()) return absl::OkStatus();
  struct stat found = {};
  const bool there = stat(file_.c_str(), &found) == 0;
  if (there && found.st_ino == inode_ && found.st_size == size_ &&
      found.st_mtim.tv_sec == modified_.tv_sec && found.st_mtim.tv_nsec == modified_.tv_nsec) {
    return absl::OkStatus();
  }
  std::ostringstream text;
  std::ifstream in(file_, std::ios::binary);
  if (in) text << in.rdbuf();
  const std::string stripped(absl::StripAsciiWhitespace(text.str()));
  if (!there || !in || stripped.empty()) {
    if (!text_.empty()) return absl::OkStatus();
    return absl::NotFoundError(absl::StrCat(file_, ": cannot be read, or is empty"));
  }
  text_ = host::Secret(stripped);
  inode_ = found.st_ino;
  size_ = found.st_size;
  modified_ = found.st_mtim;
  return absl::OkStatus();
}

}  // namespace outrigger::controller::kube

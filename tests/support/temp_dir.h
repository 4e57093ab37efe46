// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>
#include <absl/strings/string_view.h>

#include <string>

namespace outrigger::tests {

// A folder of its own (0700) under $TMPDIR or /tmp, removed with all that is in it at destruction.
// Paths are short, so that Unix sockets (at most 107 bytes) fit. Aborts when the folder cannot be
// made: no test can go on then.
class TempDir {
 public:
  TempDir();
  ~TempDir();
  TempDir(const TempDir&) = delete;
  TempDir& operator=(const TempDir&) = delete;

  const std::string& path() const { return path_; }
  // path()/name.
  std::string File(absl::string_view name) const;
  // Writes path()/name with mode 0600, replacing it in one step, and returns its path. Folders in
  // `name` are made. Aborts when the disk is full.
  std::string Write(absl::string_view name, absl::string_view content) const;

 private:
  std::string path_;
};

// NOT_FOUND when it is not there, INTERNAL when it cannot be read.
absl::StatusOr<std::string> ReadFile(const std::string& path);
// The end of a file, for messages; "" when it cannot be read.
std::string ReadTail(const std::string& path, size_t max_bytes = 4000);

}  // namespace outrigger::tests

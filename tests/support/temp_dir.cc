// SPDX-License-Identifier: Apache-2.0
#include "tests/support/temp_dir.h"

#include <absl/strings/str_cat.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <system_error>

namespace outrigger::tests {
namespace {

[[noreturn]] void Die(const std::string& what) {
  std::fprintf(stderr, "%s: %s\n", what.c_str(), std::strerror(errno));
  std::abort();
}

void WriteWhole(const std::string& path, absl::string_view content) {
  const int fd = open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  if (fd < 0) Die(path);
  while (!content.empty()) {
    const ssize_t written = write(fd, content.data(), content.size());
    if (written < 0) Die(path);
    content.remove_prefix(static_cast<size_t>(written));
  }
  close(fd);
}

}  // namespace

TempDir::TempDir() {
  const char* base = std::getenv("TMPDIR");
  path_ = absl::StrCat(base != nullptr && *base != '\0' ? base : "/tmp", "/outrigger-XXXXXX");
  if (mkdtemp(path_.data()) == nullptr) Die(path_);
}

TempDir::~TempDir() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

std::string TempDir::File(absl::string_view name) const { return absl::StrCat(path_, "/", name); }

std::string TempDir::Write(absl::string_view name, absl::string_view content) const {
  const std::string path = File(name);
  std::error_code ignored;
  std::filesystem::create_directories(std::filesystem::path(path).parent_path(), ignored);
  const std::string unfinished = absl::StrCat(path, ".unfinished");
  WriteWhole(unfinished, content);
  if (rename(unfinished.c_str(), path.c_str()) != 0) Die(path);
  return path;
}

absl::StatusOr<std::string> ReadFile(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return absl::NotFoundError(absl::StrCat(path, ": cannot be opened"));
  std::ostringstream content;
  content << file.rdbuf();
  if (file.bad()) return absl::InternalError(absl::StrCat(path, ": cannot be read"));
  return std::move(content).str();
}

std::string ReadTail(const std::string& path, size_t max_bytes) {
  const absl::StatusOr<std::string> content = ReadFile(path);
  if (!content.ok()) return "";
  return content->size() <= max_bytes ? *content : content->substr(content->size() - max_bytes);
}

}  // namespace outrigger::tests

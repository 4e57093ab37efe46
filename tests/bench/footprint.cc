// SPDX-License-Identifier: Apache-2.0
#include "tests/bench/footprint.h"

#include <absl/strings/numbers.h>
#include <absl/strings/str_cat.h>
#include <absl/strings/str_split.h>
#include <unistd.h>

#include <filesystem>
#include <set>
#include <string_view>
#include <utility>

#include "host/base/status.h"
#include "tests/support/process.h"
#include "tests/support/temp_dir.h"

namespace outrigger::bench {
namespace {

// Counted from the first field behind the program's name, which may hold spaces (proc(5)).
constexpr size_t kUserTicks = 11;
constexpr size_t kSystemTicks = 12;
constexpr size_t kResidentPages = 21;

double NumberAt(const std::vector<std::string>& fields, size_t index) {
  double number = 0;
  if (index < fields.size()) (void)absl::SimpleAtod(fields[index], &number);
  return number;
}

// Parts of glibc.
bool IsLibc(const std::string& file) {
  for (const char* name : {"ld-linux", "libc.so", "libm.so", "libdl.so", "librt.so",
                           "libpthread.so", "libresolv.so"}) {
    if (file.rfind(name, 0) == 0) return true;
  }
  return false;
}

absl::StatusOr<int64_t> SizeOf(const std::string& path) {
  std::error_code error;
  const auto size = std::filesystem::file_size(std::filesystem::canonical(path, error), error);
  if (error) return absl::NotFoundError(absl::StrCat(path, ": ", error.message()));
  return static_cast<int64_t>(size);
}

absl::StatusOr<int64_t> StrippedSizeOf(const std::string& executable) {
  const tests::TempDir dir;
  ASSIGN_OR_RETURN(const tests::CommandResult result,
                   tests::RunCommand({.argv = {"strip", "-o", dir.File("stripped"), executable}},
                                     "", absl::Seconds(60)));
  if (!result.ok()) return absl::InternalError(absl::StrCat("strip: ", result.Describe()));
  return SizeOf(dir.File("stripped"));
}

absl::Status AddLibrariesOf(const std::string& executable, std::set<std::string>& libraries) {
  ASSIGN_OR_RETURN(const tests::CommandResult result,
                   tests::RunCommand({.argv = {"ldd", executable}}, "", absl::Seconds(30)));
  if (!result.ok()) return absl::InternalError(absl::StrCat("ldd: ", result.Describe()));
  for (const absl::string_view line : absl::StrSplit(result.stdout_text, '\n')) {
    const std::vector<std::string> halves = absl::StrSplit(line, " => ");
    if (halves.size() != 2) continue;  // the loader and the kernel's own
    const std::string path = halves[1].substr(0, halves[1].find(' '));
    if (!IsLibc(std::filesystem::path(path).filename().string())) libraries.insert(path);
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<Usage> UsageOf(pid_t pid) {
  ASSIGN_OR_RETURN(const std::string text, tests::ReadFile(absl::StrCat("/proc/", pid, "/stat")));
  const size_t name_end = text.rfind(") ");
  if (name_end == std::string::npos) return absl::InternalError(absl::StrCat("stat: ", text));
  const std::vector<std::string> fields = absl::StrSplit(text.substr(name_end + 2), ' ');
  const double ticks = NumberAt(fields, kUserTicks) + NumberAt(fields, kSystemTicks);
  return Usage{.cpu_seconds = ticks / static_cast<double>(sysconf(_SC_CLK_TCK)),
               .rss_kb = NumberAt(fields, kResidentPages) *
                         static_cast<double>(sysconf(_SC_PAGESIZE)) / 1024};
}

absl::StatusOr<Closure> ClosureOf(const std::vector<std::string>& executables) {
  Closure closure;
  std::set<std::string> libraries;
  for (const std::string& executable : executables) {
    ASSIGN_OR_RETURN(const int64_t size, StrippedSizeOf(executable));
    closure.executable_bytes += size;
    RETURN_IF_ERROR(AddLibrariesOf(executable, libraries));
  }
  for (const std::string& library : libraries) {
    ASSIGN_OR_RETURN(const int64_t size, SizeOf(library));
    closure.library_bytes += size;
  }
  closure.libraries = static_cast<int>(libraries.size());
  return closure;
}

}  // namespace outrigger::bench

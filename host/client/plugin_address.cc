// SPDX-License-Identifier: Apache-2.0
#include "host/client/plugin_address.h"

#include <absl/strings/escaping.h>
#include <absl/strings/match.h>
#include <absl/strings/numbers.h>
#include <absl/strings/str_cat.h>
#include <absl/strings/str_format.h>
#include <absl/strings/strip.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <system_error>

namespace outrigger::host {
namespace {

constexpr absl::string_view kSocketName = "scaler.sock";
constexpr size_t kMaxSocketPath = sizeof(sockaddr_un::sun_path) - 1;

bool IsDnsLabel(absl::string_view name) {
  if (name.empty() || name.size() > 63 || name.front() == '-' || name.back() == '-') return false;
  return std::all_of(name.begin(), name.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-';
  });
}

absl::Status BadFlag(absl::string_view wanted, absl::string_view got) {
  return absl::InvalidArgumentError(
      absl::StrCat("--plugin: want ", wanted, ", got \"", absl::CEscape(got), "\""));
}

absl::Status ParseSocket(absl::string_view address, PluginAddress& parsed) {
  absl::string_view path = absl::StripPrefix(address, "unix:");
  if (absl::StartsWith(path, "//")) path.remove_prefix(2);
  if (!absl::StartsWith(path, "/")) return BadFlag("unix:/absolute/path", address);
  if (path.size() > kMaxSocketPath) {
    return BadFlag(absl::StrCat("a socket path of at most ", kMaxSocketPath, " bytes"), address);
  }
  parsed.socket_path = std::string(path);
  parsed.target = absl::StrCat("unix:", path);
  return absl::OkStatus();
}

absl::Status ParseHostPort(absl::string_view address, PluginAddress& parsed) {
  const size_t colon = address.rfind(':');
  int port = 0;
  if (colon == absl::string_view::npos || colon == 0 ||
      !absl::SimpleAtoi(address.substr(colon + 1), &port) || port < 1 || port > 65535) {
    return BadFlag("unix:/path or host:port", address);
  }
  absl::string_view host = address.substr(0, colon);
  const bool bracketed = absl::ConsumePrefix(&host, "[") && absl::ConsumeSuffix(&host, "]");
  // Other schemes of gRPC (dns:, xds:, …) and bare IPv6 addresses leave a colon here.
  if (host.empty() || (!bracketed && host.find_first_of(":/[]") != absl::string_view::npos)) {
    return BadFlag("unix:/path or host:port", address);
  }
  parsed.host = std::string(host);
  parsed.target = std::string(address);
  return absl::OkStatus();
}

}  // namespace

bool PluginAddress::is_loopback() const {
  if (host == "localhost" || host == "::1") return true;
  if (!absl::StartsWith(host, "127.")) return false;
  return std::all_of(host.begin(), host.end(),
                     [](char c) { return c == '.' || (c >= '0' && c <= '9'); });
}

absl::StatusOr<PluginAddress> ParsePluginFlag(absl::string_view text) {
  const size_t equals = text.find('=');
  if (equals == absl::string_view::npos) return BadFlag("NAME=ADDRESS", text);
  PluginAddress parsed;
  parsed.name = std::string(text.substr(0, equals));
  if (!IsDnsLabel(parsed.name)) {
    return BadFlag("a NAME of lower-case letters, digits and '-'", parsed.name);
  }
  const absl::string_view address = text.substr(equals + 1);
  absl::Status status = absl::StartsWith(address, "unix:") ? ParseSocket(address, parsed)
                                                           : ParseHostPort(address, parsed);
  if (!status.ok()) return status;
  return parsed;
}

absl::Status CheckPluginDir(const std::string& dir) {
  struct stat info = {};
  if (lstat(dir.c_str(), &info) != 0) return absl::OkStatus();
  if (!S_ISDIR(info.st_mode)) {
    return absl::FailedPreconditionError(
        absl::StrCat("--plugin-dir ", dir, ": want a folder, got another kind of file"));
  }
  if (info.st_uid != geteuid()) {
    return absl::FailedPreconditionError(
        absl::StrCat("--plugin-dir ", dir, ": want a folder of user ", geteuid(),
                     ", got one of user ", info.st_uid, "; choose a folder of your own"));
  }
  const unsigned mode = info.st_mode & 07777;
  if ((mode & 077) != 0) {
    return absl::FailedPreconditionError(absl::StrFormat(
        "--plugin-dir %s: want mode 0700, got %#04o; run chmod 0700 %s", dir, mode, dir));
  }
  return absl::OkStatus();
}

std::vector<PluginAddress> ListPluginFolders(const std::string& dir) {
  std::vector<PluginAddress> found;
  std::error_code error;
  for (std::filesystem::directory_iterator it(dir, error), end; !error && it != end;
       it.increment(error)) {
    const std::string name = it->path().filename().string();
    std::error_code ignored;  // the folder may go while we look
    if (!IsDnsLabel(name) || !std::filesystem::is_directory(it->symlink_status(ignored))) continue;
    PluginAddress address;
    address.name = name;
    address.socket_path = absl::StrCat(it->path().string(), "/", kSocketName);
    address.target = absl::StrCat("unix:", address.socket_path);
    found.push_back(std::move(address));
  }
  std::sort(found.begin(), found.end(),
            [](const PluginAddress& a, const PluginAddress& b) { return a.name < b.name; });
  return found;
}

std::string SocketIdentity(const std::string& path) {
  struct stat info = {};
  if (lstat(path.c_str(), &info) != 0 || !S_ISSOCK(info.st_mode)) return "";
  return absl::StrCat(info.st_dev, ":", info.st_ino, ":", info.st_ctim.tv_sec, ".",
                      info.st_ctim.tv_nsec);
}

}  // namespace outrigger::host

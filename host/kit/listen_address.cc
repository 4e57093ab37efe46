// SPDX-License-Identifier: Apache-2.0
#include "host/kit/listen_address.h"

#include <absl/strings/match.h>
#include <absl/strings/numbers.h>
#include <absl/strings/str_cat.h>
#include <absl/strings/strip.h>
#include <arpa/inet.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <system_error>

#include "host/base/status.h"
#include "host/kit/parameter.h"

namespace outrigger::host::kit {
namespace {

bool IsLoopback(const std::string& host) {
  if (host == "localhost") return true;
  in_addr v4 = {};
  if (inet_pton(AF_INET, host.c_str(), &v4) == 1) return (ntohl(v4.s_addr) >> 24) == 127;
  in6_addr v6 = {};
  return inet_pton(AF_INET6, host.c_str(), &v6) == 1 && IN6_IS_ADDR_LOOPBACK(&v6);
}

class FileDescriptor {
 public:
  explicit FileDescriptor(int fd) : fd_(fd) {}
  ~FileDescriptor() {
    if (fd_ >= 0) close(fd_);
  }
  FileDescriptor(const FileDescriptor&) = delete;
  FileDescriptor& operator=(const FileDescriptor&) = delete;
  int get() const { return fd_; }

 private:
  const int fd_;
};

bool SomebodyAnswers(const std::string& path) {
  const FileDescriptor socket_fd(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path, path.data(), path.size());
  // EAGAIN: there is a listener, its queue is full.
  return connect(socket_fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) ==
             0 ||
         errno == EAGAIN;
}

}  // namespace

absl::Status CheckListenAddress(absl::string_view address, const TlsFiles& tls) {
  if (!tls.empty() && !tls.complete()) {
    return absl::InvalidArgumentError(
        "--tls-cert-file, --tls-key-file and --tls-client-ca-file: want all three or none");
  }
  const size_t colon = address.rfind(':');
  uint32_t port = 0;
  if (colon == absl::string_view::npos || colon == 0 ||
      !absl::SimpleAtoi(address.substr(colon + 1), &port) || port > 65535) {
    return absl::InvalidArgumentError(
        absl::StrCat("--listen: want host:port, got ", Quoted(address)));
  }
  absl::string_view host = address.substr(0, colon);
  if (absl::ConsumePrefix(&host, "[")) absl::ConsumeSuffix(&host, "]");
  if (tls.complete() || IsLoopback(std::string(host))) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "--listen: want a loopback address, or mutual TLS (--tls-cert-file, --tls-key-file, "
      "--tls-client-ca-file), got ",
      Quoted(address)));
}

absl::Status PrepareSocketPath(const std::string& path) {
  if (path.size() >= sizeof(sockaddr_un::sun_path)) {
    return absl::InvalidArgumentError(absl::StrCat("--listen-socket: want a path below ",
                                                   sizeof(sockaddr_un::sun_path), " bytes, got ",
                                                   path.size()));
  }
  const std::filesystem::path folder = std::filesystem::path(path).parent_path();
  std::error_code error;
  if (!folder.empty() && !std::filesystem::is_directory(folder, error)) {
    return absl::InvalidArgumentError(
        absl::StrCat("--listen-socket: no such folder: ", folder.string()));
  }
  struct stat found = {};
  if (lstat(path.c_str(), &found) != 0) return absl::OkStatus();
  if (!S_ISSOCK(found.st_mode)) {
    return absl::InvalidArgumentError(
        absl::StrCat("--listen-socket: something else than a socket stands at ", path));
  }
  if (SomebodyAnswers(path)) {
    return absl::FailedPreconditionError(
        absl::StrCat("--listen-socket: another process answers on ", path));
  }
  if (unlink(path.c_str()) != 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("--listen-socket: cannot replace ", path, ": ", std::strerror(errno)));
  }
  return absl::OkStatus();
}

}  // namespace outrigger::host::kit

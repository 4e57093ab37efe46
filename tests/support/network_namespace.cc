// SPDX-License-Identifier: Apache-2.0
#include "tests/support/network_namespace.h"

#include <absl/strings/str_cat.h>
#include <arpa/inet.h>
#include <errno.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstring>
#include <fstream>

#include "host/base/status.h"

namespace outrigger::tests {
namespace {

absl::Status Failed(const std::string& what) {
  return absl::InternalError(absl::StrCat(what, ": ", std::strerror(errno)));
}

absl::Status Unshare() {
  const uid_t user = geteuid();
  const gid_t group = getegid();
  if (unshare(CLONE_NEWNET) == 0) return absl::OkStatus();
  if (unshare(CLONE_NEWUSER | CLONE_NEWNET) != 0) {
    return absl::PermissionDeniedError(
        absl::StrCat("want root or unprivileged user namespaces: ", std::strerror(errno)));
  }
  // We stay who we are: files that belong to us still do.
  std::ofstream("/proc/self/setgroups") << "deny";
  std::ofstream("/proc/self/uid_map") << user << " " << user << " 1";
  std::ofstream("/proc/self/gid_map") << group << " " << group << " 1";
  return absl::OkStatus();
}

ifreq Interface(const std::string& name) {
  ifreq request{};
  name.copy(request.ifr_name, sizeof(request.ifr_name) - 1);
  return request;
}

absl::Status BringUp(int fd, const std::string& name) {
  ifreq request = Interface(name);
  request.ifr_flags = IFF_UP | IFF_RUNNING;
  if (ioctl(fd, SIOCSIFFLAGS, &request) != 0) return Failed(absl::StrCat("bring up ", name));
  return absl::OkStatus();
}

absl::Status SetAddress(int fd, const std::string& name, const std::string& address) {
  ifreq request = Interface(name);
  sockaddr_in value{};
  value.sin_family = AF_INET;
  if (inet_pton(AF_INET, address.c_str(), &value.sin_addr) != 1) {
    return absl::InvalidArgumentError(absl::StrCat("want an IPv4 address, got ", address));
  }
  std::memcpy(&request.ifr_addr, &value, sizeof(value));
  if (ioctl(fd, SIOCSIFADDR, &request) != 0) return Failed(absl::StrCat(name, " ", address));
  return absl::OkStatus();
}

absl::Status SetUpLoopback(int fd, const std::vector<std::string>& addresses) {
  RETURN_IF_ERROR(BringUp(fd, "lo"));
  for (size_t i = 0; i < addresses.size(); ++i) {
    RETURN_IF_ERROR(SetAddress(fd, absl::StrCat("lo:", i + 1), addresses[i]));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status EnterNetworkNamespace(const std::vector<std::string>& addresses) {
  RETURN_IF_ERROR(Unshare());
  const int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return Failed("socket");
  const absl::Status set_up = SetUpLoopback(fd, addresses);
  close(fd);
  return set_up;
}

}  // namespace outrigger::tests

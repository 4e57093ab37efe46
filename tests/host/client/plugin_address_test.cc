// SPDX-License-Identifier: Apache-2.0
#include "host/client/plugin_address.h"

#include <absl/strings/str_cat.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>

#include "tests/support/temp_dir.h"

namespace outrigger::host {
namespace {

using testing::HasSubstr;

struct Case {
  const char* name;
  std::string text;
  const char* target;   // "" where an error is wanted
  const char* message;  // part of it
};
class ParsePluginFlagTest : public testing::TestWithParam<Case> {};

TEST_P(ParsePluginFlagTest, TakesSocketsAndHostPortsOnly) {
  const auto parsed = ParsePluginFlag(GetParam().text);
  if (*GetParam().target != '\0') {
    ASSERT_TRUE(parsed.ok()) << parsed.status();
    EXPECT_EQ(parsed->target, GetParam().target);
    return;
  }
  EXPECT_EQ(parsed.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(parsed.status().message()), HasSubstr(GetParam().message));
}

INSTANTIATE_TEST_SUITE_P(
    Inputs, ParsePluginFlagTest,
    testing::ValuesIn<Case>({
        {"Socket", "redis=unix:/run/r.sock", "unix:/run/r.sock", ""},
        {"SocketUrl", "redis=unix:///run/r.sock", "unix:/run/r.sock", ""},
        {"HostPort", "redis=scalers.example:9666", "scalers.example:9666", ""},
        {"Ipv6", "redis=[::1]:9666", "[::1]:9666", ""},
        {"NoName", "=unix:/run/r.sock", "", "want a NAME"},
        {"BadName", "Redis_1=unix:/run/r.sock", "", "got \"Redis_1\""},
        {"NoAddress", "redis", "", "want NAME=ADDRESS, got \"redis\""},
        {"RelativeSocket", "redis=unix:r.sock", "", "want unix:/absolute/path"},
        {"LongSocket", absl::StrCat("redis=unix:/", std::string(107, 'x')), "",
         "want a socket path of at most 107 bytes"},
        {"NoPort", "redis=scalers.example", "", "want unix:/path or host:port"},
        {"PortTooBig", "redis=scalers.example:65536", "", "want unix:/path or host:port"},
        {"OtherScheme", "redis=dns:///scalers.example:9666", "", "want unix:/path or host:port"},
        {"BareIpv6", "redis=::1:9666", "", "want unix:/path or host:port"},
    }),
    [](const testing::TestParamInfo<Case>& info) { return std::string(info.param.name); });

TEST(PluginAddressTest, KnowsLoopbackByItsAddressNotByItsPrefix) {
  EXPECT_TRUE(ParsePluginFlag("p=127.0.0.1:1")->is_loopback());
  EXPECT_TRUE(ParsePluginFlag("p=127.8.8.8:1")->is_loopback());
  EXPECT_TRUE(ParsePluginFlag("p=localhost:1")->is_loopback());
  EXPECT_TRUE(ParsePluginFlag("p=[::1]:1")->is_loopback());
  EXPECT_FALSE(ParsePluginFlag("p=127.evil.example:1")->is_loopback());
  EXPECT_FALSE(ParsePluginFlag("p=10.0.0.1:1")->is_loopback());
}

TEST(CheckPluginDirTest, WantsAFolderClosedToOthers) {
  const tests::TempDir dir;
  EXPECT_TRUE(CheckPluginDir(dir.path()).ok());
  EXPECT_TRUE(CheckPluginDir(dir.File("not-there-yet")).ok());
  ASSERT_EQ(chmod(dir.path().c_str(), 0750), 0);
  const absl::Status status = CheckPluginDir(dir.path());
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(status.message()), HasSubstr("want mode 0700, got 0750"));
}

TEST(ListPluginFoldersTest, ListsFoldersByNameWithoutLinksAndOddNames) {
  const tests::TempDir dir;
  for (const char* name : {"redis", "kafka", "Odd Name"}) {
    std::filesystem::create_directory(dir.File(name));
  }
  std::filesystem::create_directory_symlink(dir.File("redis"), dir.File("link"));
  dir.Write("file", "");
  const auto found = ListPluginFolders(dir.path());
  ASSERT_EQ(found.size(), 2);
  EXPECT_EQ(found[0].name, "kafka");
  EXPECT_EQ(found[1].name, "redis");
  EXPECT_EQ(found[1].socket_path, dir.File("redis/scaler.sock"));
  EXPECT_TRUE(ListPluginFolders(dir.File("not-there")).empty());
}

class BoundSocket {
 public:
  explicit BoundSocket(const std::string& path) : fd_(socket(AF_UNIX, SOCK_STREAM, 0)) {
    sockaddr_un address = {.sun_family = AF_UNIX};
    std::strncpy(address.sun_path, path.c_str(), sizeof(address.sun_path) - 1);
    EXPECT_EQ(bind(fd_, reinterpret_cast<const sockaddr*>(&address), sizeof(address)), 0);
  }
  ~BoundSocket() { close(fd_); }

 private:
  const int fd_;
};

TEST(SocketIdentityTest, TellsOneBindFromTheNextAndTakesNoLink) {
  const tests::TempDir dir;
  const std::string path = dir.File("s");
  EXPECT_EQ(SocketIdentity(path), "");
  std::string first;
  {
    const BoundSocket socket(path);
    first = SocketIdentity(path);
    EXPECT_NE(first, "");
    EXPECT_EQ(SocketIdentity(path), first);
  }
  ASSERT_EQ(unlink(path.c_str()), 0);
  const BoundSocket socket(path);
  EXPECT_NE(SocketIdentity(path), first);
  std::filesystem::create_symlink(path, dir.File("link"));
  EXPECT_EQ(SocketIdentity(dir.File("link")), "");
}

}  // namespace
}  // namespace outrigger::host

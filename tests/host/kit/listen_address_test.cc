// SPDX-License-Identifier: Apache-2.0
#include "host/kit/listen_address.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "tests/support/temp_dir.h"

namespace outrigger::host::kit {
namespace {

using testing::HasSubstr;

TEST(CheckListenAddressTest, OnlyLoopbackWithoutMutualTls) {
  const tests::TempDir dir;
  const std::string file = dir.Write("file.pem", "");
  for (const char* address : {"127.0.0.1:0", "127.9.9.9:1", "localhost:9666", "[::1]:9666"}) {
    EXPECT_TRUE(CheckListenAddress(address, {}).ok()) << address;
  }
  for (const char* address :
       {"0.0.0.0:1", "10.0.0.1:1", "[::]:1", "example.org:1", "128.0.0.1:1"}) {
    const absl::Status status = CheckListenAddress(address, {});
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << address;
    EXPECT_THAT(std::string(status.message()), HasSubstr("want a loopback address, or mutual TLS"));
    EXPECT_TRUE(CheckListenAddress(address, {file, file, file}).ok()) << address;
  }
}

TEST(CheckListenAddressTest, TlsFilesComeAllOrNone) {
  EXPECT_THAT(std::string(CheckListenAddress("127.0.0.1:0", {"c", "k", ""}).message()),
              HasSubstr("want all three or none"));
}

TEST(CheckListenAddressTest, WantsHostAndPort) {
  for (const char* bad : {"", "localhost", ":1", "localhost:", "localhost:x", "localhost:65536"}) {
    EXPECT_THAT(std::string(CheckListenAddress(bad, {}).message()), HasSubstr("want host:port"))
        << bad;
  }
}

class SocketPathTest : public testing::Test {
 protected:
  int Listen(const std::string& path) {
    const int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    sockaddr_un address = {};
    address.sun_family = AF_UNIX;
    path.copy(address.sun_path, sizeof(address.sun_path) - 1);
    EXPECT_EQ(bind(fd, reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
    EXPECT_EQ(listen(fd, 1), 0);
    return fd;
  }

  static bool Exists(const std::string& path) {
    struct stat found = {};
    return lstat(path.c_str(), &found) == 0;
  }

  tests::TempDir dir_;
};

TEST_F(SocketPathTest, AStaleSocketIsRemovedAndALiveOneKept) {
  const std::string path = dir_.File("scaler.sock");
  const int fd = Listen(path);
  const absl::Status live = PrepareSocketPath(path);
  EXPECT_EQ(live.code(), absl::StatusCode::kFailedPrecondition) << live;
  EXPECT_TRUE(Exists(path));
  close(fd);
  EXPECT_TRUE(PrepareSocketPath(path).ok());
  EXPECT_FALSE(Exists(path));
}

TEST_F(SocketPathTest, AnythingElseThanASocketIsLeftAlone) {
  const std::string path = dir_.Write("scaler.sock", "precious");
  EXPECT_THAT(std::string(PrepareSocketPath(path).message()),
              HasSubstr("something else than a socket"));
  EXPECT_TRUE(Exists(path));
}

TEST_F(SocketPathTest, TooLongAndNoFolderAreNamed) {
  EXPECT_THAT(std::string(PrepareSocketPath(std::string(200, 'x')).message()),
              HasSubstr("want a path below 108 bytes, got 200"));
  EXPECT_THAT(std::string(PrepareSocketPath("/no/such/scaler.sock").message()),
              HasSubstr("no such folder: /no/such"));
}

}  // namespace
}  // namespace outrigger::host::kit

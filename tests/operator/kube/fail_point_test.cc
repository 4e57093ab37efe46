// SPDX-License-Identifier: Apache-2.0
#include "operator/kube/fail_point.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>
#include <cstdlib>

namespace outrigger::controller::kube {
namespace {

class FailPointTest : public testing::Test {
 protected:
  void TearDown() override { unsetenv("OUTRIGGER_FAILPOINT"); }
  static void Set(const char* text) { setenv("OUTRIGGER_FAILPOINT", text, 1); }
};

TEST_F(FailPointTest, IsEmptyWithoutTheVariable) {
  unsetenv("OUTRIGGER_FAILPOINT");
  const absl::StatusOr<std::function<void()>> hook = FailPointFromEnvironment();
  ASSERT_TRUE(hook.ok()) << hook.status();
  EXPECT_FALSE(*hook);
}

TEST_F(FailPointTest, RefusesWhatItDoesNotKnow) {
  for (const char* text : {"after-write", "after-write:", "after-write:0", "after-write:-1",
                           "after-write:x", "before-write:1"}) {
    Set(text);
    const absl::Status status = FailPointFromEnvironment().status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << text;
    EXPECT_THAT(std::string(status.message()), testing::HasSubstr(text));
  }
}

TEST_F(FailPointTest, KillsTheProcessAtTheNthWrite) {
  Set("after-write:3");
  const absl::StatusOr<std::function<void()>> hook = FailPointFromEnvironment();
  ASSERT_TRUE(hook.ok()) << hook.status();
  (*hook)();
  (*hook)();
  EXPECT_EXIT((*hook)(), testing::KilledBySignal(SIGKILL), "");
}

}  // namespace
}  // namespace outrigger::controller::kube

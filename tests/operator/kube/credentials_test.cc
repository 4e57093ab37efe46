// SPDX-License-Identifier: Apache-2.0
#include "operator/kube/credentials.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "tests/support/temp_dir.h"

namespace outrigger::controller::kube {
namespace {

class CredentialTest : public testing::Test {
 protected:
  CredentialRef File(const char* name) { return {.file = dir_.File(name)}; }
  tests::TempDir dir_;
};

TEST_F(CredentialTest, TextStaysAsItIs) {
  Credential credential({.text = host::Secret("t")});
  EXPECT_TRUE(credential.Refresh().ok());
  EXPECT_EQ(credential.text().Reveal(), "t");
}

TEST_F(CredentialTest, FileIsReadAgainWhenItIsReplaced) {
  dir_.Write("token", "first\n");
  Credential credential(File("token"));
  ASSERT_TRUE(credential.Refresh().ok());
  EXPECT_EQ(credential.text().Reveal(), "first");
  dir_.Write("token", "other\n");
  ASSERT_TRUE(credential.Refresh().ok());
  EXPECT_EQ(credential.text().Reveal(), "other");
}

TEST_F(CredentialTest, LastGoodTextStaysWhileTheFileIsGoneOrEmpty) {
  dir_.Write("token", "good");
  Credential credential(File("token"));
  ASSERT_TRUE(credential.Refresh().ok());
  unlink(dir_.File("token").c_str());
  EXPECT_TRUE(credential.Refresh().ok());
  EXPECT_EQ(credential.text().Reveal(), "good");
  dir_.Write("token", "");
  EXPECT_TRUE(credential.Refresh().ok());
  EXPECT_EQ(credential.text().Reveal(), "good");
}

TEST_F(CredentialTest, FileThatWasNeverThereIsNamed) {
  Credential credential(File("absent"));
  const absl::Status status = credential.Refresh();
  EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(status.message()), testing::HasSubstr(dir_.File("absent")));
}

}  // namespace
}  // namespace outrigger::controller::kube

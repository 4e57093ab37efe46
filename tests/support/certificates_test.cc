// SPDX-License-Identifier: Apache-2.0
#include "tests/support/certificates.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/process.h"
#include "tests/support/temp_dir.h"

namespace outrigger::tests {
namespace {

using testing::HasSubstr;

CommandResult OpenSsl(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), "openssl");
  absl::StatusOr<CommandResult> result =
      RunCommand({.argv = std::move(arguments)}, "", absl::Seconds(30));
  return result.ok() ? *result : CommandResult{.exit_code = -1};
}

TEST(CertificatesTest, LeafIsAcceptedBySomebodyElsesVerifier) {
  const TempDir dir;
  const auto ca = CertificateAuthority::Create("test CA");
  ASSERT_TRUE(ca.ok()) << ca.status();
  const auto leaf = (*ca)->Issue({.common_name = "admin",
                                  .organizations = {"system:masters"},
                                  .dns_names = {"localhost"},
                                  .ips = {"127.0.0.1"}});
  ASSERT_TRUE(leaf.ok()) << leaf.status();
  const std::string ca_file = dir.Write("ca.crt", (*ca)->certificate());
  const std::string leaf_file = dir.Write("leaf.crt", leaf->certificate);
  const CommandResult verified = OpenSsl({"verify", "-x509_strict", "-CAfile", ca_file, "-purpose",
                                          "sslserver", "-verify_hostname", "localhost", leaf_file});
  EXPECT_TRUE(verified.ok()) << verified.Describe();
  EXPECT_THAT(OpenSsl({"x509", "-noout", "-subject", "-in", leaf_file}).stdout_text,
              HasSubstr("O = system:masters, CN = admin"));
}

TEST(CertificatesTest, ExpiredLeafIsRefused) {
  const TempDir dir;
  const auto ca = CertificateAuthority::Create("test CA");
  ASSERT_TRUE(ca.ok()) << ca.status();
  const auto leaf = (*ca)->IssueValid({.common_name = "late"}, -100, -10);
  ASSERT_TRUE(leaf.ok()) << leaf.status();
  const CommandResult verified =
      OpenSsl({"verify", "-CAfile", dir.Write("ca", (*ca)->certificate()),
               dir.Write("leaf", leaf->certificate)});
  EXPECT_THAT(verified.stderr_text, HasSubstr("certificate has expired"));
}

}  // namespace
}  // namespace outrigger::tests

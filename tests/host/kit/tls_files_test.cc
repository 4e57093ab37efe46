// SPDX-License-Identifier: Apache-2.0
#include "host/kit/tls_files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "tests/support/certificates.h"
#include "tests/support/temp_dir.h"

namespace outrigger::host::kit {
namespace {

using testing::HasSubstr;

class TlsFilesTest : public testing::Test {
 protected:
  TlsFilesTest() {
    const auto ca = tests::CertificateAuthority::Create("ca").value();
    const tests::KeyPair pair = ca->Issue({.common_name = "plugin"}).value();
    files_ = {.certificate = dir_.Write("cert.pem", pair.certificate),
              .key = dir_.Write("key.pem", pair.key),
              .client_ca = dir_.Write("ca.pem", ca->certificate())};
    other_key_ = dir_.Write("other.pem", ca->Issue({.common_name = "other"})->key);
    garbage_ = dir_.Write("garbage.pem", "kind: Deployment\n");
  }
  std::string Check() const { return std::string(CheckTlsFiles(files_).message()); }

  const tests::TempDir dir_;
  TlsFiles files_;
  std::string other_key_;
  std::string garbage_;
};

TEST_F(TlsFilesTest, FilesThatBelongTogetherAreGood) { EXPECT_EQ(Check(), ""); }

TEST_F(TlsFilesTest, AFileThatIsNotThereIsNamed) {
  files_.certificate = "/no/such";
  EXPECT_THAT(Check(), HasSubstr("--tls-cert-file: cannot read /no/such: No such file"));
}

TEST_F(TlsFilesTest, WhatIsNoCertificateIsNamed) {
  files_.certificate = garbage_;
  EXPECT_THAT(Check(), HasSubstr("--tls-cert-file: want a certificate chain (PEM), got " +
                                 garbage_ + ": no start line"));
}

TEST_F(TlsFilesTest, TheKeyOfAnotherCertificateIsNamed) {
  files_.key = other_key_;
  EXPECT_THAT(Check(), HasSubstr("--tls-key-file: want the key of --tls-cert-file (PEM), got " +
                                 other_key_ + ": key values mismatch"));
}

TEST_F(TlsFilesTest, WhatIsNoCaIsNamed) {
  files_.client_ca = garbage_;
  EXPECT_THAT(Check(),
              HasSubstr("--tls-client-ca-file: want a CA certificate (PEM), got " + garbage_));
}

}  // namespace
}  // namespace outrigger::host::kit

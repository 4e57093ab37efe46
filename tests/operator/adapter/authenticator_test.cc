// SPDX-License-Identifier: Apache-2.0
// What does not need a connection; the rest of who is who is in metrics_api_test.cc.
#include "operator/adapter/authenticator.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <openssl/bio.h>
#include <openssl/pem.h>
#include <openssl/x509.h>

#include "tests/support/certificates.h"

namespace outrigger::controller::adapter {
namespace {

using tests::CertificateAuthority;
using tests::KeyPair;

std::string DerOf(const KeyPair& pair) {
  BIO* text = BIO_new_mem_buf(pair.certificate.data(), -1);
  X509* certificate = PEM_read_bio_X509(text, nullptr, nullptr, nullptr);
  unsigned char* bytes = nullptr;
  const int size = i2d_X509(certificate, &bytes);
  std::string der(reinterpret_cast<char*>(bytes), static_cast<size_t>(size));
  OPENSSL_free(bytes);
  X509_free(certificate);
  BIO_free(text);
  return der;
}

class AuthenticateTest : public testing::Test {
 protected:
  using ConfigPtr = std::shared_ptr<const RequestHeaderConfig>;

  ConfigPtr TrustingClientsOf(const std::string& authorities) {
    return std::make_shared<const RequestHeaderConfig>(
        RequestHeaderConfig{.client_ca_pem = authorities});
  }
  absl::StatusOr<UserInfo> Ask(const ConfigPtr& config, const PeerCertificate& peer,
                               absl::Duration later = absl::ZeroDuration()) {
    return Authenticate(
        config, peer, now_ + later, [](absl::string_view) { return std::vector<std::string>(); },
        [](absl::string_view) { return std::vector<std::pair<std::string, std::string>>(); });
  }

  const absl::Time now_ = absl::Now();
  const std::unique_ptr<CertificateAuthority> authority_ = *CertificateAuthority::Create("ca");
  const std::unique_ptr<CertificateAuthority> other_ = *CertificateAuthority::Create("other");
  const PeerCertificate jane_{
      {DerOf(*authority_->IssueValid({.common_name = "jane"}, -60, 3600))}, "jane", {"dev"}};
};

TEST_F(AuthenticateTest, BeforeTheConfigurationIsReadNobodyIsKnown) {
  EXPECT_EQ(Ask(nullptr, jane_).status().code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(Ask(nullptr, PeerCertificate()).status().code(), absl::StatusCode::kUnavailable);
}

TEST_F(AuthenticateTest, AnAuthorityThatIsWithdrawnCountsAtOnce) {
  const ConfigPtr before = TrustingClientsOf(authority_->certificate());
  const ConfigPtr after = TrustingClientsOf(other_->certificate());
  EXPECT_TRUE(Ask(before, jane_).ok());
  EXPECT_EQ(Ask(after, jane_).status().code(), absl::StatusCode::kUnauthenticated);
  EXPECT_TRUE(Ask(before, jane_).ok());
}

TEST_F(AuthenticateTest, ACertificateThatExpiresOnAnOpenConnectionIsRefusedTenSecondsLater) {
  const ConfigPtr config = TrustingClientsOf(authority_->certificate());
  EXPECT_TRUE(Ask(config, jane_, absl::Seconds(3595)).ok());
  EXPECT_TRUE(Ask(config, jane_, absl::Seconds(3604)).ok()) << "remembered";
  EXPECT_FALSE(Ask(config, jane_, absl::Seconds(3605)).ok());
}

TEST_F(AuthenticateTest, EachOfSeveralAuthoritiesCounts) {
  EXPECT_TRUE(
      Ask(TrustingClientsOf(absl::StrCat(other_->certificate(), "\n", authority_->certificate())),
          jane_)
          .ok());
}

TEST_F(AuthenticateTest, AuthoritiesThatAreNoneTrustNobody) {
  for (const char* text :
       {"", "none", "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----"})
    EXPECT_FALSE(Ask(TrustingClientsOf(text), jane_).ok()) << text;
}

TEST_F(AuthenticateTest, BytesThatAreNoCertificateAreNobodys) {
  const PeerCertificate broken({"\x30\x03garbage"}, "admin", {"system:masters"});
  EXPECT_FALSE(Ask(TrustingClientsOf(authority_->certificate()), broken).ok());
}

TEST(UserInfoTest, DifferentUsersHaveDifferentKeys) {
  const UserInfo users[] = {
      {.name = "a", .groups = {"b", "c"}, .extra = {}},
      {.name = "a", .groups = {"b|1:c"}, .extra = {}},
      {.name = "a", .groups = {"b"}, .extra = {}},
      {.name = "a", .uid = "b", .groups = {}, .extra = {}},
      {.name = "a1:b", .groups = {}, .extra = {}},
      {.name = "a", .groups = {}, .extra = {{"k", {"v", "w"}}}},
      {.name = "a", .groups = {}, .extra = {{"k", {"v"}}, {"w", {}}}},
      {.name = "a", .groups = {}, .extra = {{"k", {"v=1:w"}}}},
  };
  for (const UserInfo& a : users) {
    for (const UserInfo& b : users) EXPECT_EQ(&a == &b, a.CacheKey() == b.CacheKey());
  }
  EXPECT_EQ((UserInfo{.name = "a", .groups = {"b", "c"}, .extra = {}}).CacheKey(),
            (UserInfo{.name = "a", .groups = {"c", "b"}, .extra = {}}).CacheKey());
}

}  // namespace
}  // namespace outrigger::controller::adapter

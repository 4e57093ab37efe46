// SPDX-License-Identifier: Apache-2.0
#include "host/base/secret.h"

#include <absl/strings/escaping.h>
#include <gtest/gtest.h>

#include <array>
#include <memory>
#include <sstream>
#include <string>
#include <utility>

namespace outrigger::host {
namespace {

// Short enough to lie inside the std::string itself, so that a test may look where it was.
constexpr char kCanary[] = "hunter2-canary";

// Memory that outlives the Secret in it.
struct Place {
  alignas(Secret) std::array<char, sizeof(Secret)> bytes = {};

  template <typename... Args>
  Secret* Make(Args&&... args) {
    return std::construct_at(reinterpret_cast<Secret*>(bytes.data()), std::forward<Args>(args)...);
  }
  // A part of it suffices: a moved-from text loses its first byte only.
  bool HoldsCanary() const {
    return std::string(bytes.data(), bytes.size()).find("canary") != std::string::npos;
  }
};

TEST(SecretTest, PrintsAsRedactedInStreamsAndTestFailures) {
  const Secret secret(kCanary);
  std::ostringstream stream;
  stream << secret;
  EXPECT_EQ(stream.str(), "<redacted>");
  EXPECT_EQ(testing::PrintToString(secret), "<redacted>");
  EXPECT_EQ(secret.Reveal(), kCanary);
}

TEST(SecretTest, IsWipedWhenItGoes) {
  Place place;
  Secret* secret = place.Make(std::string(kCanary));
  ASSERT_TRUE(place.HoldsCanary()) << "the text is not where the test looks";
  std::destroy_at(secret);
  EXPECT_FALSE(place.HoldsCanary());
}

TEST(SecretTest, IsWipedWhereItWasMovedFrom) {
  Place place;
  Secret* secret = place.Make(std::string(kCanary));
  const Secret target(std::move(*secret));
  EXPECT_FALSE(place.HoldsCanary());
  EXPECT_TRUE(secret->empty());
  EXPECT_EQ(target.Reveal(), kCanary);
  *secret = Secret(kCanary);
  Secret assigned;
  assigned = std::move(*secret);
  EXPECT_FALSE(place.HoldsCanary());
  EXPECT_EQ(assigned.Reveal(), kCanary);
  std::destroy_at(secret);
}

TEST(SecretTest, LeavesNoTailWhenAShorterOneTakesItsPlace) {
  Place place;
  Secret* secret = place.Make(std::string(kCanary));
  const Secret shorter("x");
  *secret = shorter;
  EXPECT_FALSE(place.HoldsCanary());
  EXPECT_EQ(secret->Reveal(), "x");
  std::destroy_at(secret);
}

TEST(SecretTest, SurvivesAssignmentToItself) {
  Secret secret(kCanary);
  Secret& same = secret;
  secret = same;
  EXPECT_EQ(secret.Reveal(), kCanary);
  secret = std::move(same);
  EXPECT_EQ(secret.Reveal(), kCanary);
}

// RFC 4231, test cases 1, 2 and 6 (a key longer than a block).
TEST(HmacSha256Test, IsThatOfRfc4231) {
  struct Vector {
    std::string key;
    std::string text;
    const char* want;
  };
  const Vector vectors[] = {
      {std::string(20, '\x0b'), "Hi There",
       "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7"},
      {"Jefe", "what do ya want for nothing?",
       "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843"},
      {std::string(131, '\xaa'), "Test Using Larger Than Block-Size Key - Hash Key First",
       "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54"},
  };
  for (const Vector& vector : vectors) {
    EXPECT_EQ(absl::BytesToHexString(HmacSha256(vector.key, vector.text)), vector.want)
        << vector.text;
  }
}

TEST(HmacSha256Test, AnEmptyKeyAndTextAreAllowed) {
  EXPECT_EQ(absl::BytesToHexString(HmacSha256(absl::string_view(), absl::string_view())),
            "b613679a0814d9ec772f95d778c35fc5ff1697c493715653c6c712144292c5ad");
}

TEST(RandomBytesTest, AreOfTheWantedLengthAndNotTwiceTheSame) {
  const std::string first = RandomBytes(32);
  EXPECT_EQ(first.size(), 32u);
  EXPECT_NE(first, RandomBytes(32));
}

}  // namespace
}  // namespace outrigger::host

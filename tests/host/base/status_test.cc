// SPDX-License-Identifier: Apache-2.0
#include "host/base/status.h"

#include <absl/strings/cord.h>
#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <utility>

#include "tests/host/base/coroutine_runner.h"

namespace outrigger::host {
namespace {

TEST(AnnotateTest, PutsContextBeforeTheMessageAndKeepsCodeAndPayload) {
  absl::Status status = absl::NotFoundError("no such key");
  status.SetPayload("type/retry", absl::Cord("30"));
  const absl::Status annotated = Annotate(status, "Secret ", "shop/redis", " key ", 7);
  EXPECT_EQ(annotated.code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(annotated.message(), "Secret shop/redis key 7: no such key");
  EXPECT_EQ(annotated.GetPayload("type/retry"), absl::Cord("30"));
}

TEST(AnnotateTest, OkStaysOk) { EXPECT_TRUE(Annotate(absl::OkStatus(), "context").ok()); }

TEST(DescribeTest, NamesTheCode) {
  EXPECT_EQ(Describe(absl::OkStatus()), "OK");
  EXPECT_EQ(Describe(absl::UnavailableError("refused")), "UNAVAILABLE: refused");
}

absl::StatusOr<std::unique_ptr<int>> MakeInt(bool good) {
  if (!good) return absl::InternalError("no int");
  return std::make_unique<int>(7);
}

absl::Status Use(bool good, int* seen) {
  ASSIGN_OR_RETURN(const std::unique_ptr<int> value, MakeInt(good));
  *seen = *value;
  RETURN_IF_ERROR(absl::CancelledError("at the end"));
  return absl::OkStatus();
}

TEST(StatusMacrosTest, ReturnTheErrorOrGoOnWithTheMovedValue) {
  int seen = 0;
  EXPECT_EQ(Use(false, &seen), absl::InternalError("no int"));
  EXPECT_EQ(seen, 0);
  EXPECT_EQ(Use(true, &seen), absl::CancelledError("at the end"));
  EXPECT_EQ(seen, 7);
}

Task<absl::Status> CoUse(bool good, int* seen) {
  CO_ASSIGN_OR_RETURN(const std::unique_ptr<int> value, MakeInt(good));
  *seen = *value;
  CO_RETURN_IF_ERROR(absl::CancelledError("at the end"));
  co_return absl::OkStatus();
}

TEST(StatusMacrosTest, TheCoFormsDoTheSameInACoroutine) {
  CoroutineRunner runner;
  int seen = 0;
  for (const bool good : {false, true}) {
    absl::Status result;
    runner.Start([](bool is_good, int* out, absl::Status* status) -> Task<void> {
      *status = co_await CoUse(is_good, out);
    }(good, &seen, &result));
    EXPECT_EQ(result.message(), good ? "at the end" : "no int");
  }
  EXPECT_EQ(seen, 7);
}

}  // namespace
}  // namespace outrigger::host

// SPDX-License-Identifier: Apache-2.0
#include <absl/strings/match.h>
#include <absl/strings/numbers.h>
#include <absl/strings/str_cat.h>
#include <absl/strings/str_join.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "tests/conformance/generator.h"
#include "tests/conformance/server.h"
#include "tests/conformance/session.h"

namespace outrigger::conformance {
namespace {

constexpr uint64_t kSequences = 200;
constexpr int kOperations = 30;

// PUT creates Leases. MemoryApi refuses that, and nothing else here.
bool IsRefusedOnPurpose(const Outcome& outcome) {
  return outcome.code == "UNIMPLEMENTED" &&
         absl::StrContains(outcome.message, "creating an object by an update");
}

class SequencesTest : public testing::Test {
 protected:
  // False when the two differed: the sequence and where is in the failure.
  bool RunSequence(uint64_t seed) {
    const std::string namespace_name = absl::StrCat("sequence-", seed);
    const std::unique_ptr<Server> memory_server = MakeMemoryServer();
    Generator generator(seed);
    Session memory(*memory_server, namespace_name, generator.kinds());
    Session real(*real_server_, namespace_name, generator.kinds());
    std::vector<std::string> done;
    for (int i = 0; i < kOperations; ++i) {
      const Operation operation = generator.Next();
      const Outcome got = memory.Run(operation);
      if (IsRefusedOnPurpose(got)) continue;
      const Outcome want = real.Run(operation);
      done.push_back(absl::StrCat(operation.ToString(), "\n    -> ", want.code));
      ++answers_[want.code];
      EXPECT_EQ(got.ToString(), want.ToString());
      if (!(got == want)) {
        ADD_FAILURE() << "seed " << seed << ", the last operation of:\n"
                      << absl::StrJoin(done, "\n");
        return false;
      }
    }
    const Session::Events in_memory = memory.Finish();
    const Session::Events in_truth = real.Finish();
    EXPECT_EQ(in_memory, in_truth) << "seed " << seed << ":\n" << absl::StrJoin(done, "\n");
    return in_memory == in_truth;
  }

  const std::unique_ptr<Server> real_server_ = MakeRealServer();
  std::map<std::string, int> answers_;  // how often each code came
};

TEST_F(SequencesTest, BothServersAnswerAlike) {
  uint64_t only = 0;
  if (const char* seed = std::getenv("OUTRIGGER_CONFORMANCE_SEED")) {
    ASSERT_TRUE(absl::SimpleAtoi(seed, &only)) << seed;
    RunSequence(only);
    return;
  }
  int failed = 0;
  for (uint64_t seed = 1; seed <= kSequences && failed < 3; ++seed) {
    if (!RunSequence(seed)) ++failed;
  }
  if (failed > 0) return;
  // Sequences that hit nothing would agree on anything.
  EXPECT_GT(answers_["OK"], static_cast<int>(kSequences) * kOperations / 3);
  for (const char* code :
       {"404 NotFound", "409 AlreadyExists", "409 Conflict", "422 Invalid", "400 BadRequest"}) {
    EXPECT_GT(answers_[code], 50) << code;
  }
  for (const auto& [code, count] : answers_) std::printf("%6d %s\n", count, code.c_str());
}

}  // namespace
}  // namespace outrigger::conformance

// SPDX-License-Identifier: Apache-2.0
//
// What docs/adr/0001-compiler.md is about: temporaries of a co_await expression are made and
// destroyed once each. g++ 12 destroys aggregates and the captures of lambdas twice there, which is
// a double free of every std::string in them.
//
// The counted type also remembers which of its objects live, so that a second destruction shows as
// one of a stranger and not only in a sum that might come out even.
#include <gtest/gtest.h>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <set>
#include <string>
#include <utility>

#include "host/base/task.h"

namespace outrigger {
namespace {

using host::Task;

std::set<const void*> living;
int strangers_destroyed = 0;

class Counted {
 public:
  explicit Counted(std::string text) : text_(std::move(text)) { living.insert(this); }
  Counted(const Counted& other) : text_(other.text_) { living.insert(this); }
  Counted(Counted&& other) noexcept : text_(std::move(other.text_)) { living.insert(this); }
  Counted& operator=(const Counted&) = default;
  Counted& operator=(Counted&&) noexcept = default;
  ~Counted() {
    if (living.erase(this) == 0) ++strangers_destroyed;
  }
  const std::string& text() const { return text_; }

 private:
  std::string text_;
};

struct Options {
  Counted first;
  Counted second;
};

// Long enough to lie on the heap, where a second free is noticed.
const char kText[] = "a text that does not fit into the string itself";

Task<void> Suspend() {
  const host::Executor executor = co_await boost::asio::this_coro::executor;
  co_await boost::asio::post(executor, boost::asio::use_awaitable);
}

Task<size_t> TakeByValue(Options options) {
  co_await Suspend();
  co_return options.first.text().size() + options.second.text().size();
}

// The trap itself: an aggregate by reference, alive until the full expression ends.
Task<size_t> TakeByReference(const Options& options) {
  co_await Suspend();
  co_return options.first.text().size() + options.second.text().size();
}

template <typename Function>
Task<size_t> Call(Function function) {
  co_await Suspend();
  co_return function();
}

class Member {
 public:
  Task<size_t> Take(Options options) const {
    co_await Suspend();
    co_return options.first.text().size();
  }
};

class CoroutineTemporariesTest : public testing::Test {
 protected:
  void SetUp() override {
    living.clear();
    strangers_destroyed = 0;
  }

  void Run(Task<size_t> task, size_t want) {
    boost::asio::io_context io(1);
    size_t got = 0;
    boost::asio::co_spawn(io, Store(std::move(task), &got), boost::asio::detached);
    io.run();
    EXPECT_EQ(got, want);
    EXPECT_EQ(strangers_destroyed, 0) << "objects were destroyed twice";
    EXPECT_TRUE(living.empty()) << living.size() << " objects were never destroyed";
  }

  static Task<void> Store(Task<size_t> task, size_t* out) {
    const size_t value = co_await std::move(task);
    *out = value;
  }
};

constexpr size_t kLength = sizeof(kText) - 1;

TEST_F(CoroutineTemporariesTest, AnAggregateByValueLivesOnce) {
  auto caller = []() -> Task<size_t> {
    const Counted text(kText);
    const size_t size = co_await TakeByValue({.first = text, .second = text});
    co_return size;
  };
  Run(caller(), 2 * kLength);
}

TEST_F(CoroutineTemporariesTest, AnAggregateByReferenceLivesOnce) {
  auto caller = []() -> Task<size_t> {
    const Counted text(kText);
    const size_t size = co_await TakeByReference({.first = text, .second = text});
    co_return size;
  };
  Run(caller(), 2 * kLength);
}

TEST_F(CoroutineTemporariesTest, AnAggregateForAMemberFunctionLivesOnce) {
  auto caller = []() -> Task<size_t> {
    const Member member;
    const size_t size = co_await member.Take({.first = Counted(kText), .second = Counted(kText)});
    co_return size;
  };
  Run(caller(), kLength);
}

TEST_F(CoroutineTemporariesTest, CapturesOfALambdaArgumentLiveOnce) {
  auto caller = []() -> Task<size_t> {
    const Counted text(kText);
    const size_t size = co_await Call([text] { return text.text().size(); });
    co_return size;
  };
  Run(caller(), kLength);
}

// Not written in our code all the same (a lint sees to it): it is right here, but nobody should
// have to know.
TEST_F(CoroutineTemporariesTest, BranchesOfAConditionalLiveOnce) {
  auto caller = [](bool first) -> Task<size_t> {
    const Counted text(kText);
    const Options options{.first = text, .second = text};
    const size_t size = first ? co_await TakeByValue({.first = text, .second = text})
                              : co_await TakeByReference(options) + 1;
    co_return size;
  };
  Run(caller(true), 2 * kLength);
  Run(caller(false), 2 * kLength + 1);
}

}  // namespace
}  // namespace outrigger

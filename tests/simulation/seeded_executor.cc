// SPDX-License-Identifier: Apache-2.0
#include "tests/simulation/seeded_executor.h"

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/execution.hpp>
#include <boost/asio/execution_context.hpp>
#include <cstdio>
#include <cstdlib>
#include <utility>
#include <vector>

#include "host/base/random.h"

namespace outrigger::simulation {

namespace execution = boost::asio::execution;

struct SeededExecutor::State : boost::asio::execution_context {
  explicit State(uint64_t seed) : random(seed) {}

  void Add(std::function<void()> handler) {
    if (!closed) ready.push_back(std::move(handler));
  }
  void RunOne() {
    std::swap(ready[random.Next() % ready.size()], ready.back());
    const std::function<void()> handler = std::move(ready.back());
    ready.pop_back();
    ++turns;
    handler();
  }
  // A dropped coroutine unwinds by posting to its executor, which drops that in its turn.
  void Close() {
    closed = true;
    const std::vector<std::function<void()>> dropped = std::exchange(ready, {});
  }

  host::Random random;
  std::vector<std::function<void()>> ready;
  uint64_t turns = 0;
  bool closed = false;
};

// The executor itself, as Asio copies it about. Shares the state, so that a coroutine that is
// dropped late, by a timer of the clock, still finds it.
class SeededExecutor::Handle {
 public:
  explicit Handle(std::shared_ptr<State> state) : state_(std::move(state)) {}

  template <typename F>
  void execute(F handler) const {
    auto shared = std::make_shared<F>(std::move(handler));  // move-only, std::function copies
    state_->Add([shared] { std::move (*shared)(); });
  }
  boost::asio::execution_context& query(execution::context_t) const noexcept { return *state_; }
  static constexpr execution::blocking_t::never_t query(execution::blocking_t) noexcept {
    return {};
  }
  Handle require(execution::blocking_t::never_t) const { return *this; }
  friend bool operator==(const Handle&, const Handle&) noexcept = default;

 private:
  std::shared_ptr<State> state_;
};

SeededExecutor::SeededExecutor(host::FakeClock& clock, uint64_t seed)
    : clock_(clock), state_(std::make_shared<State>(seed)) {}

SeededExecutor::~SeededExecutor() { state_->Close(); }

host::Executor SeededExecutor::executor() const { return Handle(state_); }

uint64_t SeededExecutor::turns() const { return state_->turns; }

bool SeededExecutor::RunUntil(const std::function<bool()>& done, absl::Duration limit) {
  constexpr int kTurnsAtOneInstant = 5'000'000;
  const host::SteadyTime end = clock_.SteadyNow() + limit;
  for (int turns = 0; !done();) {
    if (!state_->ready.empty()) {
      state_->RunOne();
      if (++turns > kTurnsAtOneInstant) {
        std::fprintf(stderr, "SeededExecutor: time stands still after %d turns: a busy loop\n",
                     turns);
        std::abort();
      }
    } else if (clock_.AdvanceToNextTimer(end)) {
      turns = 0;
    } else {
      clock_.Advance(end - clock_.SteadyNow());
      return done();
    }
  }
  return true;
}

void SeededExecutor::RunFor(absl::Duration duration) {
  RunUntil([] { return false; }, duration);
}

}  // namespace outrigger::simulation

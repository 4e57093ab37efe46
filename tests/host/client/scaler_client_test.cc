// SPDX-License-Identifier: Apache-2.0
//
// PluginDirectory and ScalerClient against a scripted plugin, in virtual time.
#include "host/client/scaler_client.h"

#include <absl/strings/str_cat.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>

#include "host/base/fake_clock.h"
#include "host/base/logging.h"
#include "host/base/status.h"
#include "host/client/plugin_directory.h"
#include "tests/host/client/fake_plugin.h"

namespace outrigger::host {
namespace {

namespace asio = boost::asio;
using testing::ElementsAre;
using testing::Gt;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Le;
using Answer = absl::StatusOr<MetricsAnswer>;

TriggerPtr MakeTrigger(const std::string& say, const std::string& password = "") {
  scaler::v1::Trigger trigger;
  trigger.set_type("depth");
  (*trigger.mutable_metadata())["say"] = say;
  if (!password.empty()) (*trigger.mutable_authentication())["password"] = password;
  SetFingerprint(trigger, false, "key");
  return std::make_shared<const scaler::v1::Trigger>(std::move(trigger));
}

class ScalerClientTest : public testing::Test {
 protected:
  ScalerClientTest() : plugin_(clock_) {
    plugin_.description.add_trigger_types()->set_name("depth");
  }
  ~ScalerClientTest() override {
    if (directory_ != nullptr) Stop();
  }

  void Start(const std::string& address = "scalers.example:9666",
             PluginDirectory::Options options = {}) {
    options.plugins.push_back(*ParsePluginFlag(absl::StrCat("faker=", address)));
    directory_ =
        std::make_unique<PluginDirectory>(io_.get_executor(), clock_, Logger(MakeNullSink()), 1,
                                          plugin_.Connector(), std::move(options));
    client_ = std::make_unique<ScalerClient>(*directory_, ScalerClient::Options());
    client_->SetChangeListener(
        [this](std::vector<std::string> types) { changes_.push_back(std::move(types)); });
    ASSERT_TRUE(directory_->Start().ok());
    Settle();
  }
  void Stop() {
    Run(Await(directory_->Stop()));
    client_.reset();
    directory_.reset();
  }
  static Task<bool> Await(Task<void> task) {
    co_await std::move(task);
    co_return true;
  }

  // Runs what can run now.
  void Settle() {
    io_.restart();
    io_.poll();
  }
  void Advance(absl::Duration d) {
    const SteadyTime target = clock_.SteadyNow() + d;
    Settle();
    while (clock_.AdvanceToNextTimer(target)) Settle();
    clock_.Advance(target - clock_.SteadyNow());
    Settle();
  }

  // A coroutine under way, and its result.
  template <typename T>
  using Pending = std::shared_ptr<std::optional<T>>;
  template <typename T>
  Pending<T> Begin(Task<T> task) {
    auto result = std::make_shared<std::optional<T>>();
    asio::co_spawn(io_, std::move(task), [result](const std::exception_ptr&, T value) {
      result->emplace(std::move(value));
    });
    return result;
  }
  // Moves the clock until it has ended.
  template <typename T>
  T Finish(const Pending<T>& pending) {
    const SteadyTime limit = clock_.SteadyNow() + absl::Minutes(1);
    Settle();
    while (!pending->has_value() && clock_.AdvanceToNextTimer(limit)) Settle();
    EXPECT_TRUE(pending->has_value()) << "not ended within a minute";
    return std::move(**pending);
  }
  template <typename T>
  T Run(Task<T> task) {
    return Finish(Begin(std::move(task)));
  }

  Task<Answer> Read(const std::string& say, const std::string& metric = "depth") {
    return client_->GetMetrics(MakeTrigger(say), {.metric_name = metric},
                               Deadline::After(clock_, absl::Seconds(3)));
  }
  Task<Answer> Poll(const std::string& say) {
    return client_->GetMetrics(MakeTrigger(say), {.metric_name = "depth", .poll = true},
                               Deadline::After(clock_, absl::Seconds(3)));
  }

  struct Settled {
    Answer answer;
    absl::Duration after;
  };
  // Polls one trigger per `say` as one batch, and tells when each was answered.
  std::vector<Settled> PollBatch(const std::vector<std::string>& says) {
    std::vector<BatchItem> items;
    items.reserve(says.size());
    for (const std::string& say : says) {
      items.push_back(
          {.trigger = MakeTrigger(say), .query = {.metric_name = "depth", .poll = true}});
    }
    std::vector<std::optional<Settled>> settled(says.size());
    const SteadyTime started = clock_.SteadyNow();
    Run(Await(client_->BatchGetMetrics(
        std::move(items),
        [&](size_t i, Answer answer) {
          EXPECT_FALSE(settled[i].has_value()) << "item " << i << " answered twice";
          settled[i] = Settled{std::move(answer), clock_.SteadyNow() - started};
        },
        Deadline::After(clock_, absl::Seconds(10)))));
    std::vector<Settled> all;
    for (std::optional<Settled>& one : settled) {
      EXPECT_TRUE(one.has_value());
      if (one) all.push_back(*std::move(one));
    }
    return all;
  }
  // Five polls that nobody answers, and the health check after them.
  void HangUntilTheBreakerOpens() {
    plugin_.hung = true;
    for (int i = 0; i < 5; ++i) EXPECT_FALSE(Run(Poll("7")).ok());
    Advance(absl::Seconds(1));
  }

  FakeClock clock_;
  asio::io_context io_;
  FakePlugin plugin_;
  std::unique_ptr<PluginDirectory> directory_;
  std::unique_ptr<ScalerClient> client_;
  std::vector<std::vector<std::string>> changes_;
};

// ---- connecting -----------------------------------------------------------------------------

// Case B128. Case B062.
TEST_F(ScalerClientTest, DialsARefusingPluginWithDoublingDelays) {
  plugin_.describe_status = absl::UnavailableError("refused");
  Start();
  Advance(absl::Minutes(5));
  ASSERT_THAT(plugin_.dials.size(), Gt(30));
  EXPECT_THAT(plugin_.dials.size(), Le(75)) << "after the ramp every 5 to 10 s";
  absl::Duration wanted = absl::Milliseconds(100);
  for (size_t i = 1; i < plugin_.dials.size(); ++i) {
    const absl::Duration delay = plugin_.dials[i] - plugin_.dials[i - 1];
    EXPECT_GE(delay, wanted / 2) << "dial " << i;
    EXPECT_LE(delay, wanted + absl::Milliseconds(1)) << "dial " << i;
    wanted = std::min(wanted * 2, absl::Seconds(10));
  }
}

// Case B128. Case B060.
TEST_F(ScalerClientTest, DialsFastAgainAfterAGoodMinute) {
  plugin_.describe_status = absl::UnavailableError("refused");
  Start();
  Advance(absl::Minutes(5));
  plugin_.describe_status = absl::OkStatus();
  Advance(absl::Seconds(10));
  ASSERT_EQ(directory_->Plugins().at(0).state, PluginState::kReady);
  Advance(absl::Minutes(1));
  plugin_.connected = false;
  Advance(absl::Milliseconds(200));  // seen within 100 ms, dialled within 100 ms
  plugin_.connected = true;
  EXPECT_EQ(clock_.SteadyNow() - plugin_.dials.back() < absl::Milliseconds(200), true);
}

TEST_F(ScalerClientTest, TellsWhichTypesComeGoAndComeAgain) {
  Start();
  EXPECT_THAT(changes_, ElementsAre(ElementsAre("depth")));
  plugin_.connected = false;
  Advance(absl::Milliseconds(100));
  EXPECT_EQ(changes_.size(), 2);
  plugin_.connected = true;
  Advance(absl::Seconds(1));
  EXPECT_EQ(changes_.size(), 3);
}

TEST_F(ScalerClientTest, TellsOfTypesThatAreAnnouncedNewOrNoLonger) {
  Start();
  plugin_.connected = false;
  Advance(absl::Milliseconds(100));
  changes_.clear();
  plugin_.connected = true;
  plugin_.description.mutable_trigger_types(0)->set_name("width");
  Advance(absl::Seconds(1));
  EXPECT_THAT(changes_, ElementsAre(ElementsAre("depth", "width")));
  EXPECT_EQ(client_->PluginFor("depth"), std::nullopt);
  EXPECT_EQ(client_->PluginFor("width"), "faker");
}

TEST_F(ScalerClientTest, KeepsTheSchemaWhileThePluginIsAway) {
  Start();
  plugin_.connected = false;
  plugin_.describe_status = absl::UnavailableError("refused");
  Advance(absl::Minutes(1));
  EXPECT_TRUE(client_->SchemaFor("depth").has_value());
  EXPECT_EQ(client_->PluginFor("depth"), "faker");
  const Answer answer = Run(Read("7"));
  EXPECT_TRUE(IsPluginUnreachable(answer.status()));
  EXPECT_THAT(std::string(answer.status().message()),
              HasSubstr("plugin faker: not connected since 2023-11-14T22:13:20"));
  EXPECT_THAT(std::string(answer.status().message()), HasSubstr("refused"));
}

TEST_F(ScalerClientTest, RefusesAPluginThatDescribesItselfWrongly) {
  plugin_.description.add_trigger_types()->set_name("depth");
  Start();
  const PluginStatus status = directory_->Plugins().at(0);
  EXPECT_EQ(status.state, PluginState::kRefused);
  EXPECT_THAT(status.reason, HasSubstr("trigger type \"depth\": want each name once"));
  EXPECT_EQ(client_->PluginFor("depth"), std::nullopt);
}

TEST_F(ScalerClientTest, RefusesAServerThatIsNoScaler) {
  plugin_.describe_status = absl::UnimplementedError("unknown service");
  Start();
  EXPECT_EQ(directory_->Plugins().at(0).state, PluginState::kRefused);
}

TEST_F(ScalerClientTest, SaysWhyNobodyServesAType) {
  Start();
  scaler::v1::Trigger trigger;
  trigger.set_type("redis");
  const Answer answer =
      Run(client_->GetMetrics(std::make_shared<const scaler::v1::Trigger>(trigger), {},
                              Deadline::After(clock_, absl::Seconds(3))));
  EXPECT_EQ(answer.status().code(), absl::StatusCode::kUnavailable);
  EXPECT_TRUE(IsPluginUnreachable(answer.status()));
  EXPECT_EQ(answer.status().message(),
            "trigger type redis: no plugin serves it; it is bound to plugin redis, which is not "
            "there");
}

// Case B157, as far as it concerns us: nothing of a plugin is left when the operator stops.
TEST_F(ScalerClientTest, StopEndsCallsAtOnce) {
  Start();
  plugin_.hung = true;
  const auto pending = Begin(Poll("7"));
  Settle();
  const SteadyTime before = clock_.SteadyNow();
  Stop();
  EXPECT_LT(clock_.SteadyNow() - before, absl::Milliseconds(200));
  ASSERT_TRUE(pending->has_value());
  EXPECT_EQ((*pending)->status().code(), absl::StatusCode::kCancelled);
}

// ---- one question ---------------------------------------------------------------------------

// Shows R14. Equal questions in flight become one call.
TEST_F(ScalerClientTest, EqualReadsInFlightBecomeOneCall) {
  Start();
  plugin_.latency = absl::Milliseconds(50);
  std::vector<Pending<Answer>> pending;
  pending.reserve(256);
  for (int i = 0; i < 100; ++i) pending.push_back(Begin(Read("7")));
  Advance(absl::Milliseconds(20));
  for (int i = 0; i < 100; ++i) pending.push_back(Begin(Read("7")));
  for (const auto& one : pending) {
    const Answer answer = Finish(one);
    ASSERT_TRUE(answer.ok()) << answer.status();
    EXPECT_EQ(answer->values.at(0).value(), 7);
  }
  EXPECT_EQ(plugin_.gets, 1);
  EXPECT_THAT(plugin_.batches, IsEmpty());
}

TEST_F(ScalerClientTest, OtherMetricsSelectorsAndTriggersAreOtherQuestions) {
  Start();
  std::vector<Pending<Answer>> pending = {Begin(Read("7")), Begin(Read("8")),
                                          Begin(Read("7", "width"))};
  pending.push_back(
      Begin(client_->GetMetrics(MakeTrigger("7"), {.metric_name = "depth", .selector = "a=b"},
                                Deadline::After(clock_, absl::Seconds(3)))));
  for (const auto& one : pending) EXPECT_TRUE(Finish(one).ok());
  EXPECT_THAT(plugin_.batches, ElementsAre(4));
}

// Case B070. The reads of an HPA sync travel together.
TEST_F(ScalerClientTest, ReadsWithinFiveMillisecondsGoAsOneBatch) {
  Start();
  std::vector<Pending<Answer>> pending;
  pending.reserve(256);
  for (int i = 0; i < 10; ++i) pending.push_back(Begin(Read(absl::StrCat(i))));
  Advance(absl::Milliseconds(4));
  pending.push_back(Begin(Read("late")));
  Advance(absl::Milliseconds(2));
  pending.push_back(Begin(Read("too late")));
  for (const auto& one : pending) EXPECT_TRUE(Finish(one).ok());
  EXPECT_THAT(plugin_.batches, ElementsAre(11));
  EXPECT_EQ(plugin_.gets, 1);
}

TEST_F(ScalerClientTest, PollsAreNeverMergedWithReads) {
  Start();
  plugin_.latency = absl::Milliseconds(50);
  const auto read = Begin(Read("7"));
  const auto poll = Begin(Poll("7"));
  EXPECT_TRUE(Finish(read).ok());
  EXPECT_TRUE(Finish(poll).ok());
  EXPECT_EQ(plugin_.gets, 2);
}

// Shows R24.
TEST_F(ScalerClientTest, TriesOnceMoreWhenTheSourceBlinked) {
  Start();
  plugin_.next_errors = {absl::UnavailableError("blink")};
  EXPECT_TRUE(Run(Poll("7")).ok());
  EXPECT_EQ(plugin_.gets, 2);
}

// Shows R24.
TEST_F(ScalerClientTest, TriesOnceMoreOnly) {
  Start();
  plugin_.next_errors = {absl::UnavailableError("one"), absl::UnavailableError("two"),
                         absl::UnavailableError("three")};
  const Answer answer = Run(Poll("7"));
  EXPECT_EQ(answer.status(), absl::UnavailableError("plugin faker: two"));
  EXPECT_FALSE(IsPluginUnreachable(answer.status())) << "the plugin answered, its source did not";
  EXPECT_EQ(plugin_.gets, 2);
}

TEST_F(ScalerClientTest, DoesNotTryAgainWhatIsNoBlink) {
  Start();
  plugin_.next_errors = {absl::PermissionDeniedError("user app may not LLEN")};
  EXPECT_EQ(Run(Poll("7")).status(),
            absl::PermissionDeniedError("plugin faker: user app may not LLEN"));
  absl::Status later = absl::UnavailableError("rate limit");
  SetRetryAfter(later, absl::Seconds(5));
  plugin_.next_errors = {later};
  EXPECT_EQ(RetryAfter(Run(Poll("7")).status()), absl::Seconds(5));
  EXPECT_EQ(plugin_.gets, 2);
}

// Shows R24. Every call has a deadline.
TEST_F(ScalerClientTest, HungCallEndsAtItsTimeout) {
  Start();
  const SteadyTime started = clock_.SteadyNow();
  const Answer answer = Run(client_->GetMetrics(MakeTrigger("hang"), {.timeout = absl::Seconds(2)},
                                                Deadline::After(clock_, absl::Seconds(10))));
  EXPECT_EQ(answer.status(), absl::DeadlineExceededError("plugin faker: no answer within 2s"));
  EXPECT_EQ(clock_.SteadyNow() - started, absl::Seconds(2));
}

// Case B130. A plugin without an RPC that everything needs: the error names it.
TEST_F(ScalerClientTest, NamesTheMethodThatAPluginLacks) {
  Start();
  plugin_.has_specs = false;
  const auto specs = Run(client_->GetMetricSpecForScaling(
      MakeTrigger("7"), Deadline::After(clock_, absl::Seconds(3))));
  EXPECT_EQ(specs.status(),
            absl::UnimplementedError("plugin faker: GetMetricSpecForScaling: no such method"));
  const auto violations =
      Run(client_->ValidateTrigger(MakeTrigger("7"), Deadline::After(clock_, absl::Seconds(3))));
  ASSERT_TRUE(violations.ok()) << "validation is optional: " << violations.status();
  EXPECT_THAT(*violations, IsEmpty());
}

TEST_F(ScalerClientTest, SendsNoSecretOverAPlainConnection) {
  Start("127.0.0.1:9666");
  EXPECT_TRUE(Run(Poll("7")).ok());
  const Answer answer = Run(client_->GetMetrics(MakeTrigger("7", "hunter2"), {.poll = true},
                                                Deadline::After(clock_, absl::Seconds(3))));
  EXPECT_EQ(answer.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(answer.status().message()),
              HasSubstr("want a Unix socket or mutual TLS"));
  EXPECT_EQ(plugin_.gets, 1);
}

// ---- batches --------------------------------------------------------------------------------

// Shows R24. One hung source holds nobody up.
TEST_F(ScalerClientTest, OneHungEntryOfABatchCostsItselfOnly) {
  Start();
  std::vector<std::string> says(200, "7");
  says[100] = "hang";
  const std::vector<Settled> settled = PollBatch(says);
  ASSERT_EQ(settled.size(), 200);
  for (size_t i = 0; i < settled.size(); ++i) {
    EXPECT_EQ(settled[i].answer.ok(), i != 100) << i;
    EXPECT_EQ(settled[i].after, i == 100 ? absl::Seconds(3) : absl::ZeroDuration()) << i;
  }
  EXPECT_EQ(settled[100].answer.status().code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_THAT(plugin_.batches, ElementsAre(200));
}

TEST_F(ScalerClientTest, SplitsAThousandPollsIntoFiveCalls) {
  Start();
  EXPECT_EQ(PollBatch(std::vector<std::string>(1000, "7")).size(), 1000);
  EXPECT_THAT(plugin_.batches, ElementsAre(200, 200, 200, 200, 200));
}

TEST_F(ScalerClientTest, ErrorsOfEntriesKeepTheirCodes) {
  Start();
  const std::vector<Settled> settled = PollBatch({"error:7", "7", "error:4"});
  EXPECT_EQ(settled[0].answer.status(), absl::PermissionDeniedError("plugin faker: as told"));
  EXPECT_TRUE(settled[1].answer.ok());
  EXPECT_EQ(settled[2].answer.status(), absl::DeadlineExceededError("plugin faker: as told"));
}

TEST_F(ScalerClientTest, AsksOneByOneWhereThereIsNoBatchAndRemembersIt) {
  plugin_.has_batch = false;
  Start();
  plugin_.latency = absl::Milliseconds(10);
  for (const Settled& one : PollBatch(std::vector<std::string>(100, "7"))) {
    EXPECT_TRUE(one.answer.ok()) << one.answer.status();
  }
  EXPECT_EQ(plugin_.gets, 100);
  EXPECT_EQ(plugin_.most_gets_at_once, 16);
  PollBatch({"7", "8"});
  EXPECT_THAT(plugin_.batches, ElementsAre(100)) << "tried once only";

  plugin_.connected = false;
  Advance(absl::Milliseconds(100));
  plugin_.connected = plugin_.has_batch = true;
  Advance(absl::Seconds(1));
  PollBatch({"7", "8"});
  EXPECT_THAT(plugin_.batches, ElementsAre(100, 2)) << "another process may have it";
}

TEST_F(ScalerClientTest, AnAnswerThatIsTooLargeCostsItselfOnly) {
  Start();
  const std::vector<Settled> settled = PollBatch({"7", "big", "7"});
  EXPECT_TRUE(settled[0].answer.ok());
  EXPECT_EQ(settled[1].answer.status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_TRUE(settled[2].answer.ok()) << settled[2].answer.status();
}

TEST_F(ScalerClientTest, BatchToAPluginThatIsAwayFailsAtOnce) {
  Start();
  plugin_.connected = false;
  for (const Settled& one : PollBatch({"7", "8"})) {
    EXPECT_TRUE(IsPluginUnreachable(one.answer.status())) << one.answer.status();
    EXPECT_EQ(one.after, absl::ZeroDuration());
  }
}

// ---- bulkheads ------------------------------------------------------------------------------

TEST_F(ScalerClientTest, ASilentPluginFailsAtOnceUntilAProbeIsAnswered) {
  Start();
  HangUntilTheBreakerOpens();
  EXPECT_EQ(plugin_.checks, 1);
  const PluginStatus status = directory_->Plugins().at(0);
  EXPECT_EQ(status.state, PluginState::kUnavailable);

  const SteadyTime started = clock_.SteadyNow();
  const Answer refused = Run(Poll("7"));
  EXPECT_EQ(clock_.SteadyNow(), started);
  EXPECT_TRUE(IsPluginUnreachable(refused.status()));
  EXPECT_THAT(std::string(refused.status().message()),
              HasSubstr("plugin faker: no answer since 2023-11-14T22:13:23"));

  plugin_.hung = false;
  changes_.clear();
  Advance(absl::Seconds(4));
  EXPECT_TRUE(Run(Poll("7")).ok());
  EXPECT_THAT(changes_, ElementsAre(ElementsAre("depth"))) << "its objects are new work";
}

// Case B081. Slow sources are the plugin's answers, or pass its health check.
TEST_F(ScalerClientTest, BlackHoledSourcesDoNotOpenTheBreaker) {
  Start();
  for (int i = 0; i < 12; ++i) EXPECT_FALSE(Run(Poll("hang")).ok());
  EXPECT_EQ(plugin_.checks, 2);
  EXPECT_TRUE(Run(Poll("7")).ok());
  for (int i = 0; i < 12; ++i) PollBatch({"error:4"});
  EXPECT_EQ(plugin_.checks, 2) << "an entry's DEADLINE_EXCEEDED is an answer";
}

// Case B060. A remote plugin that is silent may have moved.
TEST_F(ScalerClientTest, DialsASilentRemotePluginAnew) {
  Start();
  HangUntilTheBreakerOpens();
  Advance(absl::Seconds(20));
  EXPECT_THAT(plugin_.describes, Gt(1));
  plugin_.hung = false;
  Advance(absl::Seconds(15));
  EXPECT_TRUE(Run(Poll("7")).ok());
}

TEST_F(ScalerClientTest, AsksNoMoreAtOnceThanThePluginTakes) {
  plugin_.description.mutable_limits()->set_max_concurrent_calls(4);
  Start();
  plugin_.latency = absl::Milliseconds(100);
  std::vector<Pending<Answer>> pending;
  pending.reserve(256);
  for (int i = 0; i < 20; ++i) pending.push_back(Begin(Poll(absl::StrCat(i))));
  for (const auto& one : pending) EXPECT_TRUE(Finish(one).ok());
  EXPECT_EQ(plugin_.most_gets_at_once, 4);
}

TEST_F(ScalerClientTest, AHungPluginHoldsAtMostSoManyCallers) {
  Start();
  plugin_.hung = true;
  std::vector<Pending<Answer>> pending;
  pending.reserve(256);
  for (int i = 0; i < 256; ++i) pending.push_back(Begin(Poll(absl::StrCat(i))));
  Settle();
  EXPECT_EQ(directory_->Plugins().at(0).waiting_calls, 256);
  EXPECT_EQ(plugin_.gets, 64);
  const SteadyTime started = clock_.SteadyNow();
  const Answer refused = Run(Poll("one more"));
  EXPECT_EQ(clock_.SteadyNow(), started);
  EXPECT_TRUE(IsPluginUnreachable(refused.status()));
  EXPECT_THAT(std::string(refused.status().message()), HasSubstr("256 calls wait"));
  for (const auto& one : pending) EXPECT_FALSE(Finish(one).ok());
  EXPECT_EQ(directory_->Plugins().at(0).waiting_calls, 0);
}

}  // namespace
}  // namespace outrigger::host

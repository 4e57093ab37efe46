// SPDX-License-Identifier: Apache-2.0
//
// PluginDirectory and ScalerClient against real processes over real sockets.
#include "tests/support/process.h"

#include <absl/strings/match.h>
#include <absl/strings/numbers.h>
#include <absl/strings/str_cat.h>
#include <absl/strings/str_join.h>
#include <absl/strings/str_split.h>
#include <absl/strings/strip.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/use_future.hpp>
#include <cstdlib>
#include <filesystem>
#include <future>
#include <map>
#include <set>

#include "host/base/logging.h"
#include "host/base/status.h"
#include "host/client/grpc_channel.h"
#include "host/client/plugin_directory.h"
#include "host/client/scaler_client.h"
#include "tests/host/client/process_fixture.h"
#include "tests/support/certificates.h"
#include "tests/support/free_port.h"
#include "tests/support/garbage_server.h"
#include "tests/support/wait_for.h"

namespace outrigger::host {
namespace {

using testing::HasSubstr;
using tests::Process;

TriggerPtr MakeTrigger(const std::string& type, const std::string& say) {
  scaler::v1::Trigger trigger;
  trigger.set_type(type);
  (*trigger.mutable_metadata())["say"] = say;
  SetFingerprint(trigger, false, "key");
  return std::make_shared<const scaler::v1::Trigger>(std::move(trigger));
}

// The faulty scaler as a process, and what it was asked.
class Scaler {
 public:
  Scaler(std::string address, std::string log, std::string types, std::string mode = "batch")
      : address_(std::move(address)),
        log_(std::move(log)),
        types_(std::move(types)),
        mode_(std::move(mode)) {}

  void Start() {
    const std::string socket = std::string(absl::StripPrefix(address_, "unix:"));
    if (socket != address_) {
      std::filesystem::create_directories(std::filesystem::path(socket).parent_path());
      ::unlink(socket.c_str());
    }
    const char* bin = std::getenv("OUTRIGGER_BIN_DIR");
    ASSERT_NE(bin, nullptr);
    auto started = Process::Start({.argv = {absl::StrCat(bin, "/outrigger-test-faulty-scaler"),
                                            address_, log_, types_, mode_}});
    ASSERT_TRUE(started.ok()) << started.status();
    process_ = *std::move(started);
  }
  absl::Status WaitUntilServing() {
    return tests::WaitFor([&] { return !Lines().empty(); }, absl::Seconds(20), "a listening scaler",
                          [&] { return process_->OutputTail(); });
  }
  void Kill() {
    process_->Kill(SIGKILL);
    ASSERT_TRUE(process_->Wait(absl::Seconds(10)).ok());
  }
  Process& process() { return *process_; }

  std::vector<std::string> Lines() const {
    const auto text = tests::ReadFile(log_);
    if (!text.ok()) return {};
    return absl::StrSplit(*text, '\n', absl::SkipEmpty());
  }
  // How often an RPC was called.
  int Calls(absl::string_view rpc) const {
    int calls = 0;
    for (const std::string& line : Lines()) {
      if (absl::StartsWith(line, absl::StrCat(rpc, " "))) ++calls;
    }
    return calls;
  }

 private:
  const std::string address_;
  const std::string log_;
  const std::string types_;
  const std::string mode_;
  std::unique_ptr<Process> process_;
};

class ScalerProcessTest : public PluginProcessTest {
 protected:
  std::string FolderAddress(const std::string& name) const {
    return absl::StrCat("unix:", dir_.path(), "/", name, "/scaler.sock");
  }
  Scaler FolderScaler(const std::string& name, const std::string& types,
                      const std::string& mode = "batch") {
    return Scaler(FolderAddress(name), logs_.File(name), types, mode);
  }

  absl::StatusOr<MetricsAnswer> Get(const std::string& type, const std::string& say,
                                    absl::Duration timeout = absl::Seconds(3)) {
    return Await(client_->GetMetrics(MakeTrigger(type, say), {.metric_name = "depth", .poll = true},
                                     Deadline::After(clock_, timeout)));
  }

  struct Settled {
    absl::StatusOr<MetricsAnswer> answer = absl::UnknownError("no answer was given");
    absl::Duration after;
  };
  // Polls one trigger per `say` as one batch, and tells when each was answered.
  std::vector<Settled> PollBatch(const std::string& type, const std::vector<std::string>& says) {
    std::vector<BatchItem> items;
    items.reserve(says.size());
    for (const std::string& say : says) {
      items.push_back(
          {.trigger = MakeTrigger(type, say), .query = {.metric_name = "depth", .poll = true}});
    }
    std::vector<Settled> settled(says.size());
    const SteadyTime started = clock_.SteadyNow();
    Await(client_->BatchGetMetrics(
        std::move(items),
        [&](size_t i, absl::StatusOr<MetricsAnswer> answer) {
          settled[i] = {std::move(answer), clock_.SteadyNow() - started};
        },
        Deadline::After(clock_, absl::Seconds(10))));
    return settled;
  }
};

// Shows R1. The operator reads specs and values of a scaler in another process.
TEST_F(ScalerProcessTest, AsksAPluginThatStartsAfterTheOperator) {
  Connect();
  EXPECT_TRUE(IsPluginUnreachable(Get("depth", "5").status()));
  Scaler scaler = FolderScaler("depth", "depth");
  scaler.Start();
  ASSERT_TRUE(WaitForState("depth", PluginState::kReady).ok());

  const auto specs = Await(client_->GetMetricSpecForScaling(
      MakeTrigger("depth", "5"), Deadline::After(clock_, absl::Seconds(3))));
  ASSERT_TRUE(specs.ok()) << specs.status();
  EXPECT_EQ(specs->at(0).name(), "depth");
  const auto answer = Get("depth", "42.5");
  ASSERT_TRUE(answer.ok()) << answer.status();
  EXPECT_EQ(answer->values.at(0).value(), 42.5);
  EXPECT_TRUE(answer->active);
  EXPECT_EQ(StatusOf("depth").version, "1.2.3");
}

// Case B156. Start order does not matter, and a folder that goes takes its plugin with it.
TEST_F(ScalerProcessTest, APluginComesAndGoesWithItsFolder) {
  Connect();
  Scaler scaler = FolderScaler("depth", "depth");
  scaler.Start();
  ASSERT_TRUE(WaitForState("depth", PluginState::kReady).ok());
  scaler.Kill();
  ASSERT_TRUE(WaitForState("depth", PluginState::kUnavailable).ok());
  EXPECT_TRUE(OnStrand([&] { return client_->SchemaFor("depth").has_value(); }));
  std::filesystem::remove_all(dir_.File("depth"));
  EXPECT_TRUE(
      tests::WaitFor([&] { return OnStrand([&] { return directory_->Plugins().empty(); }); },
                     absl::Seconds(10), "no plugin", [] { return "one is listed"; })
          .ok());
  EXPECT_FALSE(OnStrand([&] { return client_->SchemaFor("depth").has_value(); }));
}

// Case B154. A plugin killed at any moment is back within five seconds of its restart.
TEST_F(ScalerProcessTest, RecoversFromTwentyKills) {
  int connects = 0;
  Connect({}, {.on_connection = [&](const std::string&, bool up) { connects += up ? 1 : 0; }});
  Scaler scaler = FolderScaler("depth", "depth");
  scaler.Start();
  ASSERT_TRUE(WaitForState("depth", PluginState::kReady).ok());
  for (int i = 0; i < 20; ++i) {
    auto pending = asio::co_spawn(io_,
                                  client_->GetMetrics(MakeTrigger("depth", "hang"), {.poll = true},
                                                      Deadline::After(clock_, absl::Seconds(3))),
                                  asio::use_future);
    scaler.Kill();
    const auto lost = pending.get();
    EXPECT_TRUE(IsPluginUnreachable(lost.status())) << lost.status();
    scaler.Start();
    ASSERT_TRUE(tests::WaitForOk([&] { return Get("depth", "7").status(); }, absl::Seconds(5),
                                 absl::StrCat("an answer after kill ", i))
                    .ok());
  }
  EXPECT_EQ(OnStrand([&] { return connects; }), 21) << "the host's metrics count each";
}

// Case B081. A stopped plugin costs its own triggers only, and is back when it goes on.
TEST_F(ScalerProcessTest, AStoppedPluginOpensItsBreakerOnly) {
  Connect();
  Scaler stopped = FolderScaler("stopped", "stopped");
  Scaler well = FolderScaler("well", "well");
  stopped.Start();
  well.Start();
  ASSERT_TRUE(WaitForState("stopped", PluginState::kReady).ok());
  ASSERT_TRUE(WaitForState("well", PluginState::kReady).ok());
  stopped.process().Kill(SIGSTOP);
  absl::Status last;
  ASSERT_TRUE(tests::WaitFor(
                  [&] {
                    last = Get("stopped", "7", absl::Milliseconds(300)).status();
                    return StatusOf("stopped").state == PluginState::kUnavailable;
                  },
                  absl::Seconds(20), "an open breaker", [&] { return Describe(last); })
                  .ok());

  const SteadyTime started = clock_.SteadyNow();
  EXPECT_TRUE(IsPluginUnreachable(Get("stopped", "7").status()));
  EXPECT_LT(clock_.SteadyNow() - started, absl::Milliseconds(500));
  EXPECT_TRUE(Get("well", "7").ok());

  stopped.process().Kill(SIGCONT);
  EXPECT_TRUE(WaitForState("stopped", PluginState::kReady, absl::Seconds(20)).ok());
  EXPECT_TRUE(Get("stopped", "7").ok());
  EXPECT_EQ(stopped.Calls("Describe"), 1) << "the connection was kept";
}

// Shows R24. One hung entry of 200 holds up itself only.
TEST_F(ScalerProcessTest, OneHungEntryOfABatchCostsItselfOnly) {
  Connect();
  Scaler scaler = FolderScaler("depth", "depth");
  scaler.Start();
  ASSERT_TRUE(WaitForState("depth", PluginState::kReady).ok());
  std::vector<std::string> says(200, "7");
  says[17] = "hang";
  const std::vector<Settled> settled = PollBatch("depth", says);
  for (size_t i = 0; i < says.size(); ++i) {
    EXPECT_EQ(settled[i].answer.ok(), i != 17) << i << ": " << settled[i].answer.status();
    if (i != 17) EXPECT_LT(settled[i].after, absl::Seconds(1)) << i;
  }
  EXPECT_EQ(settled[17].answer.status().code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_GE(settled[17].after, absl::Seconds(2));
  EXPECT_EQ(scaler.Calls("BatchGetMetrics"), 1);
}

TEST_F(ScalerProcessTest, AsksOneByOneWhereABatchIsUnimplemented) {
  Connect();
  Scaler scaler = FolderScaler("depth", "depth", "no-batch");
  scaler.Start();
  ASSERT_TRUE(WaitForState("depth", PluginState::kReady).ok());
  for (int round = 0; round < 2; ++round) {
    for (const Settled& one : PollBatch("depth", {"1", "2", "3"})) {
      EXPECT_TRUE(one.answer.ok()) << one.answer.status();
    }
  }
  EXPECT_EQ(scaler.Calls("BatchGetMetrics"), 1);
  EXPECT_EQ(scaler.Calls("GetMetrics"), 6);
}

// A plugin that lies or floods costs its own triggers only.
TEST_F(ScalerProcessTest, BadAnswersAreErrorsThatSayWhatCame) {
  struct Case {
    const char* say;
    absl::StatusCode code;
    const char* message;
  };
  const std::vector<Case> cases = {
      {"nan", absl::StatusCode::kInternal, "metric \"depth\": want a finite number, got NaN"},
      {"inf", absl::StatusCode::kInternal, "got +Inf"},
      {"many", absl::StatusCode::kInternal, "want at most 1000 values, got 1001"},
      {"other-name", absl::StatusCode::kInternal, "got one of \"width\""},
      {"big", absl::StatusCode::kResourceExhausted, "larger than max"},
      {"code:7", absl::StatusCode::kPermissionDenied, "as told"},
  };
  Connect();
  Scaler scaler = FolderScaler("depth", "depth");
  scaler.Start();
  ASSERT_TRUE(WaitForState("depth", PluginState::kReady).ok());
  std::vector<std::string> says = {"7"};
  for (const Case& one : cases) says.emplace_back(one.say);
  const std::vector<Settled> settled = PollBatch("depth", says);
  EXPECT_TRUE(settled[0].answer.ok()) << settled[0].answer.status();
  for (size_t i = 0; i < cases.size(); ++i) {
    const Case& wanted = cases[i];
    SCOPED_TRACE(wanted.say);
    for (const absl::Status& status :
         {Get("depth", wanted.say).status(), settled[i + 1].answer.status()}) {
      EXPECT_EQ(status.code(), wanted.code) << status;
      EXPECT_THAT(std::string(status.message()), HasSubstr("plugin depth: "));
      EXPECT_THAT(std::string(status.message()), HasSubstr(wanted.message));
    }
  }
  EXPECT_EQ(Get("depth", "-5")->values.at(0).value(), -5);
  EXPECT_EQ(scaler.Calls("Describe"), 1) << "none of it costs the connection";
}

TEST_F(ScalerProcessTest, AFloodOfAnswersEndsItsCall) {
  Connect();
  Scaler scaler = FolderScaler("depth", "depth");
  scaler.Start();
  ASSERT_TRUE(WaitForState("depth", PluginState::kReady).ok());
  const std::vector<Settled> settled = PollBatch("depth", {"hang", "flood", "hang"});
  EXPECT_TRUE(settled[1].answer.ok());
  EXPECT_THAT(std::string(settled[0].answer.status().message()),
              HasSubstr("want at most one answer per entry"));
  EXPECT_TRUE(Get("depth", "7").ok());
}

// Shows R24.
TEST_F(ScalerProcessTest, TriesOnceMoreWhenTheSourceBlinked) {
  Connect();
  Scaler scaler = FolderScaler("depth", "depth");
  scaler.Start();
  ASSERT_TRUE(WaitForState("depth", PluginState::kReady).ok());
  EXPECT_TRUE(Get("depth", "flaky").ok());
  EXPECT_EQ(scaler.Calls("GetMetrics"), 2);
}

// Which plugin serves a type is configuration: an impostor gets no trigger, and so no credentials.
TEST_F(ScalerProcessTest, ASecondPluginThatAnnouncesRedisIsDescribedOnly) {
  std::map<std::string, std::vector<std::string>> ignored;
  Connect({}, {.on_ignored_types = [&](const std::string& plugin,
                                       const std::vector<std::string>& types) {
            ignored[plugin] = types;
          }});
  Scaler impostor = FolderScaler("aaa", "redis");
  impostor.Start();
  ASSERT_TRUE(WaitForState("aaa", PluginState::kReady).ok());
  const absl::Status alone = Get("redis", "7").status();
  EXPECT_TRUE(IsPluginUnreachable(alone)) << alone;
  EXPECT_THAT(std::string(alone.message()), HasSubstr("bound to plugin redis"));

  Scaler redis = FolderScaler("redis", "redis");
  redis.Start();
  ASSERT_TRUE(WaitForState("redis", PluginState::kReady).ok());
  EXPECT_TRUE(Get("redis", "7").ok());
  PollBatch("redis", {"1", "2"});
  EXPECT_EQ(StatusOf("redis").trigger_types, std::vector<std::string>{"redis"});
  EXPECT_EQ(StatusOf("aaa").ignored_types, std::vector<std::string>{"redis"});
  EXPECT_EQ(OnStrand([&] { return ignored["aaa"]; }), std::vector<std::string>{"redis"});
  for (const std::string& line : impostor.Lines()) {
    EXPECT_TRUE(absl::StartsWith(line, "port ") || absl::StartsWith(line, "Describe ") ||
                absl::StartsWith(line, "Check "))
        << line;
  }
}

// Case B124. Case B158. One connection, however many calls and checks.
TEST_F(ScalerProcessTest, UsesOneConnection) {
  const std::string address = absl::StrCat("127.0.0.1:", tests::FreePort());
  Scaler scaler(address, logs_.File("log"), "depth");
  scaler.Start();
  Connect({.plugins = {*ParsePluginFlag(absl::StrCat("remote=", address))}});
  ASSERT_TRUE(WaitForState("remote", PluginState::kReady).ok());
  for (int i = 0; i < 200; ++i) EXPECT_TRUE(Get("depth", absl::StrCat(i)).ok());
  for (int i = 0; i < 12; ++i) Get("depth", "hang", absl::Milliseconds(30)).IgnoreError();
  PollBatch("depth", std::vector<std::string>(500, "7"));
  EXPECT_GE(scaler.Calls("Check"), 1);
  std::set<std::string> peers;
  for (const std::string& line : scaler.Lines()) {
    const std::vector<std::string> words = absl::StrSplit(line, ' ');
    if (words[0] != "port") peers.insert(words[1]);
  }
  EXPECT_EQ(peers.size(), 1) << absl::StrJoin(peers, " ");
}

// Shows R14. What connection tests and HPA reads ask at once is asked once.
TEST_F(ScalerProcessTest, EqualReadsBecomeOneCall) {
  Connect();
  Scaler scaler = FolderScaler("depth", "depth");
  scaler.Start();
  ASSERT_TRUE(WaitForState("depth", PluginState::kReady).ok());
  std::vector<std::future<absl::StatusOr<MetricsAnswer>>> pending;
  OnStrand([&] {
    for (int i = 0; i < 100; ++i) {
      pending.push_back(
          asio::co_spawn(io_,
                         client_->GetMetrics(MakeTrigger("depth", "7"), {.metric_name = "depth"},
                                             Deadline::After(clock_, absl::Seconds(3))),
                         asio::use_future));
    }
  });
  for (auto& one : pending) EXPECT_TRUE(one.get().ok());
  EXPECT_EQ(scaler.Calls("GetMetrics"), 1);
  EXPECT_EQ(scaler.Calls("BatchGetMetrics"), 0);
}

TEST_F(ScalerProcessTest, GarbageOnTheSocketIsAnUnavailablePluginAndHealsWithARealOne) {
  std::filesystem::create_directory(dir_.File("depth"));
  {
    const tests::GarbageServer garbage(dir_.File("depth/scaler.sock"));
    Connect();
    EXPECT_TRUE(tests::WaitFor([&] { return garbage.connections() >= 3; }, absl::Seconds(20),
                               "three dials", [&] { return absl::StrCat(garbage.connections()); })
                    .ok());
    EXPECT_EQ(StatusOf("depth").state, PluginState::kUnavailable);
    EXPECT_THAT(StatusOf("depth").reason, HasSubstr("Describe"));
  }
  Scaler scaler = FolderScaler("depth", "depth");
  scaler.Start();
  EXPECT_TRUE(WaitForState("depth", PluginState::kReady).ok());
}

TEST_F(ScalerProcessTest, PlainTcpToAnotherMachineIsRefusedWithWhatIsMissing) {
  Connect({.plugins = {*ParsePluginFlag("remote=scalers.example:9666")}});
  ASSERT_TRUE(WaitForState("remote", PluginState::kUnavailable).ok());
  EXPECT_THAT(StatusOf("remote").reason,
              HasSubstr("address scalers.example:9666: want mutual TLS"));
}

// Case B126. The client certificate is sent; without the right CA there is no connection.
TEST_F(ScalerProcessTest, SpeaksMutualTlsToARemotePlugin) {
  const auto ca = tests::CertificateAuthority::Create("ca");
  const auto other_ca = tests::CertificateAuthority::Create("other");
  ASSERT_TRUE(ca.ok() && other_ca.ok());
  // 0.0.0.0 reaches this machine and is no loopback address.
  const auto server = (*ca)->Issue({.common_name = "plugin", .ips = {"0.0.0.0"}});
  const auto client = (*ca)->Issue({.common_name = "operator"});
  ASSERT_TRUE(server.ok() && client.ok());
  logs_.Write("s/ca.pem", (*ca)->certificate());
  logs_.Write("s/cert.pem", server->certificate);
  logs_.Write("s/key.pem", server->key);
  const uint16_t port = tests::FreePort();
  Scaler scaler(absl::StrCat("127.0.0.1:", port), logs_.File("log"), "depth",
                absl::StrCat("tls:", logs_.File("s")));
  scaler.Start();
  ASSERT_TRUE(scaler.WaitUntilServing().ok());

  channel_options_ = {.ca_file = logs_.Write("c/ca.pem", (*other_ca)->certificate()),
                      .cert_file = logs_.Write("c/cert.pem", client->certificate),
                      .key_file = logs_.Write("c/key.pem", client->key)};
  Connect({.plugins = {*ParsePluginFlag(absl::StrCat("remote=0.0.0.0:", port))}});
  ASSERT_TRUE(WaitForState("remote", PluginState::kUnavailable).ok());
  EXPECT_THAT(StatusOf("remote").reason, HasSubstr("handshake"));
  EXPECT_EQ(scaler.Calls("Describe"), 0);
  logs_.Write("c/ca.pem", (*ca)->certificate());  // read at the next dial
  ASSERT_TRUE(WaitForState("remote", PluginState::kReady).ok());
  scaler::v1::Trigger trigger = *MakeTrigger("depth", "7");
  (*trigger.mutable_authentication())["password"] = "hunter2";
  EXPECT_TRUE(Await(client_->GetMetrics(std::make_shared<const scaler::v1::Trigger>(trigger),
                                        {.poll = true}, Deadline::After(clock_, absl::Seconds(3))))
                  .ok());
}

TEST_F(ScalerProcessTest, AFolderThatOthersMayWriteIsNotUsed) {
  ASSERT_EQ(chmod(dir_.path().c_str(), 0777), 0);
  PluginDirectory directory(io_.get_executor(), clock_, Logger(sink_), 1,
                            MakeGrpcConnector(clock_, io_.get_executor(), {}),
                            {.plugin_dir = dir_.path()});
  const absl::Status status = directory.Start();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(status.message()), HasSubstr("want mode 0700, got 0777"));
  ASSERT_EQ(chmod(dir_.path().c_str(), 0700), 0);
}

}  // namespace
}  // namespace outrigger::host

// SPDX-License-Identifier: Apache-2.0
// outrigger-operator: flags, wiring, run, stop. Who gets which Clock, client and address is decided
// here and nowhere else.
#include <absl/strings/str_cat.h>
#include <unistd.h>

#include <algorithm>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/asio/strand.hpp>
#include <csignal>
#include <cstdio>
#include <fstream>
#include <memory>
#include <thread>
#include <utility>

#include "host/base/logging.h"
#include "host/base/real_clock.h"
#include "host/base/secret.h"
#include "host/base/status.h"
#include "host/client/grpc_channel.h"
#include "host/client/plugin_directory.h"
#include "host/client/scaler_client.h"
#include "operator/adapter/authorizer.h"
#include "operator/adapter/http_server.h"
#include "operator/adapter/metrics_api.h"
#include "operator/adapter/plain_routes.h"
#include "operator/adapter/request_header_config.h"
#include "operator/flags.h"
#include "operator/introspection/describe.h"
#include "operator/introspection/introspection_server.h"
#include "operator/kube/api_config.h"
#include "operator/kube/fail_point.h"
#include "operator/kube/fenced_api.h"
#include "operator/kube/http_api.h"
#include "operator/kube/lease.h"
#include "operator/kube/serving_label.h"
#include "operator/reconcile/operator_core.h"
#include "operator/runtime/prometheus_metrics.h"

namespace outrigger::controller {
namespace {

namespace asio = boost::asio;

constexpr absl::Duration kFirstSync =
    absl::Seconds(30);  // then it is said what is missing, and waited on
// The end of the process, in which nothing may wait for a plugin or an API server that hangs: how
// long the leader's work may go on, then its writes, then metric reads when their grace is over.
constexpr absl::Duration kLastWork = absl::Milliseconds(500);
constexpr absl::Duration kLastWrites = absl::Seconds(1);
constexpr absl::Duration kLastAnswers = absl::Milliseconds(500);
// How long all that may take together with the release of the lease, when the API server hangs.
constexpr absl::Duration kLastTurn = absl::Seconds(3);

// min(cores, cgroup quota, 4).
int ThreadCount() {
  int count = static_cast<int>(std::clamp(std::thread::hardware_concurrency(), 1U, 4U));
  std::ifstream quota_file("/sys/fs/cgroup/cpu.max");
  double quota = 0;
  double period = 0;
  if (quota_file >> quota >> period && period > 0) {
    count = std::clamp(static_cast<int>(quota / period + 0.999), 1, count);
  }
  return count;
}

std::string Identity(const Flags& flags) {
  if (!flags.identity.empty()) return flags.identity;
  char host_name[256] = "outrigger-operator";
  gethostname(host_name, sizeof(host_name) - 1);
  std::string suffix;
  for (const unsigned char byte : host::RandomBytes(4))
    absl::StrAppend(&suffix, absl::Hex(byte, absl::kZeroPad2));
  return absl::StrCat(host_name, "_", suffix);
}

uint64_t Seed() {
  uint64_t seed = 0;
  for (const unsigned char byte : host::RandomBytes(8)) seed = seed * 256 + byte;
  return seed;
}

absl::StatusOr<kube::ApiConfig> LoadConfig(const Flags& flags) {
  return flags.kubeconfig.empty() ? kube::InClusterConfig()
                                  : kube::LoadKubeconfig(flags.kubeconfig, "");
}

absl::StatusOr<host::PluginDirectory::Options> DirectoryOptions(const Flags& flags,
                                                                bool inside_kubernetes) {
  host::PluginDirectory::Options options;
  options.plugin_dir = flags.plugin_dir;
  options.inside_kubernetes = inside_kubernetes;
  for (const std::string& text : flags.plugins) {
    ASSIGN_OR_RETURN(host::PluginAddress address, host::ParsePluginFlag(text));
    options.plugins.push_back(std::move(address));
  }
  ASSIGN_OR_RETURN(options.plugin_types, host::ParsePluginTypes(flags.plugin_types));
  return options;
}

// The whole process, in the order in which its parts depend on one another.
class Operator {
 public:
  Operator(Flags flags, host::Logger log, kube::ApiConfig config,
           host::PluginDirectory::Options directory, std::function<void()> fail_point)
      : flags_(std::move(flags)),
        log_(std::move(log)),
        io_(ThreadCount()),
        core_(asio::make_strand(io_)),
        identity_(Identity(flags_)),
        api_(clock_, log_,
             {.config = std::move(config),
              .user_agent =
                  absl::StrCat("outrigger-operator/", OUTRIGGER_VERSION, " (", identity_, ")"),
              .on_request =
                  [this](const kube::RequestRecord& record) {
                    metrics_.ApiRequest(record.verb, record.resource, record.code, record.duration);
                  },
              .after_write = std::move(fail_point)}),
        directory_(core_, clock_, log_, Seed(),
                   host::MakeGrpcConnector(clock_, core_,
                                           {.ca_file = flags_.plugin_ca_file,
                                            .cert_file = flags_.plugin_cert_file,
                                            .key_file = flags_.plugin_key_file}),
                   std::move(directory)),
        scalers_(directory_, {.call_timeout = flags_.scaler_timeout}),
        fenced_(clock_, api_,
                [this] {
                  return flags_.leader_elect ? elector_.WritesEnd()
                                             : host::SteadyTime::InfiniteFuture();
                }),
        operator_({.clock = clock_,
                   .api = api_,
                   .leader_api = fenced_,
                   .scalers = scalers_,
                   .metrics = metrics_,
                   .strand = core_,
                   .log = log_},
                  CoreOptions()),
        elector_(
            clock_, api_, host::Random(Seed()), log_,
            {.namespace_name = flags_.own_namespace, .identity = identity_},
            {.on_started_leading = [this] { operator_.StartLeading(); },
             .on_stopped_leading =
                 [this] {
                   return operator_.StopLeading(stopping_ ? host::Deadline::After(clock_, kLastWork)
                                                          : host::Deadline::Never());
                 },
             .writes_ended =
                 [this] {
                   return fenced_.WaitForWrites(host::Deadline::After(clock_, kLastWrites));
                 },
             .on_new_leader =
                 [this](const std::string& holder) { log_.Info("leader", {{"holder", holder}}); }}),
        serving_label_(clock_, api_, host::Random(Seed()), log_, flags_.own_namespace,
                       flags_.pod_name),
        header_config_(clock_, api_, log_),
        authorizer_(clock_, api_, {}),
        metrics_api_(core_, clock_, header_config_, authorizer_, operator_.metric_source(),
                     metrics_, {}),
        tasks_(clock_, core_) {}

  int Run() {
    asio::signal_set signals(io_, SIGTERM, SIGINT);
    signals.async_wait([this](boost::system::error_code error, int) {
      if (!error) stop_.NotifyAll();
    });
    asio::co_spawn(core_, Live(signals), asio::detached);  // the io_context ends when it has
    std::vector<std::jthread> threads;
    for (int i = 1; i < ThreadCount(); ++i) threads.emplace_back([this] { io_.run(); });
    io_.run();
    threads.clear();
    introspection_.reset();  // blocks for at most a second, so not on the core strand
    if (!result_.ok())
      std::fprintf(stderr, "outrigger-operator: %s\n", std::string(result_.message()).c_str());
    return result_.ok() ? 0 : 1;
  }

 private:
  reconcile::OperatorCore::Options CoreOptions() const {
    reconcile::OperatorCore::Options options;
    options.term.max_concurrent_reconciles = flags_.max_concurrent_reconciles;
    options.term.scaler_timeout = flags_.scaler_timeout;
    options.term.hpa_sync_period = flags_.hpa_sync_period;
    options.term.seed = Seed();
    options.informers.namespaces = flags_.watch_namespaces;
    options.metric_freshness = flags_.metric_freshness;
    options.own_namespace = flags_.own_namespace;
    options.take_over = flags_.take_over;
    return options;
  }

  // Start, serve until a signal, stop. Start order: what says how we are; plugins; caches; the
  // metrics API once they are synced; leading last.
  host::Task<void> Live(asio::signal_set& signals) {
    result_ = StartPlainPorts();
    if (result_.ok()) result_ = directory_.Start();
    if (result_.ok()) {
      tasks_.Spawn(operator_.Run());
      tasks_.Spawn(header_config_.Run());
      tasks_.Spawn(serving_label_.Run());
      tasks_.Spawn(ServeWhenSynced());
      co_await stop_.Wait(clock_);
      log_.Info("stopping");
      co_await StopServing();
    }
    boost::system::error_code ignored;
    signals.cancel(ignored);
    co_await StopTheRest();
  }

  absl::Status StartPlainPorts() {
    health_.emplace(io_.get_executor(), clock_, log_,
                    adapter::ProbeRoutes({{"informers", [this] { return SyncStatus(); }},
                                          {"listeners", [this] { return ListenStatus(); }}}),
                    adapter::HttpServer::Options{.name = "health",
                                                 .address = flags_.bind_address,
                                                 .port = flags_.health_port,
                                                 .stop_grace = kLastAnswers});
    metrics_port_.emplace(io_.get_executor(), clock_, log_,
                          adapter::MetricsRoutes([this] { return metrics_.Render(); }),
                          adapter::HttpServer::Options{.name = "metrics",
                                                       .address = flags_.bind_address,
                                                       .port = flags_.metrics_port,
                                                       .stop_grace = kLastAnswers});
    RETURN_IF_ERROR(health_->Start());
    RETURN_IF_ERROR(metrics_port_->Start());
    absl::StatusOr<std::unique_ptr<introspection::IntrospectionServer>> introspection =
        introspection::IntrospectionServer::Start(
            {.listen_address = flags_.grpc_address}, core_, clock_,
            [this] { return introspection::DescribePlugins(scalers_); },
            [this](const std::string& namespace_name, const std::string& name) {
              const reconcile::LeaderTerm* term = operator_.term();
              const polling::ObjectRegistry& registry =
                  term == nullptr ? no_objects_ : term->registry();
              return introspection::DescribeObjects(
                  {.registry = registry, .health = operator_.health(), .scalers = scalers_},
                  namespace_name, name);
            });
    if (!introspection.ok()) return introspection.status();
    introspection_ = *std::move(introspection);
    return absl::OkStatus();
  }

  absl::Status SyncStatus() const {
    return synced_ ? absl::OkStatus() : absl::UnavailableError("the caches are not complete yet");
  }
  absl::Status ListenStatus() const {
    return serving_ || !flags_.HasRole("metrics")
               ? absl::OkStatus()
               : absl::UnavailableError("the metrics API does not listen yet");
  }

  host::Task<void> ServeWhenSynced() {
    while (true) {
      const absl::Status synced =
          co_await operator_.WaitForSync(host::Deadline::After(clock_, kFirstSync));
      if (absl::IsCancelled(synced)) co_return;
      if (synced.ok()) break;
      log_.Warning("waiting for the caches", {{"error", host::Describe(synced)}});
    }
    if (stopping_) co_return;
    synced_ = true;
    if (flags_.HasRole("metrics")) {
      metrics_api_server_.emplace(
          io_.get_executor(), clock_, log_,
          [this](std::shared_ptr<const adapter::HttpRequest> request) {
            return metrics_api_.Handle(std::move(request));
          },
          adapter::HttpServer::Options{.name = "metrics API",
                                       .address = flags_.bind_address,
                                       .port = flags_.metrics_api_port,
                                       .cert_file = flags_.tls_cert_file,
                                       .key_file = flags_.tls_key_file,
                                       .stop_grace = kLastAnswers,
                                       .unanswered = adapter::StatusResponse(
                                           503, "this replica is stopping; another answers")});
      result_ = metrics_api_server_->Start();
      if (!result_.ok()) {
        stop_.NotifyAll();
        co_return;
      }
      serving_ = true;
      tasks_.Spawn(LetReadsCome());
    }
    log_.Info("serving", {{"metricsApiPort", serving_ ? metrics_api_server_->port() : 0},
                          {"healthPort", health_->port()},
                          {"metricsPort", metrics_port_->port()}});
    if (!flags_.HasRole("controller")) co_return;
    if (!flags_.leader_elect) {
      operator_.StartLeading();
      co_return;
    }
    electing_ = true;
    co_await elector_.Run();
    electing_ = false;
    election_ended_.NotifyAll();
  }

  // Once we can tell who asks.
  host::Task<void> LetReadsCome() {
    co_await header_config_.WaitForFirst();
    serving_label_.Put();
  }

  // The lease goes first, so that another replica leads at once, and the label by which reads come
  // to us. Those that still come are answered for the rest of the grace period, each answer asking
  // its connection to close.
  host::Task<void> StopServing() {
    const host::Deadline grace = host::Deadline::After(clock_, flags_.shutdown_grace);
    stopping_ = true;
    if (serving_) {
      metrics_api_server_->Drain();
      // Without a grace period, too: what is left of the label would send reads to a Pod that ends.
      tasks_.Spawn(serving_label_.Remove(
          host::Deadline::After(clock_, std::max(flags_.shutdown_grace, kLastWrites))));
    } else {
      serving_label_.Stop();
    }
    elector_.Stop();
    const host::Deadline last_turn = host::Deadline::After(clock_, kLastTurn);
    while (electing_ && !last_turn.Expired(clock_)) {
      co_await election_ended_.WaitUntil(clock_, last_turn.time());
    }
    co_await operator_.StopLeading(host::Deadline::After(clock_, kLastWork));
    if (!serving_) co_return;
    co_await clock_.SleepUntil(grace.time());
    co_await metrics_api_server_->EndConnections();
  }

  // Ends the calls first, and then waits for those that made them.
  host::Task<void> StopTheRest() {
    header_config_.Stop();
    operator_.Stop();
    co_await directory_.Stop();
    api_.Stop();  // joins threads that only pass answers on: as good as at once
    co_await tasks_.Join();
    if (metrics_api_server_) co_await metrics_api_server_->Stop();
    if (metrics_port_) co_await metrics_port_->Stop();
    if (health_) co_await health_->Stop();
  }

  const Flags flags_;
  const host::Logger log_;
  host::RealClock clock_;
  runtime::PrometheusMetrics metrics_{{.version = OUTRIGGER_VERSION}};
  asio::io_context io_;
  const host::Executor core_;
  const std::string identity_;  // in the Lease, and in audit logs as part of the user agent
  kube::HttpApi api_;
  host::PluginDirectory directory_;  // with the thread that waits for gRPC, which ends with it
  host::ScalerClient scalers_;
  kube::FencedApi fenced_;
  reconcile::OperatorCore operator_;
  kube::LeaderElector elector_;
  kube::ServingLabel serving_label_;
  adapter::RequestHeaderConfigLoader header_config_;
  adapter::Authorizer authorizer_;
  adapter::MetricsApi metrics_api_;
  host::TaskGroup tasks_;
  host::Event stop_;
  host::Event election_ended_;
  std::optional<adapter::HttpServer> health_;
  std::optional<adapter::HttpServer> metrics_port_;
  std::optional<adapter::HttpServer> metrics_api_server_;
  const polling::ObjectRegistry no_objects_;  // a standby tracks none
  std::unique_ptr<introspection::IntrospectionServer> introspection_;
  std::atomic<bool> synced_ = false;
  std::atomic<bool> serving_ = false;
  bool electing_ = false;
  bool stopping_ = false;
  absl::Status result_;
};

// Everything that can be wrong with flags, environment and files, before anything runs.
absl::StatusOr<std::unique_ptr<Operator>> MakeOperator(Flags flags) {
  ASSIGN_OR_RETURN(std::shared_ptr<host::LogSink> sink,
                   host::MakeStderrSink({.level = flags.log_level, .format = flags.log_format}));
  ASSIGN_OR_RETURN(kube::ApiConfig config, LoadConfig(flags));
  ASSIGN_OR_RETURN(host::PluginDirectory::Options directory,
                   DirectoryOptions(flags, /*inside_kubernetes=*/flags.kubeconfig.empty()));
  ASSIGN_OR_RETURN(std::function<void()> fail_point, kube::FailPointFromEnvironment());
  const host::Logger log(std::move(sink));
  log.Info("outrigger-operator", {{"version", OUTRIGGER_VERSION}});
  return std::make_unique<Operator>(std::move(flags), log, std::move(config), std::move(directory),
                                    std::move(fail_point));
}

int Complain(const absl::Status& wrong) {
  std::fprintf(stderr, "outrigger-operator: %s\n", std::string(wrong.message()).c_str());
  return 2;
}

int Main(int argc, char** argv) {
  absl::StatusOr<Flags> flags = ParseFlags(argc, argv);
  if (absl::IsCancelled(flags.status())) {
    std::fputs(std::string(flags.status().message()).c_str(), stdout);
    return 0;
  }
  if (!flags.ok()) return Complain(flags.status());
  absl::StatusOr<std::unique_ptr<Operator>> process = MakeOperator(*std::move(flags));
  if (!process.ok()) return Complain(process.status());
  return (*process)->Run();
}

}  // namespace
}  // namespace outrigger::controller

int main(int argc, char** argv) { return outrigger::controller::Main(argc, argv); }

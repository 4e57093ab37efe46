// SPDX-License-Identifier: Apache-2.0
#include "operator/local/local_operator.h"

#include <absl/strings/str_cat.h>
#include <absl/strings/str_join.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <boost/json/object.hpp>
#include <csignal>
#include <filesystem>
#include <set>
#include <utility>

#include "host/base/status.h"
#include "host/client/grpc_channel.h"
#include "operator/api/object_reader.h"
#include "operator/local/process_runner.h"

namespace outrigger::controller::local {
namespace {

namespace json = boost::json;

constexpr absl::Duration kLook = absl::Milliseconds(200);

// Which program serves a trigger type. The others come with their plugins.
const std::map<std::string, std::string>& Programs() {
  static const auto* const kPrograms = new std::map<std::string, std::string>{{"redis", "redis"}};
  return *kPrograms;
}

host::PluginDirectory::Options DirectoryOptions(const std::string& folder) {
  host::PluginDirectory::Options options;
  options.plugin_dir = absl::StrCat(folder, "/plugins");
  return options;
}

reconcile::OperatorCore::Options CoreOptions(absl::Duration hpa_sync_period) {
  reconcile::OperatorCore::Options options;
  options.term.hpa_sync_period = hpa_sync_period;
  options.informers.api_service = false;
  options.metric_freshness = absl::Seconds(1);
  return options;
}

// What the HPA controller asks the metrics API for, without HTTP.
class DirectMetrics : public ExternalMetrics {
 public:
  explicit DirectMetrics(polling::MetricSource& source) : source_(source) {}

  host::Task<absl::StatusOr<std::vector<double>>> Get(std::string namespace_name,
                                                      std::string metric_name,
                                                      std::map<std::string, std::string> selector,
                                                      host::Deadline deadline) override {
    polling::MetricRead read{.namespace_name = std::move(namespace_name),
                             .metric_name = std::move(metric_name)};
    read.scaled_object = selector[api::kScaledObjectNameLabel];
    absl::StatusOr<std::vector<polling::MetricReading>> readings =
        co_await source_.Read(std::move(read), deadline);
    if (!readings.ok()) co_return readings.status();
    std::vector<double> values;
    for (const polling::MetricReading& reading : *readings) values.push_back(reading.value);
    co_return values;
  }

 private:
  polling::MetricSource& source_;
};

}  // namespace

LocalOperator::LocalOperator(host::Clock& clock, const host::Executor& strand,
                             const host::Logger& log, std::vector<ManifestObject> objects,
                             Options options, Print print)
    : clock_(clock),
      strand_(strand),
      log_(log),
      objects_(std::move(objects)),
      options_(std::move(options)),
      print_(std::move(print)),
      api_(clock),
      directory_(strand, clock, log, /*seed=*/1, host::MakeGrpcConnector(clock, strand, {}),
                 DirectoryOptions(options_.folder)),
      scalers_(directory_, {}),
      core_({.clock = clock,
             .api = api_,
             .leader_api = api_,
             .scalers = scalers_,
             .metrics = metrics_,
             .strand = strand,
             .log = log},
            CoreOptions(options_.hpa_sync_period)),
      external_metrics_(std::make_unique<DirectMetrics>(core_.metric_source())),
      hpas_(api_, *external_metrics_, clock,
            {.sync_period = options_.hpa_sync_period,
             .on_event =
                 [this](const HpaEvent& event) {
                   if (event.reason == "SuccessfulRescale")
                     hpa_why_[event.hpa.ToString()] = event.message;
                 }}),
      deployments_(api_, clock, log, host::Random(2),
                   [this](const api::NamespacedName& key,
                          std::function<void()> changed) -> std::unique_ptr<Workload> {
                     return std::make_unique<ProcessRunner>(
                         clock_, log_, key, ProcessRunner::Options{.log_folder = options_.folder},
                         std::move(changed));
                   },
                   {}),
      tasks_(clock, strand) {}

absl::Status LocalOperator::StartPlugins() {
  std::set<std::string> wanted;
  for (const ManifestObject& manifest : objects_) {
    if (!(manifest.resource == kube::ScaledObjects())) continue;
    absl::StatusOr<api::ScaledObject> object = api::ParseScaledObject(manifest.object);
    if (!object.ok()) return object.status();
    for (const api::Trigger& trigger : object->spec.triggers) {
      auto program = Programs().find(trigger.type);
      if (program != Programs().end()) wanted.insert(program->second);
    }
  }
  for (const std::string& name : wanted) {
    const std::string folder = absl::StrCat(options_.folder, "/plugins/", name);
    std::filesystem::create_directories(folder);
    chmod(absl::StrCat(options_.folder, "/plugins").c_str(), 0700);
    chmod(folder.c_str(), 0700);
    absl::StatusOr<std::unique_ptr<ChildProcess>> started = ChildProcess::Start(
        {.argv = {absl::StrCat(options_.plugin_bin_dir, "/outrigger-scaler-", name),
                  "--listen-socket", absl::StrCat(folder, "/scaler.sock")},
         .output_file = absl::StrCat(options_.folder, "/", name, ".log")});
    if (!started.ok()) return host::Annotate(started.status(), "plugin ", name);
    plugins_.push_back(*std::move(started));
  }
  return absl::OkStatus();
}

host::Task<absl::Status> LocalOperator::CreateObjects() {
  for (const ManifestObject& manifest : objects_) {
    absl::StatusOr<json::value> created =
        co_await api_.Create(manifest.resource, manifest.namespace_name, manifest.object,
                             kube::WriteOptions{}, host::Deadline::After(clock_, absl::Seconds(5)));
    if (!created.ok()) co_return host::Annotate(created.status(), manifest.resource.ToString());
  }
  co_return absl::OkStatus();
}

host::Task<absl::Status> LocalOperator::Run() {
  absl::Status result = StartPlugins();
  if (result.ok()) result = directory_.Start();
  if (result.ok()) {
    co_await WaitForPlugins();
    result = co_await CreateObjects();
  }
  if (result.ok()) result = co_await Serve();
  // Also after a start that failed: what was started ends, so that the process does.
  co_await directory_.Stop();
  for (const auto& plugin : plugins_) plugin->Signal(SIGTERM);
  const host::SteadyTime end = clock_.SteadyNow() + absl::Seconds(6);
  for (const auto& plugin : plugins_) {
    while (!plugin->Poll() && clock_.SteadyNow() < end) {
      co_await clock_.Sleep(absl::Milliseconds(20));
    }
  }
  plugins_.clear();
  co_return result;
}

host::Task<absl::Status> LocalOperator::Serve() {
  tasks_.Spawn(core_.Run());
  tasks_.Spawn(deployments_.Run());
  const absl::Status synced =
      co_await core_.WaitForSync(host::Deadline::After(clock_, absl::Seconds(10)));
  if (synced.ok()) {
    core_.StartLeading();
    tasks_.Spawn(hpas_.Run());
    co_await Watch();
  }
  hpas_.Stop();
  co_await core_.StopLeading(host::Deadline::Never());
  deployments_.Stop();
  core_.Stop();
  co_await tasks_.Join();
  co_return synced;
}

// So that the first thing to be read is not that a plugin is not there yet. One that does not come
// is said later.
host::Task<void> LocalOperator::WaitForPlugins() {
  const host::SteadyTime end = clock_.SteadyNow() + absl::Seconds(5);
  auto all_ready = [this] {
    const std::vector<host::PluginStatus> known = scalers_.Plugins();
    return known.size() >= plugins_.size() &&
           std::all_of(known.begin(), known.end(), [](const host::PluginStatus& plugin) {
             return plugin.state == host::PluginState::kReady;
           });
  };
  while (!all_ready() && !stopping_ && clock_.SteadyNow() < end)
    co_await clock_.Sleep(absl::Milliseconds(50));
}

void LocalOperator::Stop() {
  stopping_ = true;
  stop_.NotifyAll();
}

host::Task<void> LocalOperator::Watch() {
  bool was_up = false;
  host::SteadyTime idle_since = clock_.SteadyNow();
  while (!stopping_) {
    const bool up = Report();
    was_up = was_up || up;
    if (up) idle_since = clock_.SteadyNow();
    if (was_up && clock_.SteadyNow() - idle_since >= options_.exit_after_idle) {
      print_("everything is back at 0");
      co_return;
    }
    co_await stop_.WaitUntil(clock_, clock_.SteadyNow() + kLook);
  }
}

// Prints what changed. True while any target has replicas.
bool LocalOperator::Report() {
  bool up = false;
  const reconcile::LeaderTerm* term = core_.term();
  for (const api::NamespacedName& key :
       term == nullptr ? std::vector<api::NamespacedName>() : term->registry().Keys()) {
    const polling::TrackedObject* object = term->registry().Find(key);
    const auto workload = core_.view().Workload(
        "Deployment", {key.namespace_name, object->object->spec.scale_target_ref.name});
    if (workload == nullptr) continue;
    const int64_t replicas = workload->replicas;
    up = up || replicas > 0;
    auto [known, is_new] = replicas_.try_emplace(key.ToString(), -1);
    const std::string hpa_key = absl::StrCat(key.namespace_name, "/", object->object->HpaName());
    if (known->second != replicas) {
      const bool by_hpa = known->second > 0 && replicas > 0;
      const std::string why = by_hpa
                                  ? absl::StrCat("HPA: ", hpa_why_[hpa_key])
                                  : absl::StrCat("operator: ", object->last_decision.explanation);
      print_(is_new ? absl::StrCat(key.ToString(), ": ", replicas, " replicas at the start")
                    : absl::StrCat(key.ToString(), ": ", known->second, " -> ", replicas,
                                   " replicas  (", why, ")"));
      known->second = replicas;
      shown_[key.ToString()] = object->last_decision.explanation;
    } else if (!object->last_decision.explanation.empty() &&
               shown_[key.ToString()] != object->last_decision.explanation) {
      shown_[key.ToString()] = object->last_decision.explanation;
      print_(absl::StrCat(key.ToString(), ": ", object->last_decision.explanation));
    }
  }
  for (const api::NamespacedName& key : core_.Synced() && term != nullptr
                                            ? core_.ScaledObjectKeys()
                                            : std::vector<api::NamespacedName>()) {
    const auto object = core_.view().ScaledObject(key);
    const api::Condition* ready =
        object == nullptr ? nullptr : api::FindCondition(object->status.conditions, api::kReady);
    if (ready == nullptr || ready->status == api::kTrue) continue;
    std::string& shown = shown_["ready " + key.ToString()];
    const std::string line = absl::StrCat(key.ToString(), ": Ready=", ready->status, " ",
                                          ready->reason, ": ", ready->message);
    if (ready->status != api::kUnknown && shown != line) print_(line);
    shown = line;
  }
  return up;
}

}  // namespace outrigger::controller::local

// SPDX-License-Identifier: Apache-2.0
#include "operator/local/local_operator.h"

#include <absl/strings/str_cat.h>
#include <sys/stat.h>

#include <algorithm>
#include <utility>

#include "host/base/status.h"
#include "host/client/grpc_channel.h"
#include "operator/introspection/describe.h"
#include "operator/local/plugin_plan.h"
#include "operator/local/process_runner.h"

namespace outrigger::controller::local {
namespace {

namespace json = boost::json;

constexpr absl::Duration kLook = absl::Milliseconds(200);
constexpr absl::Duration kFirstConnection = absl::Seconds(5);
constexpr absl::Duration kFirstSync = absl::Seconds(10);

std::string PluginDir(const std::string& folder) { return absl::StrCat(folder, "/plugins"); }

host::PluginDirectory::Options DirectoryOptions(const LocalOperator::Options& given) {
  host::PluginDirectory::Options options;
  options.plugin_dir = PluginDir(given.folder);
  options.plugins = given.plugins;
  return options;
}

reconcile::OperatorCore::Options CoreOptions(absl::Duration hpa_sync_period) {
  reconcile::OperatorCore::Options options;
  options.term.hpa_sync_period = hpa_sync_period;
  options.informers.api_service = false;
  options.metric_freshness = absl::Seconds(1);
  return options;
}

// The folders must be ours and closed to others: see host::CheckPluginDir().
absl::Status MakeFolders(const std::string& plugin_dir,
                         const std::vector<PluginProcesses::Plugin>& plugins) {
  std::vector<std::string> folders = {plugin_dir};
  for (const PluginProcesses::Plugin& plugin : plugins) {
    folders.push_back(absl::StrCat(plugin_dir, "/", plugin.name));
  }
  for (const std::string& folder : folders) {
    if (mkdir(folder.c_str(), 0700) != 0) {
      return absl::InternalError(absl::StrCat(folder, ": want a new folder, could not make it"));
    }
  }
  return absl::OkStatus();
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

absl::StatusOr<std::unique_ptr<LocalOperator>> LocalOperator::Make(
    host::Clock& clock, const host::Executor& strand, const host::Logger& log,
    std::vector<ManifestObject> objects, Options options, Output output) {
  const std::string plugin_dir = PluginDir(options.folder);
  ASSIGN_OR_RETURN(std::vector<PluginProcesses::Plugin> plugins,
                   PlanPlugins(objects, {.bin_dir = options.plugin_bin_dir,
                                         .plugin_dir = plugin_dir,
                                         .log_dir = options.log_dir,
                                         .given = options.plugins}));
  RETURN_IF_ERROR(MakeFolders(plugin_dir, plugins));
  return std::unique_ptr<LocalOperator>(new LocalOperator(clock, strand, log, std::move(objects),
                                                          std::move(options), std::move(output),
                                                          std::move(plugins)));
}

LocalOperator::LocalOperator(host::Clock& clock, const host::Executor& strand,
                             const host::Logger& log, std::vector<ManifestObject> objects,
                             Options options, Output output,
                             std::vector<PluginProcesses::Plugin> plugins)
    : clock_(clock),
      log_(log),
      objects_(std::move(objects)),
      options_(std::move(options)),
      output_(std::move(output)),
      api_(clock),
      directory_(strand, clock, log, /*seed=*/1, host::MakeGrpcConnector(clock, strand, {}),
                 DirectoryOptions(options_)),
      scalers_(directory_, {}),
      plugins_(clock, std::move(plugins), {}, output_.step),
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
             .on_event = [this](const HpaEvent& event) { reader_.OnHpaEvent(event); }}),
      deployments_(api_, clock, log, host::Random(2), ProcessFactory(), {}),
      reader_({.clock = clock,
               .core = core_,
               .scalers = scalers_,
               .deployments = deployments_,
               .plugins = plugins_}),
      tasks_(clock, strand) {}

WorkloadFactory LocalOperator::ProcessFactory() {
  return [this](const api::NamespacedName& key, std::function<void()> changed) {
    ProcessRunner::Options options{.log_folder = options_.log_dir, .print = output_.step};
    return std::make_unique<ProcessRunner>(clock_, log_, key, std::move(options),
                                           std::move(changed));
  };
}

// ---- start and stop -----------------------------------------------------------------------------

host::Task<absl::Status> LocalOperator::Run() {
  absl::Status result = co_await Start();
  if (result.ok() && !stopping_) result = co_await Watch();
  co_await StopInOrder();  // also after a start that failed: what was started ends
  co_return result;
}

void LocalOperator::Stop() {
  stopping_ = true;
  stop_.NotifyAll();
}

void LocalOperator::Kill() {
  deployments_.Kill();
  plugins_.Kill();
  Stop();
}

host::Task<absl::Status> LocalOperator::Start() {
  CO_RETURN_IF_ERROR(plugins_.Start());
  tasks_.Spawn(plugins_.Run());
  CO_RETURN_IF_ERROR(directory_.Start());
  co_await WaitForPlugins();
  CO_RETURN_IF_ERROR(co_await CreateObjects());
  tasks_.Spawn(core_.Run());
  tasks_.Spawn(deployments_.Run());
  CO_RETURN_IF_ERROR(co_await core_.WaitForSync(host::Deadline::After(clock_, kFirstSync)));
  core_.StartLeading();
  tasks_.Spawn(hpas_.Run());
  co_return absl::OkStatus();
}

// So that the first thing to be read is not that a plugin is not there yet. One that does not come
// is said later.
host::Task<void> LocalOperator::WaitForPlugins() {
  const host::SteadyTime end = clock_.SteadyNow() + kFirstConnection;
  const size_t wanted = plugins_.size() + options_.plugins.size();
  auto all_ready = [&] {
    const std::vector<host::PluginStatus> known = scalers_.Plugins();
    return known.size() >= wanted &&
           std::all_of(known.begin(), known.end(), [](const host::PluginStatus& plugin) {
             return plugin.state == host::PluginState::kReady;
           });
  };
  while (!all_ready() && !stopping_ && clock_.SteadyNow() < end)
    co_await clock_.Sleep(absl::Milliseconds(50));
}

host::Task<absl::Status> LocalOperator::CreateObjects() {
  for (const ManifestObject& manifest : objects_) {
    absl::StatusOr<json::value> created =
        co_await api_.Create(manifest.resource, manifest.namespace_name, manifest.object,
                             kube::WriteOptions{}, host::Deadline::After(clock_, absl::Seconds(5)));
    if (!created.ok()) co_return host::Annotate(created.status(), manifest.source);
  }
  co_return absl::OkStatus();
}

// Nobody decides any more, then nobody scales, then the processes go.
host::Task<void> LocalOperator::StopInOrder() {
  hpas_.Stop();
  co_await core_.StopLeading(host::Deadline::Never());
  deployments_.Stop();
  core_.Stop();
  plugins_.Stop();
  co_await tasks_.Join();
  co_await plugins_.Run();  // ends them if the start failed before it looked after them
  co_await directory_.Stop();
}

// ---- what there is to see -----------------------------------------------------------------------

host::Task<absl::Status> LocalOperator::Watch() {
  const host::SteadyTime start = clock_.SteadyNow();
  host::SteadyTime idle_since = start;
  bool was_up = false;
  while (!stopping_) {
    const bool up = Report();
    const host::SteadyTime now = clock_.SteadyNow();
    was_up = was_up || up;
    if (up) idle_since = now;
    if (options_.exit_after_idle && was_up && now - idle_since >= *options_.exit_after_idle) {
      output_.step("everything is back at 0");
      co_return absl::OkStatus();
    }
    if (options_.timeout && now - start >= *options_.timeout) {
      if (!options_.exit_after_idle) co_return absl::OkStatus();
      co_return absl::DeadlineExceededError(absl::StrCat(
          "--timeout: want everything back at 0 within ", absl::FormatDuration(*options_.timeout),
          ", got ", was_up ? "replicas that still run or ran a moment ago" : "no replica at all"));
    }
    co_await stop_.WaitUntil(clock_, now + kLook);
  }
  co_return absl::OkStatus();
}

bool LocalOperator::Report() {
  const LocalState state = reader_.Read();
  for (const std::string& line : steps_.Compare(state)) output_.step(line);
  output_.state(state);
  return std::any_of(state.objects.begin(), state.objects.end(), [](const ObjectView& object) {
    return object.running > 0 || object.replicas > 0;
  });
}

outrigger::introspection::v1::ListPluginsResponse LocalOperator::ListPlugins() const {
  return introspection::DescribePlugins(scalers_);
}

outrigger::introspection::v1::ListObjectsResponse LocalOperator::ListObjects(
    const std::string& namespace_name, const std::string& name) const {
  static const auto* const kNone = new polling::ObjectRegistry();
  const reconcile::LeaderTerm* term = core_.term();
  return introspection::DescribeObjects({.registry = term == nullptr ? *kNone : term->registry(),
                                         .health = core_.health(),
                                         .scalers = scalers_},
                                        namespace_name, name);
}

}  // namespace outrigger::controller::local

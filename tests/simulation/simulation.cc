// SPDX-License-Identifier: Apache-2.0
#include "tests/simulation/simulation.h"

#include <absl/strings/str_cat.h>
#include <absl/strings/str_join.h>

#include <algorithm>
#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <cmath>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <utility>

#include "host/base/random.h"
#include "host/base/task_group.h"
#include "operator/local/hpa_controller.h"
#include "operator/reconcile/operator_core.h"
#include "operator/scaling/metric_name.h"
#include "tests/operator/support/forwarding_api.h"
#include "tests/operator/support/scripted_scalers.h"
#include "tests/simulation/api_weather.h"
#include "tests/simulation/seeded_executor.h"

namespace outrigger::simulation {
namespace {

namespace api = controller::api;
namespace json = boost::json;
namespace kube = controller::kube;
using controller::ForwardingApi;
using controller::ScriptedScalers;
using controller::polling::MetricReading;
using controller::reconcile::OperatorCore;
using host::SteadyTime;
using host::Task;

constexpr int kObjects = 5;
constexpr int kTarget = 5;
constexpr int kMaxReplicas = 10;
constexpr int kFallbackReplicas = 3;
constexpr absl::Duration kHpaSync = absl::Seconds(15);
constexpr absl::Duration kFaultsEnd = absl::Minutes(40);
constexpr absl::Duration kEnd = absl::Hours(1);

// The Api of one process of the operator: once that is killed, nothing goes out any more.
class ProcessApi : public ForwardingApi {
 public:
  using ForwardingApi::ForwardingApi;
  void Kill() { killed_ = true; }

  Task<absl::StatusOr<json::value>> Create(kube::Resource resource, std::string namespace_name,
                                           json::value object, kube::WriteOptions options,
                                           host::Deadline deadline) override {
    if (killed_) return Dead();
    return ForwardingApi::Create(std::move(resource), std::move(namespace_name), std::move(object),
                                 std::move(options), deadline);
  }
  Task<absl::StatusOr<json::value>> Update(kube::Resource resource, std::string namespace_name,
                                           std::string name, json::value object,
                                           kube::WriteOptions options,
                                           host::Deadline deadline) override {
    if (killed_) return Dead();
    return ForwardingApi::Update(std::move(resource), std::move(namespace_name), std::move(name),
                                 std::move(object), std::move(options), deadline);
  }
  Task<absl::StatusOr<json::value>> Patch(kube::Resource resource, std::string namespace_name,
                                          std::string name, kube::PatchType type, json::value patch,
                                          kube::WriteOptions options,
                                          host::Deadline deadline) override {
    if (killed_) return Dead();
    return ForwardingApi::Patch(std::move(resource), std::move(namespace_name), std::move(name),
                                type, std::move(patch), std::move(options), deadline);
  }
  Task<absl::Status> Delete(kube::Resource resource, std::string namespace_name, std::string name,
                            kube::DeleteOptions options, host::Deadline deadline) override {
    if (killed_) return DeadStatus();
    return ForwardingApi::Delete(std::move(resource), std::move(namespace_name), std::move(name),
                                 std::move(options), deadline);
  }

 private:
  static Task<absl::StatusOr<json::value>> Dead() { co_return absl::UnavailableError("killed"); }
  static Task<absl::Status> DeadStatus() { co_return absl::UnavailableError("killed"); }
  bool killed_ = false;
};

// The planted bug: what cannot be read has no work.
class OutageIsZero : public ScriptedScalers {
 public:
  using ScriptedScalers::ScriptedScalers;
  Task<absl::StatusOr<host::MetricsAnswer>> GetMetrics(host::TriggerPtr trigger,
                                                       host::MetricQuery query,
                                                       host::Deadline deadline) override {
    absl::StatusOr<host::MetricsAnswer> answer =
        co_await ScriptedScalers::GetMetrics(trigger, std::move(query), deadline);
    co_return answer.ok() ? std::move(answer) : Zero();
  }
  Task<void> BatchGetMetrics(
      std::vector<host::BatchItem> items,
      std::function<void(size_t, absl::StatusOr<host::MetricsAnswer>)> on_answer,
      host::Deadline deadline) override {
    auto lie = [&on_answer](size_t item, absl::StatusOr<host::MetricsAnswer> answer) {
      on_answer(item, answer.ok() ? std::move(answer) : Zero());
    };
    co_await ScriptedScalers::BatchGetMetrics(std::move(items), lie, deadline);
  }

 private:
  static host::MetricsAnswer Zero() {
    host::MetricsAnswer answer;
    answer.values.emplace_back();
    answer.values.back().set_name("queue");
    return answer;
  }
};

// One process of the operator.
struct Process {
  Process(host::Clock& clock, kube::Api& store, host::ScalerService& scalers, host::Executor strand,
          uint64_t seed)
      : calls(store),
        core({.clock = clock,
              .api = calls,
              .leader_api = calls,
              .scalers = scalers,
              .metrics = metrics,
              .strand = std::move(strand),
              .log = host::Logger(host::MakeNullSink())},
             {.term = {.seed = seed}, .informers = {.api_service = false}}) {}

  ProcessApi calls;
  controller::runtime::MetricsSink metrics;
  OperatorCore core;
  bool stopping = false;
};

// What a scaler truly says over time; nothing while it cannot be read.
struct Source {
  std::string script;
  std::string type;  // redis or kafka: its plugin
  double value = 0;
  bool failing = false;
  std::deque<std::pair<SteadyTime, std::optional<double>>> history;

  // The least work that it told of at some moment since `start`.
  std::optional<double> LeastSince(SteadyTime start) const {
    std::optional<double> least;
    for (size_t i = 0; i < history.size(); ++i) {
      const bool over = i + 1 < history.size() && history[i + 1].first < start;
      if (over || !history[i].second) continue;
      least = std::min(least.value_or(*history[i].second), *history[i].second);
    }
    return least;
  }
};

struct Object {
  std::string name;
  std::vector<Source> sources;
  int min = 0;
  int polling_seconds = 10;
  int cooldown_seconds = 30;
  bool fallback = false;
  int64_t generation = 1;
  SteadyTime changed_at;  // of the values, or of the object
  int replicas = 0;       // of its target, as last seen
};

int CeilOf(double value) { return static_cast<int>(std::ceil(value / kTarget)); }

class World : public controller::local::ExternalMetrics {
 public:
  explicit World(const Options& options)
      : random_(options.seed),
        weather_(clock_, random_.Next()),
        store_(clock_, {.store = {.seed = random_.Next()}, .faults = &weather_}),
        scalers_(options.plant_outage_read_as_zero ? std::make_unique<OutageIsZero>(clock_)
                                                   : std::make_unique<ScriptedScalers>(clock_)),
        executor_(clock_, random_.Next()),
        tasks_(clock_, executor_.executor()),
        hpa_controller_(store_, *this, clock_, {.sync_period = kHpaSync}) {
    weather_.SetOnDone([this](const kube::MemoryCall& call, const absl::Status& outcome) {
      if (outcome.ok() && call.IsWrite()) LookAt(call);
    });
  }

  Outcome Run() {
    tasks_.Spawn(hpa_controller_.Run());
    tasks_.Spawn(PlayPods());
    tasks_.Spawn(Live());
    const bool ended = executor_.RunUntil([this] { return ended_ && tasks_.running() == 0; },
                                          kEnd + absl::Minutes(10));
    if (!ended) Violation("the run did not end");
    return {.violations = std::move(violations_),
            .turns = executor_.turns(),
            .trace = weather_.trace(),
            .faults = weather_.faults() + source_faults_,
            .quota_refusals = weather_.quota_refusals(),
            .scalings = scalings_};
  }

  Task<absl::StatusOr<std::vector<double>>> Get(std::string namespace_name, std::string metric_name,
                                                std::map<std::string, std::string> selector,
                                                host::Deadline deadline) override {
    const std::shared_ptr<Process> process = process_;
    if (process == nullptr) co_return absl::UnavailableError("no operator runs");
    absl::StatusOr<std::vector<MetricReading>> readings =
        co_await process->core.metric_source().Read(
            {.namespace_name = std::move(namespace_name),
             .scaled_object = selector[api::kScaledObjectNameLabel],
             .metric_name = std::move(metric_name)},
            deadline);
    if (!readings.ok()) co_return readings.status();
    std::vector<double> values;
    for (const MetricReading& reading : *readings) values.push_back(reading.value);
    co_return values;
  }

 private:
  // ---- what must hold all along -----------------------------------------------------------------

  template <typename... Parts>
  void Violation(const Parts&... parts) {
    const std::string at = absl::FormatDuration(clock_.SteadyNow().since_epoch());
    if (violations_.size() < 20) violations_.push_back(absl::StrCat(at, ": ", parts...));
  }

  void LookAt(const kube::MemoryCall& call) {
    if (call.resource == kube::Deployments() && call.subresource == "scale") LookAtScaling(call);
    if (call.resource == kube::HorizontalPodAutoscalers()) CheckOneHpaEach();
  }

  void LookAtScaling(const kube::MemoryCall& call) {
    for (Object& object : objects_) {
      if (object.name != call.name) continue;
      const int now = ReplicasOf(object);
      if (now < object.replicas) CheckLowering(object, object.replicas, now);
      if (now != object.replicas) ++scalings_;
      object.replicas = now;
    }
  }

  // Lowering needs a reason: each source said lately that so few are enough, or falls back to them.
  void CheckLowering(const Object& object, int from, int to) {
    const absl::Duration memory = absl::Seconds(object.polling_seconds) + absl::Seconds(25);
    for (const Source& source : object.sources) {
      const std::optional<double> least = source.LeastSince(clock_.SteadyNow() - memory);
      const bool enough = least && CeilOf(*least) <= to;
      const bool falls_back = object.fallback && kFallbackReplicas <= to;
      if (enough || falls_back) continue;
      Violation(object.name, " was lowered from ", from, " to ", to, " though ", source.script,
                least ? absl::StrCat(" has asked for ", CeilOf(*least)) : " could not be read");
    }
  }

  void CheckOneHpaEach() {
    std::map<std::string, int> count;
    for (const json::value& hpa : store_.Objects(kube::HorizontalPodAutoscalers())) {
      const absl::StatusOr<api::ObjectMeta> meta = api::ParseObjectMeta(hpa);
      const api::OwnerReference* owner = meta.ok() ? api::ControllerOf(*meta) : nullptr;
      if (owner == nullptr || ++count[owner->uid] <= 1) continue;
      Violation(owner->name, " has two HPAs");
    }
  }

  void CheckSpecs() {
    for (const Object& object : objects_) {
      const std::optional<api::ScaledObject> stored = Stored(object);
      if (stored && stored->meta.generation != object.generation) {
        Violation(object.name, ": spec was written, generation ", stored->meta.generation);
      }
    }
  }

  // ---- what must hold once the faults are over --------------------------------------------------

  absl::Duration Bound(const Object& object) const {
    return absl::Seconds(30) + absl::Seconds(object.polling_seconds) + 2 * kHpaSync +
           absl::Seconds(5) + absl::Seconds(20);
  }

  // What the HPA recommends at `current` replicas, or the operator below one.
  int WantedOf(const Object& object, int current) const {
    int wanted = 0;
    for (const Source& source : object.sources) {
      const double ratio = current > 0 ? source.value / (kTarget * current) : 0;
      const bool within = 1.0 - 0.1 <= ratio && ratio <= 1.0 + 0.1;  // both ends are, as upstream
      wanted = std::max(wanted, within ? current : CeilOf(source.value));
    }
    return std::clamp(wanted, object.min, kMaxReplicas);
  }

  void CheckConverged(const Object& object) {
    const absl::Duration quiet = clock_.SteadyNow() - object.changed_at;
    if (quiet < Bound(object)) return;
    const int current = ReplicasOf(object);
    const int wanted = WantedOf(object, current);
    const bool cools_down =
        wanted == 0 && quiet < Bound(object) + absl::Seconds(object.cooldown_seconds);
    if (current != wanted && !cools_down) {
      Violation(object.name, " has ", current, " replicas, wanted are ", wanted, "; ",
                ExplanationOf(object));
    }
    const std::optional<api::ScaledObject> stored = Stored(object);
    const auto& conditions = stored->status.conditions;
    if (api::StatusOf(conditions, api::kReady) != api::kTrue ||
        api::StatusOf(conditions, api::kFallback) != api::kFalse) {
      Violation(object.name, ": ", json::serialize(api::ConditionsToJson(conditions)));
    }
  }

  std::string ExplanationOf(const Object& object) const {
    if (process_ == nullptr || process_->core.term() == nullptr) return "nobody leads";
    const auto* tracked = process_->core.term()->registry().Find({"ns", object.name});
    return tracked == nullptr ? "not tracked" : tracked->last_decision.explanation;
  }

  void CheckNothingIsLeft() {
    const OperatorCore& core = process_->core;
    if (core.term() == nullptr) return Violation("nobody leads at the end");
    const size_t left[] = {core.term()->registry().size(), core.term()->queue().known_keys(),
                           core.term()->status().known_objects(), core.health().size(),
                           store_.Objects(kube::HorizontalPodAutoscalers()).size()};
    for (const size_t count : left) {
      if (count == 0) continue;
      Violation("left of deleted objects: tracked, queued, statuses, records, HPAs: ",
                absl::StrJoin(left, ", "));
      return;
    }
  }

  // ---- the course of the hour -------------------------------------------------------------------

  Task<void> Live() {
    scalers_->Connect("redis-plugin", {"redis"});
    scalers_->Connect("kafka-plugin", {"kafka"});
    for (int i = 0; i < kObjects; ++i) co_await MakeObject(i);
    StartOperator();
    while (clock_.SteadyNow().since_epoch() < kFaultsEnd) {
      co_await clock_.Sleep(absl::Milliseconds(2000 + random_.Next() % 40'000));
      co_await Something();
      CheckSpecs();
    }
    co_await EndFaults();
    while (clock_.SteadyNow().since_epoch() < kEnd - absl::Minutes(4)) {
      co_await clock_.Sleep(absl::Seconds(15));
      for (const Object& object : objects_) CheckConverged(object);
      CheckSpecs();
    }
    weather_.ResetOperatorWrites();
    co_await clock_.Sleep(absl::Minutes(1));
    if (weather_.operator_writes() > 0) {
      Violation(weather_.operator_writes(), " writes in a steady minute");
    }
    for (const Object& object : objects_) co_await DeleteObject(object);
    co_await clock_.Sleep(absl::Minutes(2));
    CheckNothingIsLeft();
    co_await StopOperator(false);
    hpa_controller_.Stop();
    ended_ = true;
  }

  Task<void> Something() {
    Object& object = objects_[random_.Next() % objects_.size()];
    Source& source = object.sources[random_.Next() % object.sources.size()];
    switch (random_.Next() % 15) {
      case 0:
      case 1:
        SetValue(object, source, 0);
        break;
      case 2:
      case 3:
      case 4:
        SetValue(object, source, static_cast<double>(random_.Next() % 60));
        break;
      case 5:
      case 6:
        source.failing = !source.failing;
        ++source_faults_;
        Apply(source);
        break;
      case 7:
        TogglePlugin(random_.Next() % 2 == 0 ? "redis" : "kafka");
        break;
      case 8:
        weather_.SetStorm(!weather_.storm());
        break;
      case 9:
        store_.Compact();
        [[fallthrough]];
      case 10:
        store_.CutWatches();
        break;
      case 11:
        co_await RestartOperator(/*killed=*/random_.Next() % 2 == 0);
        break;
      case 12:
        (*scalers_)[source.script].delay = absl::Milliseconds(random_.Next() % 2500);
        break;
      case 13:
        weather_.SetQuotaFull(!weather_.quota_full());
        break;
      default:
        co_await DeleteObject(object);
        co_await CreateObject(object);
    }
  }

  Task<void> EndFaults() {
    weather_.SetStorm(false);
    weather_.SetQuotaFull(false);
    for (const char* type : {"redis", "kafka"}) {
      if (away_[type]) TogglePlugin(type);
    }
    for (Object& object : objects_) {
      for (Source& source : object.sources) {
        source.failing = false;
        (*scalers_)[source.script].delay = absl::ZeroDuration();
        Apply(source);
      }
      object.changed_at = clock_.SteadyNow();
    }
    // Else it has to get over what it remembers of them: queues that back off, quotas, breakers.
    if (random_.Next() % 2 == 0) co_await RestartOperator(/*killed=*/true);
  }

  // ---- sources ----------------------------------------------------------------------------------

  void SetValue(Object& object, Source& source, double value) {
    source.value = value;
    object.changed_at = clock_.SteadyNow();
    Apply(source);
  }

  void Apply(Source& source) {
    ScriptedScalers::Script& script = (*scalers_)[source.script];
    script.values = {{"queue", source.value}};
    script.error = source.failing ? absl::UnavailableError("connection refused") : absl::OkStatus();
    const bool readable = !source.failing && !away_[source.type];
    source.history.emplace_back(clock_.SteadyNow(),
                                readable ? std::make_optional(source.value) : std::nullopt);
    if (source.history.size() > 50) source.history.pop_front();
  }

  void TogglePlugin(const std::string& type) {
    ++source_faults_;
    away_[type] = !away_[type];
    away_[type] ? scalers_->Disconnect(type + "-plugin")
                : scalers_->Connect(type + "-plugin", {type});
    for (Object& object : objects_) {
      for (Source& source : object.sources) {
        if (source.type == type) Apply(source);
      }
    }
  }

  // ---- objects ----------------------------------------------------------------------------------

  Task<void> MakeObject(int i) {
    Object object;
    object.name = absl::StrCat("so", i);
    object.min = i % 3 == 0 ? 1 : 0;
    object.polling_seconds = i % 2 == 0 ? 10 : 30;
    object.cooldown_seconds = 30 + 30 * (i % 2);
    object.fallback = i % 2 == 1;
    object.replicas = i % 4;
    object.sources.push_back({.script = absl::StrCat("redis", i), .type = "redis"});
    if (i % 3 == 2) object.sources.push_back({.script = absl::StrCat("kafka", i), .type = "kafka"});
    for (Source& source : object.sources) Apply(source);
    objects_.push_back(object);
    co_await Write("create", kube::Deployments(), object.name,
                   absl::StrCat(R"({"metadata":{"name":")", object.name,
                                R"("},"spec":{"replicas":)", object.replicas,
                                R"(,"selector":{"matchLabels":{"app":")", object.name, R"("}}}})"));
    co_await CreateObject(objects_.back());
  }

  std::string SpecOf(const Object& object) const {
    std::vector<std::string> triggers;
    for (const Source& source : object.sources) {
      triggers.push_back(absl::StrCat(R"({"type":")", source.type, R"(","metadata":{"script":")",
                                      source.script, R"("}})"));
    }
    const std::string rules =
        R"({"stabilizationWindowSeconds":0,"policies":[{"type":"Pods","value":100,"periodSeconds":15}]})";
    return absl::StrCat(
        R"({"scaleTargetRef":{"name":")", object.name, R"("},"pollingInterval":)",
        object.polling_seconds, R"(,"cooldownPeriod":)", object.cooldown_seconds,
        R"(,"minReplicaCount":)", object.min, R"(,"maxReplicaCount":)", kMaxReplicas,
        object.fallback ? absl::StrCat(R"(,"fallback":{"failureThreshold":3,"replicas":)",
                                       kFallbackReplicas, "}")
                        : "",
        R"(,"advanced":{"horizontalPodAutoscalerConfig":{"behavior":{"scaleUp":)", rules,
        R"(,"scaleDown":)", rules, R"(}}},"triggers":[)", absl::StrJoin(triggers, ","), "]}");
  }

  Task<void> CreateObject(Object& object) {
    object.changed_at = clock_.SteadyNow();
    co_await Write(
        "create", kube::ScaledObjects(), object.name,
        absl::StrCat(R"({"apiVersion":"keda.sh/v1alpha1","kind":"ScaledObject",)",
                     R"("metadata":{"name":")", object.name, R"("},"spec":)", SpecOf(object), "}"));
    object.changed_at = clock_.SteadyNow();
  }

  // Returns when it is gone: a finalizer holds it.
  Task<void> DeleteObject(const Object& object) {
    co_await Write("delete", kube::ScaledObjects(), object.name, "null");
    for (int i = 0; i < 600 && Stored(object); ++i) co_await clock_.Sleep(absl::Seconds(1));
    if (Stored(object)) Violation(object.name, " was not gone 10 minutes after its deletion");
  }

  // Until it is done, whatever the weather.
  Task<void> Write(std::string verb, kube::Resource resource, std::string name, std::string text) {
    while (true) {
      const host::Deadline deadline = host::Deadline::After(clock_, absl::Seconds(10));
      absl::Status status;
      if (verb == "delete") {
        status = co_await store_.Delete(resource, "ns", name, {}, deadline);
      } else if (verb == "create") {
        status = (co_await store_.Create(resource, "ns", json::parse(text), {}, deadline)).status();
      } else {
        status = (co_await store_.Patch(resource, "ns", name, kube::PatchType::kMerge,
                                        json::parse(text), {.subresource = "status"}, deadline))
                     .status();
      }
      if (status.ok() || absl::IsNotFound(status) || absl::IsAlreadyExists(status)) co_return;
      co_await clock_.Sleep(absl::Milliseconds(200));
    }
  }

  std::optional<api::ScaledObject> Stored(const Object& object) const {
    for (const json::value& stored : store_.Objects(kube::ScaledObjects())) {
      absl::StatusOr<api::ScaledObject> parsed = api::ParseScaledObject(stored);
      if (parsed.ok() && parsed->meta.name == object.name) return *std::move(parsed);
    }
    return std::nullopt;
  }

  int ReplicasOf(const Object& object) const {
    for (const json::value& stored : store_.Objects(kube::Deployments())) {
      if (stored.at("metadata").at("name").as_string() != object.name) continue;
      return stored.at("spec").at("replicas").to_number<int>();
    }
    return -1;
  }

  // The Deployment controller and the kubelet: each wanted replica is ready a little later.
  Task<void> PlayPods() {
    while (!ended_) {
      co_await clock_.Sleep(absl::Seconds(3));
      for (const Object& object : objects_) {
        const int replicas = ReplicasOf(object);
        if (replicas < 0 || shown_[object.name] == replicas) continue;
        shown_[object.name] = replicas;
        co_await Write("patch", kube::Deployments(), object.name,
                       absl::StrCat(R"({"status":{"replicas":)", replicas, R"(,"readyReplicas":)",
                                    replicas, "}}"));
      }
    }
  }

  // ---- the operator -----------------------------------------------------------------------------

  void StartOperator() {
    process_ =
        std::make_shared<Process>(clock_, store_, *scalers_, executor_.executor(), random_.Next());
    tasks_.Spawn(RunProcess(process_));
    tasks_.Spawn(Lead(process_));
  }
  Task<void> RunProcess(std::shared_ptr<Process> process) {
    co_await process->core.Run();
    ++processes_ended_;
  }
  Task<void> Lead(std::shared_ptr<Process> process) {
    while (!process->stopping && !process->core.Synced()) {
      (void)co_await process->core.WaitForSync(host::Deadline::After(clock_, absl::Seconds(5)));
    }
    if (!process->stopping) process->core.StartLeading();
  }
  Task<void> StopOperator(bool killed) {
    const std::shared_ptr<Process> process = std::exchange(process_, nullptr);
    process->stopping = true;
    if (killed) process->calls.Kill();
    const int before = processes_ended_;
    process->core.Stop();
    const SteadyTime start = clock_.SteadyNow();
    while (processes_ended_ == before) {
      co_await clock_.Sleep(absl::Milliseconds(100));
      if (clock_.SteadyNow() - start < absl::Minutes(3)) continue;
      Violation("the operator does not stop");
      co_return;
    }
    scalers_->SetChangeListener({});
  }
  Task<void> RestartOperator(bool killed) {
    co_await StopOperator(killed);
    co_await clock_.Sleep(absl::Milliseconds(random_.Next() % 15'000));
    StartOperator();
  }

  host::FakeClock clock_;
  host::Random random_;
  ApiWeather weather_;
  kube::MemoryApi store_;
  const std::unique_ptr<ScriptedScalers> scalers_;
  std::map<std::string, bool> away_;  // plugins, by type
  std::vector<Object> objects_;
  std::map<std::string, int> shown_;  // replicas that PlayPods() made ready
  std::shared_ptr<Process> process_;  // null: none runs
  int processes_ended_ = 0;
  int source_faults_ = 0;
  int scalings_ = 0;
  bool ended_ = false;
  std::vector<std::string> violations_;
  SeededExecutor executor_;  // the first to go: it drops what is suspended
  host::TaskGroup tasks_;
  controller::local::HpaController hpa_controller_;
};

}  // namespace

Outcome Simulate(const Options& options) { return World(options).Run(); }

}  // namespace outrigger::simulation

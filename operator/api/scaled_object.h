// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <absl/status/statusor.h>
#include <absl/time/time.h>

#include <boost/json/object.hpp>
#include <boost/json/value.hpp>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "operator/api/condition.h"
#include "operator/api/object_meta.h"

namespace outrigger::controller::api {

inline constexpr char kKedaGroup[] = "keda.sh";
inline constexpr char kKedaApiVersion[] = "keda.sh/v1alpha1";
inline constexpr char kScaledObjectKind[] = "ScaledObject";

// Names that stand in users' manifests and in other people's dashboards. Source:
// spec/scaledobject.md section 4.
inline constexpr char kFinalizer[] = "finalizer.keda.sh";
inline constexpr char kScaledObjectNameLabel[] = "scaledobject.keda.sh/name";
inline constexpr char kPausedAnnotation[] = "autoscaling.keda.sh/paused";
inline constexpr char kPausedReplicasAnnotation[] = "autoscaling.keda.sh/paused-replicas";
inline constexpr char kPausedScaleInAnnotation[] = "autoscaling.keda.sh/paused-scale-in";
inline constexpr char kPausedScaleOutAnnotation[] = "autoscaling.keda.sh/paused-scale-out";
inline constexpr char kForceActivationAnnotation[] = "autoscaling.keda.sh/force-activation";
inline constexpr char kTransferHpaOwnershipAnnotation[] =
    "scaledobject.keda.sh/transfer-hpa-ownership";
inline constexpr char kHpaExcludedLabelsAnnotation[] = "scaledobject.keda.sh/hpa-excluded-labels";

inline constexpr int32_t kDefaultPollingIntervalSeconds = 30;
inline constexpr int32_t kDefaultCooldownPeriodSeconds = 300;
inline constexpr int32_t kDefaultMaxReplicaCount = 100;

struct ScaleTargetRef {
  std::string name;
  std::string api_version;                // empty: apps/v1
  std::string kind;                       // empty: Deployment
  std::string env_source_container_name;  // empty: the first container
};

struct AuthenticationRef {
  std::string name;
  std::string kind;  // empty: TriggerAuthentication
};

struct Trigger {
  std::string type;
  std::string name;  // empty: none
  std::map<std::string, std::string> metadata;
  bool use_cached_metrics = false;
  std::string metric_type;  // as written: "", "AverageValue", "Value" or "Utilization"; empty means
                            // AverageValue
  std::optional<AuthenticationRef> authentication_ref;
};

struct Fallback {
  int32_t failure_threshold = 0;
  int32_t replicas = 0;
  std::string behavior = "static";
};

struct ScalingModifiers {
  std::string formula;
  std::string target;             // text of a float
  std::string activation_target;  // text of a float
  std::string metric_type;        // empty: AverageValue
};

struct Advanced {
  bool restore_to_original_replica_count = false;
  std::string hpa_name;  // horizontalPodAutoscalerConfig.name; empty: keda-hpa-<name>
  // horizontalPodAutoscalerConfig.behavior: an object of autoscaling/v2 that is copied through;
  // null: absent.
  boost::json::value hpa_behavior;
  std::optional<ScalingModifiers> scaling_modifiers;
};

// spec, as written: what is absent stays absent, defaults are applied by the accessors.
// Source: spec/scaledobject.md section 2.
struct ScaledObjectSpec {
  ScaleTargetRef scale_target_ref;
  std::optional<int32_t> polling_interval_seconds;
  std::optional<int32_t> initial_cooldown_period_seconds;
  std::optional<int32_t> cooldown_period_seconds;
  std::optional<int32_t> idle_replica_count;
  std::optional<int32_t> min_replica_count;
  std::optional<int32_t> max_replica_count;
  std::vector<Trigger> triggers;
  std::optional<Fallback> fallback;
  Advanced advanced;

  absl::Duration PollingInterval() const;  // never below 1 s
  absl::Duration InitialCooldownPeriod() const;
  absl::Duration CooldownPeriod() const;
  int32_t MinReplicas() const { return min_replica_count.value_or(0); }  // of the target
  int32_t MaxReplicas() const {
    return max_replica_count.value_or(kDefaultMaxReplicaCount);
  }  // of target and HPA
  int32_t HpaMinReplicas() const {
    return MinReplicas() > 0 ? MinReplicas() : 1;
  }  // also: what 0 is activated to
};

struct GroupVersionKindResource {
  std::string group;
  std::string version;
  std::string kind;
  std::string resource;

  friend bool operator==(const GroupVersionKindResource&,
                         const GroupVersionKindResource&) = default;
};

inline constexpr char kHappy[] = "Happy";
inline constexpr char kFailing[] = "Failing";

struct MetricHealth {
  int32_t number_of_failures = 0;  // failed poll cycles in a row
  std::string status = kHappy;     // "Happy" or "Failing"

  friend bool operator==(const MetricHealth&, const MetricHealth&) = default;
};

enum class Phase { kNone, kRunning, kQuotaExceeded };
absl::string_view PhaseName(Phase phase);  // "", "Running", "QuotaExceeded"

// status. Source: spec/scaledobject.md section 5; observedGeneration, phase and the conditions'
// times are ours.
struct ScaledObjectStatus {
  int64_t observed_generation = 0;
  Phase phase = Phase::kNone;
  std::string scale_target_kind;  // "apps/v1.Deployment"
  std::optional<GroupVersionKindResource> scale_target_gvkr;
  std::optional<int32_t> original_replica_count;
  std::optional<absl::Time> last_active_time;
  std::vector<std::string> external_metric_names;  // in trigger order, with their s<index>- prefix
  std::vector<std::string> resource_metric_names;
  std::string composite_scaler_name;
  Conditions conditions;
  std::map<std::string, MetricHealth> health;     // by external metric name
  std::map<std::string, bool> triggers_activity;  // by external metric name
  std::optional<int32_t> paused_replica_count;
  std::string hpa_name;
  std::string triggers_types;         // unique types in order, comma joined
  std::string authentications_types;  // unique authenticationRef names in order, comma joined

  friend bool operator==(const ScaledObjectStatus&, const ScaledObjectStatus&) = default;
};

struct ScaledObject {
  ObjectMeta meta;
  ScaledObjectSpec spec;
  ScaledObjectStatus status;

  NamespacedName Key() const { return meta.Key(); }
  // horizontalPodAutoscalerConfig.name, or keda-hpa-<name>.
  std::string HpaName() const;
};

// The same in all that starts a reconcile: everything but the status, its version, and owners.
bool SameButStatus(const ScaledObject& a, const ScaledObject& b);

// Reads one ScaledObject as the API server sends it. Unknown members are ignored; a member of the
// wrong JSON type or a number outside int32 is INVALID_ARGUMENT, naming the path, what was wanted
// and what came. What the values mean is checked by ValidateScaledObject(). A status that cannot be
// read is an empty status: it is ours to rewrite.
absl::StatusOr<ScaledObject> ParseScaledObject(const boost::json::value& object);

// The status member. Empty fields are left out; times are RFC 3339.
boost::json::object StatusToJson(const ScaledObjectStatus& status);
// INVALID_ARGUMENT like ParseScaledObject. A missing or null value is the empty status.
absl::StatusOr<ScaledObjectStatus> ParseScaledObjectStatus(const boost::json::value& status);

// Names the first field or annotation in use that this release does not act upon yet
// (scalingModifiers, idleReplicaCount, non-static fallback, pausing, …), or nothing. Such an object
// is not scaled: Ready=False, reason NotSupported; its HPA and replicas are left as they are.
std::optional<std::string> UnsupportedField(const ScaledObject& object);

// status.triggersTypes and status.authenticationsTypes of a spec.
std::string TriggersTypes(const ScaledObjectSpec& spec);
std::string AuthenticationsTypes(const ScaledObjectSpec& spec);

// cpu and memory become Resource metrics of the HPA; nobody is asked for their value.
bool IsResourceTrigger(const Trigger& trigger);

}  // namespace outrigger::controller::api

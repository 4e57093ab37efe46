// SPDX-License-Identifier: Apache-2.0
// deploy/crds on a real kube-apiserver: what is kept, what is refused, what kubectl prints.
#include <absl/strings/str_cat.h>
#include <absl/strings/str_split.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <boost/json/serialize.hpp>

#include "operator/api/scaled_object.h"
#include "tests/cluster/cache.h"
#include "tests/cluster/deployed.h"

namespace outrigger::tests {
namespace {

namespace api = controller::api;
namespace json = boost::json;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr const char* kPlurals[] = {"scaledobjects", "scaledjobs", "triggerauthentications",
                                    "clustertriggerauthentications"};

std::string Manifest(absl::string_view kind, absl::string_view name, absl::string_view spec) {
  return absl::StrCat("{apiVersion: keda.sh/v1alpha1, kind: ", kind, ", metadata: {name: ", name,
                      "}, spec: ", spec, "}");
}

// Strict: a field that the schema does not know is an error, not pruned.
absl::StatusOr<CommandResult> TryCreate(absl::string_view manifest) {
  return DeployedControlPlane().Kubectl(
      {"create", "--dry-run=server", "--validate=strict", "-f", "-"}, manifest);
}

TEST(CrdTest, SchemasAreStructural) {
  for (const char* plural : kPlurals) {
    const auto crd =
        KubectlJson(DeployedControlPlane(), {"get", "crd", absl::StrCat(plural, ".keda.sh")});
    ASSERT_TRUE(crd.ok()) << crd.status();
    std::vector<std::string> conditions;
    for (const json::value& condition : crd->at("status").at("conditions").as_array()) {
      conditions.push_back(absl::StrCat(condition.at("type").as_string().c_str(), "=",
                                        condition.at("status").as_string().c_str()));
    }
    EXPECT_THAT(conditions, testing::UnorderedElementsAre("NamesAccepted=True", "Established=True"))
        << plural;
  }
}

// Each property, by path, that `theirs` has and `ours` has not.
void CollectMissing(const json::value& theirs, const json::value& ours, const std::string& path,
                    std::vector<std::string>& missing) {
  const json::object* kept_whole = ours.if_object();
  if (kept_whole == nullptr) return;
  if (kept_whole->contains("x-kubernetes-preserve-unknown-fields")) return;
  for (const char* nested : {"items", "additionalProperties"}) {
    const json::value* their_nested = theirs.as_object().if_contains(nested);
    if (their_nested == nullptr) continue;
    const json::value* our_nested = kept_whole->if_contains(nested);
    if (our_nested == nullptr) {
      missing.push_back(absl::StrCat(path, " ", nested));
    } else if (their_nested->is_object()) {
      CollectMissing(*their_nested, *our_nested, path + "[]", missing);
    }
  }
  const json::value* properties = theirs.as_object().if_contains("properties");
  if (properties == nullptr) return;
  const json::value* our_properties = kept_whole->if_contains("properties");
  for (const json::key_value_pair& property : properties->as_object()) {
    const std::string name = absl::StrCat(path, ".", std::string(property.key()));
    const json::value* our_property = our_properties == nullptr
                                          ? nullptr
                                          : our_properties->as_object().if_contains(property.key());
    if (our_property == nullptr) {
      missing.push_back(name);
    } else {
      CollectMissing(property.value(), *our_property, name, missing);
    }
  }
}

absl::StatusOr<json::value> SchemaIn(const std::string& file) {
  auto crd = KubectlJson(DeployedControlPlane(), {"create", "--dry-run=client", "-f", file});
  if (!crd.ok()) return crd.status();
  return crd->at("spec").at("versions").at(0).at("schema").at("openAPIV3Schema");
}

TEST(CrdTest, EveryFieldOfKedasOwnSchemasIsKept) {
  for (const char* plural : kPlurals) {
    const auto theirs = SchemaIn(absl::StrCat(KedaCrdFolder(), "/keda.sh_", plural, ".yaml"));
    ASSERT_TRUE(theirs.ok()) << theirs.status();
    const auto ours = SchemaIn(SourcePath(absl::StrCat("deploy/crds/", plural, ".yaml")));
    ASSERT_TRUE(ours.ok()) << ours.status();
    std::vector<std::string> missing;
    CollectMissing(*theirs, *ours, plural, missing);
    EXPECT_THAT(missing, IsEmpty());
  }
}

// Shows R9.
// Shows R10.
TEST(CrdTest, KeepsEveryFieldOfTheStatusThatTheOperatorWrites) {
  ControlPlane& plane = DeployedControlPlane();
  const std::string manifest =
      Manifest("ScaledObject", "whole-status",
               "{scaleTargetRef: {name: a}, triggers: [{type: redis, metadata: {}}]}");
  ASSERT_TRUE(plane.MustKubectl({"create", "-f", "-"}, manifest).ok());
  const absl::Time now = absl::FromUnixSeconds(1767225600);
  api::ScaledObjectStatus status;
  status.observed_generation = 7;
  status.phase = api::Phase::kQuotaExceeded;
  status.scale_target_kind = "apps/v1.Deployment";
  status.scale_target_gvkr = {"apps", "v1", "Deployment", "deployments"};
  status.original_replica_count = 3;
  status.last_active_time = now;
  status.external_metric_names = {"s0-redis-orders"};
  status.resource_metric_names = {"cpu"};
  status.composite_scaler_name = "composite-metric";
  api::InitializeConditions(status.conditions, now, 7);
  api::SetCondition(status.conditions, api::kReady, api::kTrue, api::reason::kScaledObjectReady,
                    "ready", now, 7);
  status.health["s0-redis-orders"] = {.number_of_failures = 3, .status = api::kFailing};
  status.triggers_activity["s0-redis-orders"] = true;
  status.paused_replica_count = 2;
  status.hpa_name = "keda-hpa-whole-status";
  status.triggers_types = "redis,cpu";
  status.authentications_types = "redis-password";

  const std::string patch = json::serialize(json::object{{"status", api::StatusToJson(status)}});
  const auto patched = plane.MustKubectl(
      {"patch", "so", "whole-status", "--subresource=status", "--type=merge", "-p", patch});
  ASSERT_TRUE(patched.ok()) << patched.status();
  const auto object = KubectlJson(plane, {"get", "so", "whole-status"});
  ASSERT_TRUE(object.ok()) << object.status();
  const auto kept = api::ParseScaledObjectStatus(object->at("status"));
  ASSERT_TRUE(kept.ok()) << kept.status();
  EXPECT_EQ(*kept, status) << json::serialize(object->at("status"));
}

std::vector<std::vector<std::string>> Table(absl::string_view text) {
  std::vector<std::vector<std::string>> rows;
  for (absl::string_view line : absl::StrSplit(text, '\n', absl::SkipEmpty())) {
    rows.push_back(absl::StrSplit(line, absl::ByAnyChar(" "), absl::SkipEmpty()));
  }
  return rows;
}

TEST(CrdTest, GetPrintsTheColumnsOfAScaledObjectInOrder) {
  ControlPlane& plane = DeployedControlPlane();
  const std::string manifest = Manifest("ScaledObject", "columns", R"({
    scaleTargetRef: {name: orders}, minReplicaCount: 0, maxReplicaCount: 10,
    triggers: [{type: redis, metadata: {}, authenticationRef: {name: password}}]})");
  ASSERT_TRUE(plane.MustKubectl({"create", "-f", "-"}, manifest).ok());
  constexpr char kStatus[] = R"({"status": {"scaleTargetKind": "apps/v1.Deployment",
    "triggersTypes": "redis", "authenticationsTypes": "password", "conditions": [
      {"type": "Ready", "status": "True"}, {"type": "Active", "status": "False"},
      {"type": "Fallback", "status": "Unknown"}, {"type": "Paused", "status": "False"}]}})";
  ASSERT_TRUE(plane
                  .MustKubectl({"patch", "scaledobject", "columns", "--subresource=status",
                                "--type=merge", "-p", kStatus})
                  .ok());
  const auto printed = plane.MustKubectl({"get", "so", "columns"});
  ASSERT_TRUE(printed.ok()) << printed.status();
  std::vector<std::vector<std::string>> table = Table(*printed);
  ASSERT_EQ(table.size(), 2u) << *printed;
  ASSERT_FALSE(table[1].empty());
  table[1].back() = "<age>";
  EXPECT_THAT(table[0], testing::ElementsAre("NAME", "SCALETARGETKIND", "SCALETARGETNAME", "MIN",
                                             "MAX", "READY", "ACTIVE", "FALLBACK", "PAUSED",
                                             "TRIGGERS", "AUTHENTICATIONS", "AGE"));
  EXPECT_THAT(table[1],
              testing::ElementsAre("columns", "apps/v1.Deployment", "orders", "0", "10", "True",
                                   "False", "Unknown", "False", "redis", "password", "<age>"));
}

struct Accepted {
  const char* name;
  const char* kind;
  const char* spec;
};
class AcceptedTest : public testing::TestWithParam<Accepted> {};

TEST_P(AcceptedTest, IsCreatedWithoutALostField) {
  const auto result = TryCreate(Manifest(GetParam().kind, "accepted", GetParam().spec));
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_TRUE(result->ok()) << result->Describe();
}

INSTANTIATE_TEST_SUITE_P(
    Specs, AcceptedTest,
    testing::ValuesIn<Accepted>({
        {"SmallestScaledObject", "ScaledObject",
         "{scaleTargetRef: {name: a}, triggers: [{type: redis, metadata: {}}]}"},
        {"WholeScaledObject", "ScaledObject", R"({
           scaleTargetRef: {name: a, apiVersion: apps/v1, kind: StatefulSet, envSourceContainerName: c},
           pollingInterval: 1, initialCooldownPeriod: 0, cooldownPeriod: 0, idleReplicaCount: 0,
           minReplicaCount: 1, maxReplicaCount: 1,
           fallback: {failureThreshold: 0, replicas: 0, behavior: currentReplicasIfHigher},
           triggers: [{type: redis, name: q, metadata: {listName: a}, useCachedMetrics: true,
             metricType: Value, authenticationRef: {name: t, kind: ClusterTriggerAuthentication}}],
           advanced: {restoreToOriginalReplicaCount: true,
             horizontalPodAutoscalerConfig: {name: mine, behavior: {
               scaleUp: {stabilizationWindowSeconds: 0, selectPolicy: Max, tolerance: 100m,
                 policies: [{type: Pods, value: 4, periodSeconds: 15}]},
               scaleDown: {stabilizationWindowSeconds: 300, selectPolicy: Disabled, tolerance: 1,
                 policies: [{type: Percent, value: 100, periodSeconds: 15}]}}},
             scalingModifiers: {formula: q * 2, target: '2.5', activationTarget: '1',
               metricType: AverageValue}}})"},
        {"MinimumIsTheDefaultMaximum", "ScaledObject",
         "{scaleTargetRef: {name: a}, minReplicaCount: 100, triggers: [{type: x, metadata: {}}]}"},
        {"WholeScaledJob", "ScaledJob", R"({
           jobTargetRef: {parallelism: 1, backoffLimit: 2, template: {spec: {containers: [{name: c}]}}},
           pollingInterval: 1, successfulJobsHistoryLimit: 0, failedJobsHistoryLimit: 0,
           rolloutStrategy: gradual, rollout: {strategy: immediate, propagationPolicy: foreground},
           envSourceContainerName: c, minReplicaCount: 5, maxReplicaCount: 1,
           scalingStrategy: {strategy: custom, customScalingQueueLengthDeduction: 1,
             customScalingRunningJobPercentage: '0.5', pendingPodConditions: [Ready],
             multipleScalersCalculation: avg},
           triggers: [{type: redis, metadata: {}}]})"},
        {"Secrets", "TriggerAuthentication", R"({
           secretTargetRef: [{parameter: password, name: s, key: k}],
           configMapTargetRef: [{parameter: user, name: c, key: k}],
           env: [{parameter: a, name: B}, {parameter: b, name: B, containerName: c}]})"},
        {"File", "ClusterTriggerAuthentication", "{filePath: a.json}"},
        {"PodIdentity", "TriggerAuthentication",
         "{podIdentity: {provider: aws, identityId: a, identityTenantId: b, identityAuthorityHost: "
         "c,"
         " roleArn: d, externalID: e, identityOwner: keda}}"},
        {"Vault", "ClusterTriggerAuthentication", R"({hashiCorpVault: {address: a, namespace: ns,
           authentication: kubernetes, role: r, mount: m,
           credential: {token: t, serviceAccount: s, serviceAccountName: sn},
           secrets: [{parameter: p, path: q, key: k, type: pki, pkiData: {commonName: c, altNames: a,
             ipSans: i, uriSans: u, otherSans: o, ttl: t, format: f}}]}})"},
        {"Clouds", "TriggerAuthentication", R"({
           azureKeyVault: {vaultUri: u, secrets: [{parameter: p, name: nm, version: v}],
             credentials: {clientId: a, tenantId: b,
               clientSecret: {valueFrom: {secretKeyRef: {name: nm, key: k}}}},
             podIdentity: {provider: azure-workload},
             cloud: {type: Private, keyVaultResourceURL: u, activeDirectoryEndpoint: e}},
           gcpSecretManager: {secrets: [{parameter: p, id: i, version: v}],
             credentials: {clientSecret: {valueFrom: {secretKeyRef: {name: nm, key: k}}}},
             podIdentity: {provider: gcp}},
           awsSecretManager: {region: r, podIdentity: {provider: aws},
             secrets: [{parameter: p, name: nm, versionId: v, versionStage: s, secretKey: k}],
             credentials: {accessKey: {valueFrom: {secretKeyRef: {name: nm, key: k}}},
               accessSecretKey: {valueFrom: {secretKeyRef: {name: nm, key: k}}},
               accessToken: {valueFrom: {secretKeyRef: {name: nm, key: k}}}}}})"},
        {"Tokens", "TriggerAuthentication", R"({
           boundServiceAccountToken: [{parameter: p, serviceAccountName: s}],
           oauth2: {clientId: c, clientSecret: {valueFrom: {secretKeyRef: {name: nm, key: k}}},
             tokenUrl: u, scopes: [a], tokenUrlParams: {b: '1'}}})"},
    }),
    [](const auto& info) { return std::string(info.param.name); });

struct Refused {
  const char* name;
  const char* kind;
  const char* spec;
  const char* message;
};
class RefusedTest : public testing::TestWithParam<Refused> {};

TEST_P(RefusedTest, NamesTheField) {
  const auto result = TryCreate(Manifest(GetParam().kind, "refused", GetParam().spec));
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_NE(result->exit_code, 0);
  EXPECT_THAT(result->stderr_text, HasSubstr(GetParam().message));
}

// A ScaledObject's spec with `more` beside a target and a trigger.
#define WITH(more) "{scaleTargetRef: {name: a}, triggers: [{type: x, metadata: {}}], " more "}"
#define JOB(more) "{jobTargetRef: {template: {}}, triggers: [{type: x, metadata: {}}], " more "}"

INSTANTIATE_TEST_SUITE_P(
    Rules, RefusedTest,
    testing::ValuesIn<Refused>({
        {"MinimumAboveMaximum", "ScaledObject", WITH("minReplicaCount: 3, maxReplicaCount: 2"),
         "minReplicaCount must be less than or equal to maxReplicaCount"},
        {"MinimumAboveDefaultMaximum", "ScaledObject", WITH("minReplicaCount: 101"),
         "minReplicaCount must be less than or equal to maxReplicaCount"},
        {"NegativeMinimum", "ScaledObject", WITH("minReplicaCount: -1"), "spec.minReplicaCount"},
        {"MaximumZero", "ScaledObject", WITH("maxReplicaCount: 0"), "spec.maxReplicaCount"},
        {"NegativeIdle", "ScaledObject", WITH("idleReplicaCount: -1"), "spec.idleReplicaCount"},
        {"PollingIntervalZero", "ScaledObject", WITH("pollingInterval: 0"), "spec.pollingInterval"},
        {"NegativeCooldown", "ScaledObject", WITH("cooldownPeriod: -1"), "spec.cooldownPeriod"},
        {"NegativeInitialCooldown", "ScaledObject", WITH("initialCooldownPeriod: -1"),
         "spec.initialCooldownPeriod"},
        {"NoTarget", "ScaledObject", "{triggers: [{type: x, metadata: {}}]}",
         "spec.scaleTargetRef: Required value"},
        {"EmptyTargetName", "ScaledObject",
         "{scaleTargetRef: {name: ''}, triggers: [{type: x, metadata: {}}]}",
         "spec.scaleTargetRef.name"},
        {"NoTriggers", "ScaledObject", "{scaleTargetRef: {name: a}, triggers: []}",
         "spec.triggers"},
        {"EmptyTriggerType", "ScaledObject",
         "{scaleTargetRef: {name: a}, triggers: [{type: '', metadata: {}}]}",
         "spec.triggers[0].type"},
        {"NoTriggerMetadata", "ScaledObject", "{scaleTargetRef: {name: a}, triggers: [{type: x}]}",
         "spec.triggers[0].metadata: Required value"},
        {"MetadataThatIsNoText", "ScaledObject",
         "{scaleTargetRef: {name: a}, triggers: [{type: x, metadata: {listLength: 5}}]}",
         "spec.triggers[0].metadata.listLength"},
        {"UnknownAuthenticationKind", "ScaledObject",
         "{scaleTargetRef: {name: a}, triggers: [{type: x, metadata: {},"
         " authenticationRef: {name: s, kind: Secret}}]}",
         "spec.triggers[0].authenticationRef.kind: Unsupported value: \"Secret\""},
        {"FallbackWithoutReplicas", "ScaledObject", WITH("fallback: {failureThreshold: 3}"),
         "spec.fallback.replicas: Required value"},
        {"NegativeFallbackReplicas", "ScaledObject",
         WITH("fallback: {failureThreshold: 3, replicas: -1}"), "spec.fallback.replicas"},
        {"NegativeFailureThreshold", "ScaledObject",
         WITH("fallback: {failureThreshold: -1, replicas: 1}"), "spec.fallback.failureThreshold"},
        {"UnknownFallbackBehavior", "ScaledObject",
         WITH("fallback: {failureThreshold: 3, replicas: 1, behavior: guess}"),
         "spec.fallback.behavior: Unsupported value: \"guess\""},
        {"UtilizationOfAFormula", "ScaledObject",
         WITH("advanced: {scalingModifiers: {formula: a, target: '1', metricType: Utilization}}"),
         "spec.advanced.scalingModifiers.metricType"},
        {"PolicyWithoutPeriod", "ScaledObject",
         WITH("advanced: {horizontalPodAutoscalerConfig: {behavior: {scaleUp: {policies: ["
              "{type: Pods, value: 4}]}}}}"),
         "behavior.scaleUp.policies[0].periodSeconds: Required value"},
        {"ToleranceThatIsNoQuantity", "ScaledObject",
         WITH("advanced: {horizontalPodAutoscalerConfig: {behavior: {scaleDown: {tolerance: "
              "much}}}}"),
         "behavior.scaleDown.tolerance"},
        {"UnknownField", "ScaledObject", WITH("maxReplicas: 3"),
         "unknown field \"spec.maxReplicas\""},
        {"JobWithoutTemplate", "ScaledJob",
         "{jobTargetRef: {}, triggers: [{type: x, metadata: {}}]}",
         "spec.jobTargetRef.template: Required value"},
        {"JobWithoutTriggers", "ScaledJob", "{jobTargetRef: {template: {}}, triggers: []}",
         "spec.triggers"},
        {"JobMaximumZero", "ScaledJob", JOB("maxReplicaCount: 0"), "spec.maxReplicaCount"},
        {"JobNegativeHistory", "ScaledJob", JOB("failedJobsHistoryLimit: -1"),
         "spec.failedJobsHistoryLimit"},
        {"JobUnknownRollout", "ScaledJob", JOB("rollout: {strategy: slow}"),
         "spec.rollout.strategy: Unsupported value: \"slow\""},
        {"JobUnknownStrategy", "ScaledJob", JOB("scalingStrategy: {strategy: lazy}"),
         "spec.scalingStrategy.strategy: Unsupported value: \"lazy\""},
        {"JobUnknownCalculation", "ScaledJob",
         JOB("scalingStrategy: {multipleScalersCalculation: median}"),
         "spec.scalingStrategy.multipleScalersCalculation"},
        {"SecretWithoutKey", "TriggerAuthentication",
         "{secretTargetRef: [{parameter: p, name: nm}]}",
         "spec.secretTargetRef[0].key: Required value"},
        {"UnknownIdentityProvider", "TriggerAuthentication", "{podIdentity: {provider: mine}}",
         "spec.podIdentity.provider: Unsupported value: \"mine\""},
        {"VaultWithoutSecrets", "ClusterTriggerAuthentication",
         "{hashiCorpVault: {address: a, authentication: token, secrets: []}}",
         "spec.hashiCorpVault.secrets"},
        {"UnknownGrant", "ClusterTriggerAuthentication",
         "{oauth2: {type: password, clientId: c, tokenUrl: u}}", "spec.oauth2.type"},
    }),
    [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace outrigger::tests

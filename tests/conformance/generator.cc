// SPDX-License-Identifier: Apache-2.0
#include "tests/conformance/generator.h"

#include <absl/strings/str_cat.h>
#include <absl/strings/str_join.h>

#include <utility>

namespace outrigger::conformance {
namespace {

using Verb = Operation::Verb;

bool HasScale(Kind kind) { return kind == Kind::kDeployment || kind == Kind::kStatefulSet; }
bool HasStatus(Kind kind) {
  return HasScale(kind) || kind == Kind::kHpa || kind == Kind::kScaledObject;
}

}  // namespace

Generator::Generator(uint64_t seed) : random_(seed), kinds_(AllKinds()) {
  constexpr size_t kKindsOfASequence = 3;
  for (size_t i = 0; i < kinds_.size(); ++i) {
    std::swap(kinds_[i], kinds_[i + Below(kinds_.size() - i)]);
  }
  kinds_.resize(kKindsOfASequence);
}

std::string Generator::MetadataChange() {
  return OneOf({
      R"("labels":{"team":"x"})",
      R"("labels":{"team":"y"})",
      R"("labels":{"team":null,"other":"z"})",
      R"("labels":null)",
      R"("annotations":{"note":"1"})",
      R"("annotations":{"note":"2"})",
      R"("annotations":null)",
      R"("finalizers":["example.org/a"])",
      R"("finalizers":["example.org/a","example.org/b"])",
      R"("finalizers":null)",
      R"("finalizers":[])",
      R"("generation":7)",
      R"("creationTimestamp":"2020-01-01T00:00:00Z")",
      R"("uid":"$UID")",
      R"("uid":"somebody-else")",
      R"("uid":null)",
      R"("resourceVersion":"$RV")",
      R"("resourceVersion":"$OLDRV")",
      R"("resourceVersion":null)",
      R"("namespace":"elsewhere")",
      R"("name":"other")",
  });
}

std::string Generator::SpecChange(Kind kind) {
  switch (kind) {
    case Kind::kConfigMap:
      return OneOf({R"("data":{"key":"1"})", R"("data":{"key":"2","more":"x"})", R"("data":null)"});
    case Kind::kSecret:
      return OneOf({R"("data":{"key":"MQ=="})", R"("stringData":{"key":"2"})", R"("data":null)"});
    case Kind::kLease:
      return OneOf({R"("spec":{"holderIdentity":"b"})", R"("spec":{"leaseTransitions":3})",
                    R"("spec":{"holderIdentity":null})"});
    case Kind::kDeployment:
    case Kind::kStatefulSet:
      return OneOf({R"("spec":{"replicas":0})", R"("spec":{"replicas":3})",
                    R"("spec":{"replicas":null})", R"("spec":{"revisionHistoryLimit":3})"});
    case Kind::kHpa:
      return OneOf({R"("spec":{"maxReplicas":20})", R"("spec":{"minReplicas":2})",
                    R"("spec":{"minReplicas":null})",
                    R"("spec":{"behavior":{"scaleDown":{"stabilizationWindowSeconds":0}}})",
                    R"("spec":{"behavior":{"scaleUp":{"selectPolicy":"Min"}}})",
                    R"("spec":{"behavior":null})", R"("spec":{"metrics":null})"});
    case Kind::kScaledObject:
    case Kind::kUnknown:
      break;
  }
  return OneOf({R"("spec":{"maxReplicaCount":20})", R"("spec":{"pollingInterval":5})",
                R"("spec":{"pollingInterval":null})", R"("spec":{"advanced":{}})"});
}

std::string Generator::StatusChange(Kind kind) {
  if (HasScale(kind)) {
    return OneOf({R"("status":{"replicas":5,"readyReplicas":2})", R"("status":{"replicas":5})",
                  R"("status":{"readyReplicas":0})", R"("status":null)"});
  }
  if (kind == Kind::kHpa) {
    return OneOf({R"("status":{"currentReplicas":2,"desiredReplicas":3})",
                  R"("status":{"currentReplicas":0})", R"("status":null)"});
  }
  return OneOf({R"("status":{"hpaName":"h"})", R"("status":{"originalReplicaCount":0})",
                R"("status":{"hpaName":null})", R"("status":null)"});
}

Operation Generator::Write(Verb verb, Kind kind, std::string name) {
  Operation operation{.verb = verb, .kind = kind, .name = std::move(name)};
  std::vector<std::string> parts;
  if (!OneIn(3)) parts.push_back(absl::StrCat("\"metadata\":{", MetadataChange(), "}"));
  if (!OneIn(3)) parts.push_back(SpecChange(kind));
  if (HasStatus(kind)) {
    if (OneIn(3)) operation.subresource = "status";
    if (operation.subresource == "status" || OneIn(4)) parts.push_back(StatusChange(kind));
  }
  operation.body = absl::StrCat("{", absl::StrJoin(parts, ","), "}");
  return operation;
}

Operation Generator::Scale(Kind kind, std::string name) {
  Operation operation{
      .verb = Verb::kPatch, .kind = kind, .name = std::move(name), .subresource = "scale"};
  if (OneIn(4)) operation.verb = Verb::kGet;
  // Never the same number twice: a real server notes who last wrote the replicas in managedFields,
  // and counts that alone as a change.
  const std::string spec = absl::StrCat("\"spec\":{\"replicas\":", random_.Next() % 1'000'000, "}");
  operation.body = OneOf({absl::StrCat("{", spec, "}"), R"({"spec":{"replicas":-1}})",
                          absl::StrCat(R"({"metadata":{"resourceVersion":"$OLDRV"},)", spec, "}"),
                          absl::StrCat(R"({"metadata":{"resourceVersion":"$RV"},)", spec, "}"),
                          absl::StrCat(R"({"metadata":{"uid":"somebody-else"},)", spec, "}"),
                          absl::StrCat(R"({"metadata":{"labels":{"a":"b"}},)", spec, "}")});
  if (operation.verb == Verb::kGet) operation.body = "{}";
  return operation;
}

Operation Generator::Delete(Kind kind, std::string name) {
  Operation operation{.verb = Verb::kDelete, .kind = kind, .name = std::move(name)};
  if (OneIn(3)) operation.uid = OneOf({"$UID", "somebody-else"});
  if (OneIn(4)) operation.resource_version = OneOf({"$RV", "$OLDRV"});
  return operation;
}

Operation Generator::Next() {
  if (made_ < kinds_.size()) {
    return {.verb = Verb::kCreate, .kind = kinds_[made_++], .name = "a"};
  }
  const Kind kind = kinds_[Below(kinds_.size())];
  const std::string name = OneOf({"a", "a", "a", "b"});
  const size_t dice = Below(100);
  if (dice < 14) {
    Operation create{.verb = Verb::kCreate, .kind = kind, .name = name};
    const std::string metadata = MetadataChange();
    if (OneIn(2)) create.body = absl::StrCat("{\"metadata\":{", metadata, "}}");
    return create;
  }
  if (dice < 46) return Write(Verb::kPatch, kind, name);
  if (dice < 64) return Write(Verb::kUpdate, kind, name);
  if (dice < 73) return Delete(kind, name);
  if (dice < 84 && HasScale(kind)) return Scale(kind, name);
  if (dice < 88) return {.verb = Verb::kGetMetadata, .kind = kind, .name = name};
  if (dice < 94) {
    return {.verb = Verb::kList,
            .kind = kind,
            .label_selector = OneOf({"", "team=x", "team!=x", "team in (x,y),!other"}),
            .limit = static_cast<int>(Below(2))};
  }
  return {.verb = Verb::kGet, .kind = kind, .name = name};
}

}  // namespace outrigger::conformance

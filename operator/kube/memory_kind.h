// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <absl/status/status.h>

#include <boost/json/object.hpp>
#include <string>
#include <vector>

#include "operator/kube/api.h"

namespace outrigger::controller::kube {

// How MemoryApi treats one kind of object: what differs between the strategies of kube-apiserver's
// kinds. A value; see DefaultMemoryKinds() for examples.
struct MemoryKind {
  // Which changes of the main resource raise metadata.generation.
  enum class Generation {
    kNone,                // no generation at all: Secret, ConfigMap, Lease, Event, HPA
    kSpec,                // StatefulSet, Pod
    kSpecAndAnnotations,  // Deployment: its annotations are copied to ReplicaSets
    kAllButMetadata,      // custom resources
  };
  // What a write to /status may change beside the status.
  enum class StatusWrite { kMetadata, kMetadataButLabels, kMetadataButOwners, kNothingElse };

  Resource resource;
  std::string kind;
  bool custom =
      false;  // a CustomResource: kind and apiVersion must be written out, lists name them
  bool has_status = false;
  bool has_scale = false;
  Generation generation = Generation::kNone;
  StatusWrite status_write = StatusWrite::kMetadata;
  bool unconditional_update = true;  // PUT without a resourceVersion overwrites
  bool create_on_update = false;     // PUT of an absent object creates it: not modelled
  bool stored = true;                // false: a request in an object's clothes

  std::string ApiVersion() const;
  // "Deployment.apps", "Pod": how messages about validity name the kind.
  std::string QualifiedKind() const;
};

// A custom resource with a status subresource, which is all that the operator has.
MemoryKind CustomKind(Resource resource, std::string kind);

// Every kind that api.h names.
std::vector<MemoryKind> DefaultMemoryKinds();

namespace memory {

// Fills in what the API server adds to an object of this kind, and drops what it does not store:
// defaults of HorizontalPodAutoscaler, replicas of Deployment and StatefulSet, stringData of
// Secret, canonical quantities, zeros that Go omits. The Pod template's many defaults are not
// filled in. INVALID_ARGUMENT (400) when a quantity cannot be read.
absl::Status ApplyDefaults(const MemoryKind& kind, boost::json::object& object);

// The status of a freshly created object.
boost::json::object InitialStatus(const MemoryKind& kind);

}  // namespace memory
}  // namespace outrigger::controller::kube

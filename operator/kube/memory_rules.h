// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>
#include <absl/strings/string_view.h>

#include <boost/json/object.hpp>
#include <boost/json/value.hpp>
#include <string>

#include "operator/kube/api.h"
#include "operator/kube/memory_kind.h"

// What kube-apiserver checks and keeps when an object is written. Pure; each refusal has its code,
// reason and words. Source: k8s.io/apiserver v0.36 pkg/registry/rest/{create,update,delete}.go,
// pkg/endpoints/handlers, the kinds' strategy.go.
namespace outrigger::controller::kube::memory {

absl::StatusOr<boost::json::object> AsObject(boost::json::value value, absl::string_view what);

// Of the request.
absl::Status CheckSubresource(const MemoryKind& kind, absl::string_view subresource);
absl::Status CheckRequestNamespace(const MemoryKind& kind, const std::string& namespace_name);

// Of the object in the request; the first two fill in what was left out.
absl::Status CheckType(const MemoryKind& kind, boost::json::object& object);
absl::Status CheckNamespace(const MemoryKind& kind, const std::string& namespace_name,
                            boost::json::object& object);
absl::Status CheckName(const std::string& name, const boost::json::object& object);

// An update or patch of `before` to `after`.
absl::Status CheckVersion(const MemoryKind& kind, const boost::json::object& before,
                          const boost::json::object& after);
absl::Status CheckMetadataChange(const MemoryKind& kind, const boost::json::object& before,
                                 const boost::json::object& after);
absl::Status CheckDelete(const MemoryKind& kind, const boost::json::object& object,
                         const DeleteOptions& options);

// `wanted` as a write to /status may change `current`.
boost::json::object KeepAllButStatus(const MemoryKind& kind, const boost::json::object& current,
                                     boost::json::object wanted);
// Metadata that no client can change is copied from `before`.
void KeepSystemMetadata(const boost::json::object& before, boost::json::object& after);
bool RaisesGeneration(const MemoryKind& kind, const boost::json::object& before,
                      const boost::json::object& after);
// The object as it is stored: no nulls, no empty metadata, defaults filled in.
absl::Status Normalise(const MemoryKind& kind, boost::json::object& object);

}  // namespace outrigger::controller::kube::memory

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "host/client/health_cache.h"
#include "host/client/scaler_service.h"
#include "operator/polling/tracked_object.h"
#include "outrigger/introspection/v1/introspection.pb.h"

namespace outrigger::controller::introspection {

// The answers of the introspection service. Call on the core strand; never wait, never fail.

// In the order of their names.
outrigger::introspection::v1::ListPluginsResponse DescribePlugins(
    const host::ScalerService& scalers);

// What an answer about objects is made from.
struct ObjectSources {
  const polling::ObjectRegistry& registry;
  const host::HealthCache& health;
  const host::ScalerService& scalers;
};

// The ScaledObjects that this replica tracks (the leader tracks all, a standby none), in the order
// of namespace and name. "" for namespace or name: all.
outrigger::introspection::v1::ListObjectsResponse DescribeObjects(const ObjectSources& sources,
                                                                  const std::string& namespace_name,
                                                                  const std::string& name);

}  // namespace outrigger::controller::introspection

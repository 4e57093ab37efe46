// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace outrigger::simulation {

// One hour in the life of a cluster, drawn from a seed: ScaledObjects on an API server in memory,
// the operator's core, the embedded HPA controller, plugins whose values change and fail, an API
// server that refuses (for lack of quota too), delays, loses answers, conflicts, cuts watches and
// forgets versions, an operator that is restarted and killed. Everything runs on one thread in
// virtual time, so a seed replays exactly.
//
// What must hold is checked all along and at the end:
// - no failure of a scaler lowers spec.replicas, except to a configured fallback;
// - a ScaledObject never has two HPAs, and its spec is never written;
// - once the faults end, the wanted count is right within 30 s + a polling interval + two HPA syncs
//   + 5 s + 20 s for the leader, and stays so;
// - then nothing is written any more;
// - of deleted objects nothing is left in queues and caches.
struct Options {
  uint64_t seed = 0;
  // The bug that the simulation must find: an outage of a scaler is read as "no work".
  bool plant_outage_read_as_zero = false;
};

struct Outcome {
  std::vector<std::string> violations;  // with virtual times; empty: all held
  uint64_t turns = 0;                   // handlers that ran
  uint64_t trace = 0;                   // hash of all API calls with their times
  int faults = 0;                       // that were injected
  int quota_refusals = 0;               // those among them that refused an HPA for lack of quota
  int scalings = 0;                     // changes of spec.replicas
};

Outcome Simulate(const Options& options);

}  // namespace outrigger::simulation

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <absl/status/status.h>
#include <absl/strings/string_view.h>
#include <sys/types.h>

#include <functional>
#include <memory>
#include <string>

#include "tests/bench/stage.h"

namespace outrigger::bench {

// What is measured: an autoscaler that serves ScaledObjects with redis triggers on a Stage, as two
// processes. Destroyed before its stage, which ends them.
class Contender {
 public:
  // The one that reconciles and polls, and the one beside it: our plugin, between the operator and
  // Redis, or KEDA's metrics adapter, between the API server and the operator.
  struct Pids {
    pid_t controller = 0;
    pid_t companion = 0;
  };

  virtual ~Contender() = default;
  virtual std::string name() const = 0;
  // The CRDs that the stage is to have.
  virtual Crds crds() const = 0;
  // Returns when it leads and the APIService of external metrics points to it.
  virtual absl::Status Start(Stage& stage) = 0;
  virtual Pids pids() const = 0;
  virtual std::string user() const = 0;  // as which the API server knows it
  // What its processes said last, for messages; without the operator of the stage, which tells
  // that itself.
  virtual std::string LogTail() const = 0;
};

using NewContender = std::function<std::unique_ptr<Contender>()>;

std::unique_ptr<Contender> NewOutrigger();
// KEDA 2.21.0, built by peer/build_keda.sh: with its own CRDs, the rights of a cluster's admin, and
// its limits lifted (see keda.cc).
std::unique_ptr<Contender> NewKeda();

}  // namespace outrigger::bench

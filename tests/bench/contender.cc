// SPDX-License-Identifier: Apache-2.0
#include "tests/bench/contender.h"

#include "host/base/status.h"
#include "tests/e2e/operator_process.h"

namespace outrigger::bench {
namespace {

class Outrigger final : public Contender {
 public:
  std::string name() const override { return "Outrigger"; }
  Crds crds() const override { return Crds::kOurs; }

  absl::Status Start(Stage& stage) override {
    stage_ = &stage;
    ASSIGN_OR_RETURN(plugin_,
                     tests::StartPlugin(stage.plugins(), "redis", "outrigger-scaler-redis"));
    return stage.StartOperator();
  }

  Pids pids() const override {
    return {.controller = stage_->controller().process().pid(), .companion = plugin_->pid()};
  }

  std::string user() const override { return "system:serviceaccount:outrigger:outrigger-operator"; }

  std::string LogTail() const override { return plugin_->OutputTail(); }

 private:
  Stage* stage_ = nullptr;  // null before Start()
  std::unique_ptr<tests::Process> plugin_;
};

}  // namespace

std::unique_ptr<Contender> NewOutrigger() { return std::make_unique<Outrigger>(); }

}  // namespace outrigger::bench

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "host/base/mutex.h"
#include "host/kit/serve.h"
#include "host/kit/trigger_scaler.h"
#include "tests/support/scripted/script.pb.h"

namespace outrigger::tests {

// What all scripted scalers of one process do, and what they were asked. Thread-safe.
class ScriptBook {
 public:
  void Set(const std::string& script, const test::v1::Behaviour& behaviour);
  test::v1::Behaviour Find(const std::string& script) const;
  test::v1::CallsResponse Calls(const std::string& script) const;

  void CountParse(const std::string& script);
  void CountSpecs(const std::string& script);
  void CountRead(const std::string& script, bool poll, bool first_of_round);
  // Keeps a read that must never be answered, until Set() of its script.
  void Hang(const std::string& script, host::kit::ReadRequest request);

 private:
  mutable host::Mutex mutex_;
  std::map<std::string, test::v1::Behaviour> behaviours_ ABSL_GUARDED_BY(mutex_);
  std::map<std::string, test::v1::CallsResponse> calls_ ABSL_GUARDED_BY(mutex_);
  std::multimap<std::string, host::kit::ReadRequest> hanging_ ABSL_GUARDED_BY(mutex_);
};

// A trigger type whose answers and faults a test sets through the book, by the metadata key
// `script`. All other keys are accepted.
class ScriptedScaler : public host::kit::TriggerScaler {
 public:
  ScriptedScaler(std::string type, host::Clock& clock, ScriptBook& book);

  const host::kit::TriggerSchema& schema() const override { return schema_; }
  std::shared_ptr<const host::kit::ParsedTrigger> Parse(
      const host::kit::Parameters& parameters, const scaler::v1::Trigger& trigger,
      host::kit::Violations& violations) const override;
  std::vector<scaler::v1::MetricSpec> Specs(const host::kit::ParsedTrigger& trigger) const override;
  void Read(std::vector<host::kit::ReadRequest> requests) override;

 private:
  void ReadOne(host::kit::ReadRequest request, bool first_of_round);

  host::kit::TriggerSchema schema_;
  host::Clock& clock_;
  ScriptBook& book_;
};

}  // namespace outrigger::tests

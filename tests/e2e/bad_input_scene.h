// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "tests/e2e/metric_reader.h"
#include "tests/e2e/scene.h"
#include "tests/support/scripted/scripted_plugin.h"

namespace outrigger::tests {

// What a person gets to read, for tests/e2e/golden/messages.txt: "## <what>" and the message. What
// differs from run to run is replaced.
class Messages {
 public:
  void Add(const std::string& what, std::string message);
  std::string text() const { return text_; }

 private:
  std::string text_;
};
// What stands in messages.txt below "# <title>", up to the next title.
std::string GoldenChapter(const std::string& title);
std::vector<std::string> GoldenTitles();

// The stage of all tests of bad input, with an operator that logs everything: a Deployment
// `worker`, a Redis with a key `text` that is a string, the plugins redis and scripted, and a
// plugin `squatter` that announces the trigger type redis.
class BadInputScene {
 public:
  static constexpr char kNamespace[] = "bad-input";
  static constexpr char kCanary[] = "canary-7f3a9c";  // a password that must not be seen anywhere

  BadInputScene();  // fails the test

  struct Object {
    std::string triggers;  // YAML in flow style, as `spec`
    std::string spec = "scaleTargetRef: {name: worker}";
    std::string namespace_name = kNamespace;
  };
  // So that several are looked at side by side: Ready() waits for one after the other.
  void ApplyAll(const std::map<std::string, Object>& objects);
  // Applies a ScaledObject and returns what is said of it: status, reason and message of Ready, as
  // soon as they begin with `wanted`; or what the API server said when it refused it.
  std::string Ready(const std::string& name, const Object& object, const std::string& wanted);
  // The same of an object that has something wrong.
  std::string WhatIsWrong(const std::string& name, const Object& object) {
    return Ready(name, object, "False ");
  }
  // Of a trigger with a password that Redis refuses.
  std::string WhatIsWrongWithTheLogin(const std::string& name);

  std::string RedisTrigger(const std::string& metadata) const;
  static std::string ScriptedTrigger(const std::string& script);
  // What Ready says of an object whose plugin has become something that speaks no gRPC.
  std::string WhatIsWrongWithGarbage(const std::string& name);
  // Until the operator has logged this message; the message and these fields of its line.
  std::string WaitForLog(const std::string& message, const std::vector<std::string>& fields);
  // The metrics port of the operator, as kube-apiserver reaches it.
  MetricDoor door() const;

  Scene& scene() { return scene_; }
  ScriptedPlugin& scripted() { return *scripted_; }
  ScriptedPlugin& squatter() { return *squatter_; }

 private:
  void StartParts();

  Scene scene_;
  std::unique_ptr<ScriptedPlugin> scripted_;
  std::unique_ptr<ScriptedPlugin> squatter_;
};

}  // namespace outrigger::tests

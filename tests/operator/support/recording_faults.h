// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <absl/status/status.h>
#include <absl/strings/string_view.h>

#include <functional>
#include <list>
#include <set>
#include <string>
#include <vector>

#include "operator/kube/memory_api.h"

namespace outrigger::controller {

// Writes down what a MemoryApi is asked, as "patch scaledobjects.keda.sh/status ns/orders", and
// lets calls fail that a test names by a part of that text.
class RecordingFaults : public kube::FaultInjector {
 public:
  // The next `times` calls whose text contains `part` take `delay` and then fail with `error` (OK:
  // they only take long), undone.
  void Fail(std::string part, absl::Status error, int times = 1,
            absl::Duration delay = absl::ZeroDuration());
  // As Fail(), but the call is done before its answer is lost.
  void LoseAnswer(std::string part, absl::Status error, int times = 1);
  // The next call with exactly this text is a test's own: neither recorded nor failed.
  void SkipOnce(const std::string& text) { own_before_.insert(text), own_after_.insert(text); }
  void StopFailing() { before_.clear(), after_.clear(); }

  // Told of each call that a test wants to look at the world in the middle of.
  void SetOnCall(std::function<void(const std::string& text)> on_call) {
    on_call_ = std::move(on_call);
  }

  // Calls since the last Clear() whose text contains `part`; of failed ones too.
  int Count(absl::string_view part) const;
  // Creates, updates, patches and deletes, one per line.
  std::vector<std::string> Writes() const;
  void Clear() { calls_.clear(); }

  Fault BeforeCall(const kube::MemoryCall& call) override;
  Fault AfterCall(const kube::MemoryCall& call, const absl::Status& outcome) override;
  WatchFault BeforeEvent(const kube::MemoryCall&, const kube::WatchEvent&) override { return {}; }

 private:
  struct Planned {
    std::string part;
    absl::Status error;
    absl::Duration delay;
    int times = 0;
  };
  static Fault Take(std::list<Planned>& planned, const std::string& text);

  std::multiset<std::string> own_before_;
  std::multiset<std::string> own_after_;
  std::list<Planned> before_;
  std::list<Planned> after_;
  std::vector<std::string> calls_;
  std::function<void(const std::string& text)> on_call_;
};

}  // namespace outrigger::controller

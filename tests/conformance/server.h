// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <absl/status/status.h>
#include <absl/time/time.h>

#include <functional>
#include <memory>
#include <string>

#include "host/base/clock.h"
#include "host/base/task.h"
#include "operator/kube/api.h"

namespace outrigger::conformance {

// An API server under test with the thread that its calls are made on.
class Server {
 public:
  virtual ~Server() = default;

  virtual controller::kube::Api& api() = 0;
  virtual host::Clock& clock() = 0;
  // Starts a task, which goes on whenever Until() runs.
  virtual void Spawn(host::Task<void> task) = 0;
  // Runs until `done`, or for at most 20 s: false.
  virtual bool Until(const std::function<bool()>& done) = 0;
  virtual absl::Status CreateNamespace(const std::string& name) = 0;
  // Makes a watch of custom resources from the first resourceVersion too old.
  virtual void ForgetHistory() = 0;
};

std::unique_ptr<Server> MakeMemoryServer();
// The real one: etcd, kube-apiserver and its controllers, without those that write the kinds which
// are compared, with the CRDs of deploy/. Started once per program; each Server has a client of its
// own.
std::unique_ptr<Server> MakeRealServer();

}  // namespace outrigger::conformance

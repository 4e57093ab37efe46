// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <absl/status/statusor.h>

#include <boost/json/value.hpp>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

#include "tests/conformance/normaliser.h"
#include "tests/conformance/operation.h"
#include "tests/conformance/server.h"

namespace outrigger::conformance {

// Operations in one namespace of one server, and two watches of each kind over them: one of all
// objects, one of those labelled team=x.
class Session {
 public:
  // Per kind and object, "ADDED {…}" in the order of their events.
  using Events = std::map<std::string, std::vector<std::string>>;

  Session(Server& server, std::string namespace_name, std::vector<Kind> kinds);
  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  Outcome Run(const Operation& operation);
  // Waits until the watches have told all; makes an object named zz-end of each kind for that.
  Events Finish();
  // As this server told it; "" for an object that was never seen.
  std::string UidOf(Kind kind, const std::string& name) const;
  // How a watch of the kind from the server's first version ends.
  Outcome WatchFromTheBeginning(Kind kind);

 private:
  struct Watch {
    Kind kind = Kind::kConfigMap;
    std::string label_selector;
    std::vector<controller::kube::WatchEvent> events;
    std::optional<absl::Status> end;
  };
  using Key = std::pair<Kind, std::string>;

  template <typename T>
  T Await(host::Task<T> task);
  host::Deadline Soon();
  void StartWatch(Kind kind, std::string label_selector);
  host::Task<void> RunWatch(Watch& watch, std::string resource_version);
  absl::StatusOr<boost::json::value> Call(const Operation& operation);
  absl::StatusOr<boost::json::value> List(const Operation& operation);
  void Remember(const Operation& operation, const boost::json::value& object);
  std::string Resolve(const Operation& operation, const std::string& text) const;
  Outcome OutcomeOf(const absl::Status& status);

  Server& server_;
  const std::string namespace_;
  const std::vector<Kind> kinds_;
  Normaliser normaliser_;
  std::map<Key, boost::json::value> last_seen_;
  std::map<Key, std::vector<std::string>> versions_;
  std::map<Kind, std::string> continue_tokens_;
  std::list<Watch> watches_;
  std::stop_source cancel_;
};

}  // namespace outrigger::conformance

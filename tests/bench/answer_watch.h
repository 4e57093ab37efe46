// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <absl/container/flat_hash_map.h>
#include <absl/status/status.h>
#include <absl/time/time.h>

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace outrigger::bench {

// Watches when objects are answered and when they are decided, from outside: the scripted scaler
// answers with the time at which it does (Behaviour.stamped), and the operator's introspection
// tells of each object its last answer and the time of its last decision. So nothing that the
// operator forgets to count is left out, as it were in its own metrics, and each poll counts once.
//
// One thread.
class AnswerWatch {
 public:
  // Of the objects whose names begin with `prefix`. `grpc_port`: the operator's.
  AnswerWatch(uint16_t grpc_port, std::string prefix);
  ~AnswerWatch();

  // Sees what came since the last call; an answer that the next replaced in between is not seen, so
  // call it more often than objects are polled. UNAVAILABLE, DEADLINE_EXCEEDED: nobody answers.
  absl::Status Look();

  // Ascending, in milliseconds.
  // From each answer to the first decision after it; for one without, the time that has passed.
  std::vector<double> UntilDecided() const;
  // By how much the time between two answers of an object exceeded its polling interval. The answer
  // that an object waits for counts as if it had come at the last Look().
  std::vector<double> Lateness(absl::Duration polling_interval) const;

 private:
  struct Channel;
  struct Answer {
    bool decided = false;
    absl::Duration took;  // until it was decided, or until now
  };
  using AnswersByTime = std::map<absl::Time, Answer>;

  const std::string prefix_;
  const std::unique_ptr<Channel> channel_;
  absl::Time looked_;
  absl::flat_hash_map<std::string, AnswersByTime> objects_;
};

}  // namespace outrigger::bench

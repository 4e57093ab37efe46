// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "host/base/random.h"
#include "tests/conformance/operation.h"

namespace outrigger::conformance {

// Random operations on few objects, so that they meet: two names of three kinds, one of which
// exists from the start.
class Generator {
 public:
  explicit Generator(uint64_t seed);

  Operation Next();
  const std::vector<Kind>& kinds() const { return kinds_; }

 private:
  Operation Write(Operation::Verb verb, Kind kind, std::string name);
  Operation Scale(Kind kind, std::string name);
  Operation Delete(Kind kind, std::string name);
  std::string MetadataChange();
  std::string SpecChange(Kind kind);
  std::string StatusChange(Kind kind);

  size_t Below(size_t limit) { return random_.Next() % limit; }
  bool OneIn(size_t n) { return Below(n) == 0; }
  std::string OneOf(const std::vector<std::string>& choices) {
    return choices[Below(choices.size())];
  }

  host::Random random_;
  std::vector<Kind> kinds_;
  size_t made_ = 0;  // a sequence begins with one object of each kind
};

}  // namespace outrigger::conformance

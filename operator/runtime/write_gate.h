// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <list>
#include <memory>
#include <utility>

#include "host/base/clock.h"
#include "host/base/event.h"

namespace outrigger::controller::runtime {

// What a write is for. A lower number goes first when more wait than may be in flight.
enum class WriteLane { kScale = 0, kHpa = 1, kStatus = 2, kEvent = 3 };

// At most `limit` writes to the API server at once over all objects, the most urgent lane first
// (requirements.md R13). Use from one strand. The gate must outlive its permits.
class WriteGate {
 public:
  class Permit {
   public:
    Permit() = default;
    explicit Permit(WriteGate* gate) : gate_(gate) {}
    Permit(Permit&& other) noexcept : gate_(std::exchange(other.gate_, nullptr)) {}
    Permit& operator=(Permit&& other) noexcept {
      std::swap(gate_, other.gate_);
      return *this;
    }
    ~Permit() {
      if (gate_ != nullptr) gate_->Release();
    }

   private:
    WriteGate* gate_ = nullptr;
  };

  explicit WriteGate(host::Clock& clock, int limit = 32) : clock_(clock), free_(limit) {}

  // Held until the permit goes.
  host::Task<Permit> Acquire(WriteLane lane);
  size_t waiting() const;

 private:
  void Release();

  host::Clock& clock_;
  int free_;
  std::array<std::list<host::Event>, 4> lanes_;
};

}  // namespace outrigger::controller::runtime

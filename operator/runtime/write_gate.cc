// SPDX-License-Identifier: Apache-2.0
#include "operator/runtime/write_gate.h"

namespace outrigger::controller::runtime {

host::Task<WriteGate::Permit> WriteGate::Acquire(WriteLane lane) {
  if (free_ > 0) {
    --free_;
    co_return Permit(this);
  }
  host::Event turn;
  lanes_[static_cast<size_t>(lane)].push_back(turn);
  co_await turn.Wait(clock_);  // Release() passed its slot on to us
  co_return Permit(this);
}

void WriteGate::Release() {
  for (std::list<host::Event>& lane : lanes_) {
    if (lane.empty()) continue;
    const host::Event turn = lane.front();
    lane.pop_front();
    turn.Notify();
    return;
  }
  ++free_;
}

size_t WriteGate::waiting() const {
  size_t sum = 0;
  for (const std::list<host::Event>& lane : lanes_) sum += lane.size();
  return sum;
}

}  // namespace outrigger::controller::runtime

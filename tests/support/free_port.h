// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace outrigger::tests {

// A TCP port of 127.0.0.1 for a server that cannot bind to port 0 and tell (a server that can
// should do that instead). Nobody listens on it now, and no other call gets it while this program
// lives, in whatever test program of this machine: so tests may run in parallel. It lies below the
// range from which the kernel takes ports for outgoing connections. Thread-safe. Aborts when no
// port is free.
uint16_t FreePort();

}  // namespace outrigger::tests

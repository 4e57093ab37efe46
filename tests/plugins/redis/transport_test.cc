// SPDX-License-Identifier: Apache-2.0
#include "plugins/redis/transport.h"

#include <absl/strings/numbers.h>
#include <absl/strings/str_split.h>
#include <gtest/gtest.h>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <optional>
#include <string>
#include <vector>

#include "host/base/real_clock.h"
#include "tests/support/black_hole.h"

namespace outrigger::plugins::redis {
namespace {

using boost::asio::ip::tcp;

// A name whose first address drops packets, as an IPv6 address behind a broken route does.
TEST(TransportTest, AnAddressThatAnswersNothingDoesNotUseUpTheTimeOfTheNext) {
  const tests::BlackHole hole;
  int port = 0;
  const std::vector<std::string> parts = absl::StrSplit(hole.address(), ':');
  ASSERT_TRUE(absl::SimpleAtoi(parts.back(), &port));

  host::RealClock clock;
  boost::asio::io_context io;
  const tcp::acceptor server(io, tcp::endpoint(boost::asio::ip::make_address("127.0.0.2"), port));
  Transport transport(io.get_executor(), "redis.test", std::nullopt);
  std::optional<absl::Status> connected;
  boost::asio::co_spawn(
      io,
      transport.Connect(clock, host::Deadline::After(clock, absl::Seconds(4)),
                        {"127.0.0.1", "127.0.0.2"}, static_cast<uint16_t>(port)),
      [&](const std::exception_ptr&, absl::Status status) { connected = std::move(status); });
  io.run_for(std::chrono::seconds(20));
  ASSERT_TRUE(connected.has_value()) << "it still tries the first";
  EXPECT_TRUE(connected->ok()) << *connected;
}

}  // namespace
}  // namespace outrigger::plugins::redis

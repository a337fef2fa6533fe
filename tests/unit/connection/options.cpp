// SPDX-License-Identifier: BSL-1.0
#include <verbena/connection/options.hpp>

#include "catch.hpp"

namespace vb = verbena;

TEST_CASE("an MTU is as many bytes as its name says") {
  CHECK(vb::bytes(vb::mtu::bytes_256) == 256);
  CHECK(vb::bytes(vb::mtu::bytes_512) == 512);
  CHECK(vb::bytes(vb::mtu::bytes_1024) == 1024);
  CHECK(vb::bytes(vb::mtu::bytes_2048) == 2048);
  CHECK(vb::bytes(vb::mtu::bytes_4096) == 4096);
}

TEST_CASE("FC-14 FC-40 options that nobody sets wait neither for ever nor for 655 ms") {
  const vb::options usual;
  CHECK(usual.receiver_not_ready_delay > std::chrono::nanoseconds{0});
  CHECK(usual.receiver_not_ready_delay < std::chrono::milliseconds{10});
  CHECK(usual.receiver_not_ready_retries == 7);
  CHECK(usual.ack_timeout > std::chrono::nanoseconds{0});
  CHECK((usual.retries + 1) * usual.ack_timeout < std::chrono::seconds{5});
  CHECK(usual.close_timeout > std::chrono::nanoseconds{0});
  CHECK(usual.capacity == vb::capacity::exact);
}

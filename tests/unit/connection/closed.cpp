// SPDX-License-Identifier: BSL-1.0
// needs exceptions
#include <chrono>
#include <utility>

#include <verbena/verbena.hpp>

#include "catch.hpp"

namespace vb = verbena;
using namespace std::chrono_literals;

namespace {

vb::errc reason_of(auto&& call) {
  try {
    call();
  } catch (const vb::failure& thrown) {
    return static_cast<vb::errc>(thrown.code().value());
  }
  return {};
}

}  // namespace

TEST_CASE("a connection that was closed or moved from refuses to post and to wait") {
  vb::device device = vb::open_device("soft:closed-connections");
  vb::endpoint one{device};
  vb::endpoint other{device};
  const auto memory = device.allocate<vb::source>(64);
  const auto first = one.describe();
  const auto second = other.describe();
  vb::connection moved = std::move(one).connect(second);
  vb::connection closed = std::move(other).connect(first);
  vb::connection taker = std::move(moved);
  closed.close();
  closed.close();
  for (vb::connection<>* each : {&moved, &closed}) {
    CHECK(reason_of([&] { (void)each->post(vb::send(memory)); }) == vb::errc::moved_from);
    CHECK(reason_of([&] { each->wait(1s); }) == vb::errc::moved_from);
    CHECK_FALSE(each->peer_gone());
    CHECK(each->native_handle() == nullptr);
  }
  CHECK(taker.post(vb::send(memory)));
}

// SPDX-License-Identifier: BSL-1.0
// needs exceptions
#include <poll.h>

#include <chrono>
#include <future>
#include <string>
#include <thread>
#include <utility>

#include <verbena/verbena.hpp>

#include "catch.hpp"
#include "device.hpp"
#include "fixture/cm_link.hpp"
#include "fixture/peer_process.hpp"
TEST_CASE("cm: what was sent before the peer closed is received", "[cm]") {
  VERBENA_DEVICE_OR_SKIP(device);
  auto in = device.allocate<vb::sink>(16 * 64);
  auto out = device.allocate<vb::source>(64);
  auto [first, second] = links::connect<cm_link>(device);
  for (std::size_t i = 0; i < 16; ++i) REQUIRE(second.post(vb::receive(in.subspan(i * 64, 64))));
  for (int i = 0; i < 10; ++i) REQUIRE(first.post(vb::send(out)));
  first.close();
  int received = 0;
  int failed = 0;
  int breaking = 0;
  const vb::error why = error_of([&] {
    second.wait(soon, vb::on([&](const vb::completed<vb::receive>&) { ++received; },
                             [&](const vb::failed& f) {
                               ++failed;
                               breaking += int(f.breaks_connection());
                             }));
  });
  INFO(why.message());
  CHECK(why == vb::errc::disconnected);
  CHECK(received == 10);
  CHECK(failed == 6);
  CHECK(breaking == 1);
  CHECK(second.peer_gone());
  second.close();
}

TEST_CASE("cm: a descriptor tells that the peer has closed", "[cm]") {
  VERBENA_DEVICE_OR_SKIP(device);
  auto [first, second] = links::connect<cm_link>(device);
  pollfd watched{second.peer_descriptor(), POLLIN, 0};
  CHECK(::poll(&watched, 1, 0) == 0);
  CHECK_FALSE(second.peer_gone());
  first.close();
  REQUIRE(::poll(&watched, 1, 20'000) == 1);
  CHECK(second.peer_gone());
}

TEST_CASE("cm: closing at once, twice, and after the peer", "[cm]") {
  VERBENA_DEVICE_OR_SKIP(device);
  for (int i = 0; i < 10; ++i) {
    auto [first, second] = links::connect<quiet_link>(device);
    auto both = std::async(std::launch::async, [&closing = first] { return closing.close(); });
    const auto mine = second.close();
    const auto theirs = both.get();
    INFO((mine ? "" : mine.error().message()));
    CHECK(mine);
    CHECK(theirs);
    CHECK(first.close());
    CHECK(second.close());
  }
  auto [first, second] = links::connect<quiet_link>(device);
  CHECK(first.close());
  std::this_thread::sleep_for(50ms);
  CHECK(second.peer_gone());
  CHECK(second.peer_gone());
  CHECK(second.close());
  // By destruction alone, with receives outstanding.
  auto in = device.allocate<vb::sink>(64);
  auto [third, fourth] = links::connect<quiet_link>(device);
  REQUIRE(third.post(vb::receive(in)));
  REQUIRE(fourth.post(vb::receive(in)));
}

TEST_CASE("peer: connects and sends until it is killed", "[.peer]") {
  VERBENA_PEER_OR_SKIP();
  const vb::device device = vb::open_device();
  cm_link peer = cm_end{device}.connect({host(), given_port()}, soon);
  auto out = device.allocate<vb::source>(64);
  settle(device);
  for (int i = 0; i < 4; ++i) REQUIRE(peer.post(vb::send(out)));
  peer.wait(soon);
  for (;;) std::this_thread::sleep_for(1s);
}

TEST_CASE("peer: connects until it is killed", "[.peer]") {
  VERBENA_PEER_OR_SKIP();
  const vb::device device = vb::open_device();
  const cm_link peer = cm_end{device}.connect({host(), given_port()}, soon);
  for (;;) std::this_thread::sleep_for(1s);
}

TEST_CASE("peer: asks and is killed", "[.peer]") {
  VERBENA_PEER_OR_SKIP();
  const vb::device device = vb::open_device();
  (void)cm_end{device}.connect({host(), given_port()}, 60s);
}

namespace {

/// A process that connects until it is killed, and the connection to it.
template <class Listener>
auto accept_peer(const vb::device& device, Listener& port) {
  const pid_t peer =
      start_peer("peer: connects until it is killed", std::to_string(port.address().port()));
  auto accepted = port.accept(20s);
  if (!accepted) kill_peer(peer);
  settle(device);
  return std::pair{peer, std::move(accepted).value()};
}

}  // namespace

TEMPLATE_TEST_CASE("cm: a peer that is killed is noticed while waiting", "[cm]",
                   vb::completion::busy_poll, vb::completion::event_driven) {
  VERBENA_DEVICE_OR_SKIP(device);
  using peer_link =
      vb::connection<vb::setup::cm, TestType, vb::signaling::one_in<16>, vb::errors::returning>;
  auto port = peer_link::listener::open(device, {host(), 0}).value();
  const pid_t peer = start_peer("peer: connects and sends until it is killed",
                                std::to_string(port.address().port()));
  auto in = device.template allocate<vb::sink>(16 * 64);
  auto out = device.template allocate<vb::source>(64);
  auto ready = vb::basic_endpoint<typename peer_link::policies>::open(device).value();
  for (std::size_t i = 0; i < 16; ++i) REQUIRE(ready.post(vb::receive(in.subspan(i * 64, 64))));
  auto request = port.next(20s);
  if (!request) kill_peer(peer);
  peer_link here = std::move(request).value().accept(std::move(ready), soon).value();
  int received = 0;
  const auto begun = clock_type::now();
  while (received < 4 && clock_type::now() - begun < soon) {
    (void)here.completions().wait(
        100ms,
        vb::on([&](const vb::completed<vb::receive>&) { ++received; }, [](const vb::failed&) {}));
  }
  CHECK(received == 4);
  auto killer = std::async(std::launch::async, [&] {
    std::this_thread::sleep_for(200ms);
    kill_peer(peer);
  });
  const auto outcome = here.wait(10s);
  killer.get();
  REQUIRE(!outcome);
  INFO(outcome.error().message());
  CHECK(outcome.error() == vb::errc::disconnected);
  CHECK(here.peer_gone());
  const auto refused = here.post(vb::send(out));
  CHECK(refused.failed_with(vb::errc::broken));
  const auto closing = clock_type::now();
  const auto closed = here.close();
  INFO((closed ? "" : closed.error().message()));
  CHECK(closed);
  CHECK(clock_type::now() - closing < 500ms);
}

TEST_CASE("cm: a peer killed with our sends under way", "[cm]") {
  VERBENA_DEVICE_OR_SKIP(device);
  using peer_link = vb::connection<vb::setup::cm, vb::signaling::one_in<16>, vb::errors::returning>;
  auto port = peer_link::listener::open(device, {host(), 0},
                                        {.endpoint = {.ack_timeout = 10ms, .retries = 3}})
                  .value();
  auto inbox = device.allocate<vb::remote_writable>(64);
  auto out = device.allocate<vb::source>(64);
  auto [peer, here] = accept_peer(device, port);
  // Nobody receives them: on RoCE they wait for ever, on iWARP they end the connection.
  for (int i = 0; i < 5; ++i) (void)here.post(vb::send(out));
  std::this_thread::sleep_for(50ms);
  kill_peer(peer);
  const auto outcome = here.wait(10s);
  REQUIRE(!outcome);
  INFO(outcome.error().message());
  // Which is noticed first, the CM's word or a send that nobody answers, is a race.
  CHECK((outcome.error() == vb::errc::disconnected ||
         outcome.error().code().category() == vb::status_category()));
  const auto closing = clock_type::now();
  const auto closed = here.close();
  INFO((closed ? "" : closed.error().message()));
  CHECK(closed);
  CHECK(clock_type::now() - closing < 500ms);
}

TEST_CASE("cm: what is posted after the peer was killed says that it is gone", "[cm]") {
  VERBENA_DEVICE_OR_SKIP(device);
  using peer_link = vb::connection<vb::setup::cm, vb::signaling::one_in<16>, vb::errors::returning>;
  auto port = peer_link::listener::open(device, {host(), 0}).value();
  auto out = device.allocate<vb::source>(64);
  auto [peer, here] = accept_peer(device, port);
  kill_peer(peer);
  std::this_thread::sleep_for(200ms);
  for (int i = 0; i < 3; ++i) (void)here.post(vb::send(out));
  const auto outcome = here.wait(10s);
  REQUIRE(!outcome);
  INFO(outcome.error().message());
  CHECK(outcome.error() == vb::errc::disconnected);
  CHECK(here.close());
}

TEST_CASE("cm: a client killed between asking and being accepted", "[cm]") {
  VERBENA_DEVICE_OR_SKIP(device);
  auto port = quiet_link::listener::open(device, {host(), 0}).value();
  const pid_t peer = start_peer("peer: asks and is killed", std::to_string(port.address().port()));
  auto request = port.next(20s);
  kill_peer(peer);
  REQUIRE(request);
  const auto begun = clock_type::now();
  auto accepted = std::move(request).value().accept(quiet_end::open(device).value(), 1s);
  CHECK(clock_type::now() - begun < 2s);
  if (accepted) {
    // iWARP may not have seen it yet.
    auto in = device.allocate<vb::sink>(64);
    REQUIRE(accepted.value().post(vb::receive(in)));
    CHECK(accepted.value().wait(soon).error() == vb::errc::disconnected);
  } else {
    INFO(accepted.error().message());
    CHECK((accepted.error() == vb::errc::disconnected || accepted.error() == vb::errc::timed_out ||
           accepted.error() == vb::errc::rejected));
  }
}

TEST_CASE("cm: a client that leaves as soon as it is connected", "[cm]") {
  VERBENA_DEVICE_OR_SKIP(device);
  auto in = device.allocate<vb::sink>(64);
  auto port = quiet_link::listener::open(device, {host(), 0}).value();
  for (int i = 0; i < 10; ++i) {
    auto leaving = std::async(std::launch::async, [&] {
      return bool{quiet_end::open(device).value().connect(port.address(), soon)};
    });
    auto accepted = port.accept(soon);
    CHECK(leaving.get());
    if (accepted) {
      (void)accepted.value().post(vb::receive(in));
      const auto outcome = accepted.value().wait(soon);
      REQUIRE(!outcome);
      CHECK(outcome.error() == vb::errc::disconnected);
    } else {
      INFO(accepted.error().message());
      CHECK(accepted.error() == vb::errc::disconnected);
    }
  }
}

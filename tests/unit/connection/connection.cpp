// SPDX-License-Identifier: BSL-1.0
#include <chrono>
#include <cstdint>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include <verbena/connection/connection.hpp>
#include <verbena/connection/endpoint.hpp>
#include <verbena/operation/receive.hpp>
#include <verbena/operation/send.hpp>
#include <verbena/operation/write.hpp>
#include <verbena/policy/completion/event_driven.hpp>
#include <verbena/policy/errors/returning.hpp>
#include <verbena/policy/signaling/one_in.hpp>
#include <verbena/policy/signaling/per_operation.hpp>

#include "catch.hpp"
#include "fabricated/device.hpp"
#include "fabricated/memory.hpp"
#include "mentions.hpp"

namespace vb = verbena;

using namespace std::chrono_literals;
using fabricated::call;
using fabricated::kind;
using vb::errors::returning;

namespace {

using steady = std::chrono::steady_clock;
constexpr auto nobody = [](const vb::failed&) {};

struct host {
  fabricated::device adapter;
  vb::verbs::device opened = adapter.open();
  vb::verbs::protection_domain domain = vb::verbs::protection_domain::create(opened).value();
  fabricated::scratch memory = fabricated::memory(domain);

  /// A connection to some endpoint of this host, which opens a region and is gone afterwards.
  template <class... Policies>
  auto connect(const vb::options& asked = {.send_depth = 16, .receive_depth = 16}) {
    return to_peer(vb::endpoint<returning, Policies...>::open(domain, asked).value());
  }
  /// The same on a completion queue.
  template <class... Policies>
  auto connect_on(const auto& queue,
                  const vb::options& asked = {.send_depth = 16, .receive_depth = 16}) {
    return to_peer(vb::endpoint<returning, Policies...>::open(domain, queue, asked).value());
  }

  auto message() const { return vb::send(memory.first(8)); }

 private:
  template <class Endpoint>
  auto to_peer(Endpoint here) {
    using inbox = vb::buffer<std::uint64_t, vb::grants_of<vb::remote_writable>>;
    const auto opened_region = inbox::create(domain, 8).value();
    auto peer =
        vb::endpoint<returning>::open(domain, {.send_depth = 1, .receive_depth = 1}).value();
    return std::move(here).connect(peer.describe(opened_region).value()).value();
  }
};

fabricated::queue_pair& behind(const auto& of) {
  return fabricated::machine::of(of.native_handle());
}

}  // namespace

TEST_CASE("a wait is over when all that was posted has completed") {
  host on;
  auto link = on.connect();
  CHECK(link.post(on.message(), on.message()));
  CHECK(link.post(vb::receive(on.memory)));
  std::thread other{[&] {
    std::this_thread::sleep_for(5ms);
    on.adapter.complete_sends(link.native_handle(), 1);
    std::this_thread::sleep_for(5ms);
    on.adapter.complete_all(link.native_handle(), 3);
  }};
  unsigned sends = 0;
  unsigned receives = 0;
  const auto outcome =
      link.wait(20s, vb::on([&](vb::completed<vb::send>) { ++sends; },
                            [&](vb::completed<vb::receive>) { ++receives; }, nobody));
  other.join();
  CHECK(outcome.has_value());
  CHECK(sends == 2);
  CHECK(receives == 1);
  CHECK(link.wait(0ns).has_value());
}

TEST_CASE("FC-40 a wait that takes too long tells what is outstanding") {
  host on;
  auto link = on.connect();
  CHECK(link.post(on.message(), on.message()));
  CHECK(link.post(vb::receive(on.memory)));
  on.adapter.complete_sends(link.native_handle(), 1);
  const auto outcome = link.wait(5ms);
  REQUIRE_FALSE(outcome.has_value());
  CHECK(outcome.error() == vb::errc::timed_out);
  CHECK(mentions(outcome.error(), "1 send and 1 receive"));
}

TEMPLATE_TEST_CASE("FC-40 a wait without end lasts until it is over", "", vb::completion::busy_poll,
                   vb::completion::event_driven) {
  host on;
  auto link = on.connect<TestType>();
  CHECK(link.post(on.message()));
  std::thread other{[&] {
    std::this_thread::sleep_for(5ms);
    on.adapter.complete_all(link.native_handle());
  }};
  CHECK(link.wait(std::chrono::nanoseconds::max()).has_value());
  other.join();
}

TEST_CASE("a wait is over for unsignaled requests too: a marker retires them") {
  host on;
  auto link = on.connect<vb::signaling::per_operation>();
  CHECK(link.post(on.message().unsignaled(), on.message().unsignaled()));
  std::thread other{[&] {
    while (on.adapter.complete_sends(link.native_handle()) == 0) std::this_thread::sleep_for(1ms);
  }};
  const auto outcome =
      link.wait(20s, vb::on([](vb::completed<vb::write>) { FAIL("told of the marker"); }, nobody));
  other.join();
  CHECK(outcome.has_value());
  REQUIRE(behind(link).sends.posted.size() == 3);
  const auto& marker = behind(link).sends.posted.back();
  CHECK(marker.pieces.empty());
  CHECK(marker.is_signaled());
}

TEST_CASE("FC-04 a wait ends with the status of what broke the connection") {
  host on;
  auto link = on.connect();
  CHECK(link.post(on.message(), on.message()));
  CHECK(link.post(vb::receive(on.memory)));
  on.adapter.fail_send(link.native_handle(), IBV_WC_RETRY_EXC_ERR);
  int told = 0;
  const auto outcome = link.wait(20s, vb::on([&](vb::failed) { ++told; }));
  REQUIRE_FALSE(outcome.has_value());
  CHECK(outcome.error().code() == vb::status::retry_exceeded);
  CHECK(told == 3);
  CHECK(link.post(on.message()).error() == vb::errc::broken);
}

TEST_CASE("FC-16 closing takes back all that is outstanding, then destroys") {
  host on;
  auto link = on.connect({.send_depth = 16, .receive_depth = 32, .close_timeout = 50ms});
  for (int i = 0; i < 32; ++i) CHECK(link.post(vb::receive(on.memory)));
  for (int i = 0; i < 8; ++i) CHECK(link.post(on.message()));
  on.adapter.complete_sends(link.native_handle());
  CHECK(link.close().has_value());
  CHECK(on.adapter.live(kind::queue_pair) == 0);
  CHECK(link.close().has_value());
}

TEST_CASE(
    "FC-16 destroying a connection takes back what is outstanding, without waiting for sends") {
  host on;
  const auto begun = steady::now();
  {
    auto link = on.connect({.send_depth = 16, .receive_depth = 16, .close_timeout = 20s});
    CHECK(link.post(vb::receive(on.memory)));
    CHECK(link.post(on.message(), on.message()));
  }
  CHECK(steady::now() - begun < 10s);
  CHECK(on.adapter.live(kind::queue_pair) == 0);
}

TEST_CASE("FC-16 a queue pair that does not flush is destroyed all the same, and that is said") {
  host on;
  on.adapter.flushes_on_error = false;
  auto link = on.connect({.send_depth = 16, .receive_depth = 16, .close_timeout = 20ms});
  CHECK(link.post(vb::receive(on.memory), vb::receive(on.memory)));
  const auto outcome = link.close();
  REQUIRE_FALSE(outcome.has_value());
  CHECK(outcome.error() == vb::errc::incomplete_drain);
  CHECK(mentions(outcome.error(), "2 requests"));
  CHECK(on.adapter.live(kind::queue_pair) == 0);
  CHECK(link.close().has_value());
}

TEST_CASE("FC-22 a queue pair that can not be destroyed stays, and closing again destroys it") {
  host on;
  auto link = on.connect();
  on.adapter.refuse.add(call::destroy_qp, EBUSY);
  const auto refused = link.close();
  REQUIRE_FALSE(refused.has_value());
  CHECK(refused.error() == std::errc::device_or_resource_busy);
  CHECK(on.adapter.live(kind::queue_pair) == 1);
  CHECK(link.close().has_value());
  CHECK(on.adapter.live(kind::queue_pair) == 0);
}

TEST_CASE("FC-16 closing one connection takes no completion from others on its queue") {
  host on;
  auto queue =
      vb::completion_queue<vb::completion::busy_poll, returning>::open(on.opened, {256, 4}).value();
  auto stays = on.connect_on(queue);
  std::optional goes = on.connect_on(queue);
  CHECK(stays.post(on.message().token(1), on.message().token(2)));
  CHECK(stays.post(vb::receive(on.memory).token(3)));
  CHECK(goes->post(on.message().token(9)));
  on.adapter.complete_all(stays.native_handle(), 5);
  SECTION("when it is closed") {
    on.adapter.complete_all(goes->native_handle());
    CHECK(goes->close().has_value());
  }
  SECTION("when it is destroyed") { goes.reset(); }
  SECTION("when it fails to drain") {
    on.adapter.flushes_on_error = false;
    CHECK_FALSE(goes->close().has_value());
  }
  std::vector<std::uint32_t> seen;
  while (queue.poll(vb::on([&](vb::completed<vb::send> done) { seen.push_back(done.token()); },
                           [&](vb::completed<vb::receive> done) {
                             seen.push_back(done.token());
                             CHECK(done.size() == 5);
                           },
                           [](vb::failed) { FAIL("told of the one that is gone"); }))) {
  }
  CHECK(seen == std::vector<std::uint32_t>{1, 2, 3});
}

TEST_CASE("a wait without handlers on a shared queue is refused: it would lose what is others'") {
  host on;
  const auto queue =
      vb::completion_queue<vb::completion::busy_poll, returning>::open(on.opened, {256, 4}).value();
  auto link = on.connect_on(queue);
  CHECK(link.wait(1s).error() == std::errc::operation_not_permitted);
}

TEST_CASE("moving a connection changes nothing for requests in flight") {
  host on;
  auto first = on.connect();
  CHECK(first.post(on.message()));
  const vb::connection_id id = first.id();
  auto second = std::move(first);
  CHECK(second.id() == id);
  on.adapter.complete_all(second.native_handle());
  bool told = false;
  CHECK(second
            .wait(20s, vb::on([&](vb::completed<vb::send> done) { told = done.connection() == id; },
                              nobody))
            .has_value());
  CHECK(told);
}

TEST_CASE("FC-26 a peer's regions are typed by what it granted") {
  host on;
  const auto link = on.connect();
  CHECK(link.peer_regions() == 1);
  const auto region = link.peer<std::uint64_t>().value();
  CHECK(region.size() == 8);
  CHECK(link.peer<std::uint64_t, vb::remote_readable>().error() == vb::errc::no_right);
  CHECK(link.peer<std::uint64_t>(1).error() == vb::errc::capacity);
  struct large {
    char bytes[128];
  };
  CHECK(link.peer<large>().error() == vb::errc::wire_value);
}

TEST_CASE("FC-23 the longest message is what both ends' ports carry") {
  host on;
  host other;
  other.adapter.ports[0].attributes.max_msg_sz = 100;
  auto here = vb::endpoint<returning>::open(on.domain).value();
  auto there = vb::endpoint<returning>::open(other.domain).value();
  auto link = std::move(here).connect(there.describe().value()).value();
  CHECK(link.post(vb::send(on.memory.first(100))));
  CHECK(link.post(vb::send(on.memory.first(101))).error() == vb::errc::message_too_long);
}

TEST_CASE("FC-22 a connection is not closed by a handler that its own wait has called") {
  host on;
  auto link = on.connect();
  CHECK(link.post(on.message()));
  on.adapter.complete_all(link.native_handle());
  vb::result<void> said = vb::success();
  CHECK(link.wait(20s, vb::on([&](vb::completed<vb::send>) { said = link.close(); }, nobody))
            .has_value());
  REQUIRE_FALSE(said.has_value());
  CHECK(said.error() == std::errc::resource_deadlock_would_occur);
  CHECK(link.close().has_value());
}

TEST_CASE("FC-22 a connection may be moved by a handler that its own wait has called") {
  host on;
  auto link = on.connect();
  std::optional<decltype(link)> other;
  CHECK(link.post(on.message(), on.message()));
  on.adapter.complete_sends(link.native_handle(), 1);
  const auto move = vb::on([&](vb::completed<vb::send>) { other = std::move(link); }, nobody);
  CHECK(link.wait(1ms, move).error() == vb::errc::timed_out);
  REQUIRE(other.has_value());
  on.adapter.complete_all(other->native_handle());
  CHECK(other->wait(20s).has_value());
}

TEST_CASE("FC-05 a marker that a provider has no room for yet comes later") {
  host on;
  auto link = on.connect<vb::signaling::per_operation>();
  CHECK(link.post(on.message(), on.message().unsignaled()));
  on.adapter.refuse.add(call::post_send, ENOMEM);
  std::thread other{[&] {
    std::this_thread::sleep_for(5ms);
    on.adapter.complete_sends(link.native_handle(), 1);
    while (on.adapter.count(call::post_send) < 3) std::this_thread::sleep_for(1ms);
    on.adapter.complete_all(link.native_handle());
  }};
  CHECK(link.wait(20s).has_value());
  other.join();
  // Nothing outstanding would ever make room: the provider's word is passed on.
  CHECK(link.post(on.message().unsignaled()));
  on.adapter.refuse.add(call::post_send, ENOMEM);
  CHECK(link.wait(20s).error() == std::errc::not_enough_memory);
}

TEST_CASE("a read is refused by name where the peers agreed on none") {
  host on;
  auto link = on.connect({.send_depth = 16, .receive_depth = 16, .reads_asked = 0});
  const auto refused = link.post(vb::read(on.memory.first(8), fabricated::peer_region()));
  CHECK(refused.error() == vb::errc::not_supported);
  CHECK(on.adapter.count(call::post_send) == 0);
}

// SPDX-License-Identifier: BSL-1.0
// needs exceptions
#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <future>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <verbena/verbena.hpp>

#include "catch.hpp"
#include "device.hpp"
#include "fixture/links.hpp"
#include "mentions.hpp"

namespace vb = verbena;

using links::error_of;
using links::no_failure;
using links::soon;

namespace {

using plain = vb::connection<>;
using source = vb::buffer<std::byte, vb::grants_of<vb::source>>;

/// A queue with a ring for `messages` messages of `bytes`.
template <class Completion = vb::completion::busy_poll>
struct inbox {
  explicit inbox(const vb::device& on, const vb::receive_ring_options& asked = {8, 256})
      : queue{on, {1024, 64}}, ring{std::in_place, on, queue, asked} {}

  vb::completion_queue<Completion> queue;
  std::optional<vb::receive_ring<Completion>> ring;
};

/// Leaves where the device has no rings, with its reason.
#define VERBENA_RINGS_OR_SKIP(device)                                                     \
  if ((device).domain().device().is_siw()) {                                              \
    const vb::completion_queue<> queue{device};                                           \
    const auto refused = error_of([&] { const vb::receive_ring<> none{device, queue}; }); \
    REQUIRE(refused == vb::errc::not_supported);                                          \
    REQUIRE(mentions(refused, "a receive ring on " + (device).name()));                   \
    VERBENA_SKIP(refused.message());                                                      \
  }

/// Connected ends, the second of which receives by a ring.
template <class Link = plain, class Ring, class... Regions>
links::pair<Link> join(const vb::device& on, const Ring& ring, const Regions&... opened) {
  using endpoint = vb::basic_endpoint<typename Link::policies>;
  endpoint first{on};
  endpoint second{on, ring};
  if constexpr (Link::policies::setup::uses_cm) {
    typename Link::listener port{on, {links::host(), 0}};
    auto accepted = std::async(std::launch::async, [&] {
      return port.next(soon).accept(std::move(second), soon, opened...);
    });
    Link here = std::move(first).connect(port.address(), soon);
    return {std::move(here), accepted.get()};
  } else {
    const auto mine = first.describe();
    const auto theirs = second.describe(opened...);
    Link there = std::move(second).connect(mine);
    return {std::move(first).connect(theirs), std::move(there)};
  }
}

source numbered(const vb::device& on, std::size_t bytes = 4096) {
  source made = on.allocate<vb::source>(bytes);
  for (std::size_t i = 0; i < bytes; ++i) made[i] = static_cast<std::byte>(i * 5 + i / 256);
  return made;
}

/// The next messages.
template <class Completion, class Function>
void take(vb::completion_queue<Completion>& queue, std::uint32_t count, Function&& function) {
  std::uint32_t taken = 0;
  const auto handle = vb::on(
      [&](vb::message each) {
        ++taken;
        function(each);
      },
      [](const vb::failed& f) { no_failure(f); });
  while (taken < count) REQUIRE(queue.wait(soon, handle));
}

}  // namespace

TEST_CASE("ring: messages of several connections, each told by its connection", "[ring]") {
  VERBENA_DEVICE_OR_SKIP(device);
  VERBENA_RINGS_OR_SKIP(device);
  inbox<> in{device};
  const source out = numbered(device);
  std::vector<links::pair<plain>> pairs;
  for (int i = 0; i < 5; ++i) pairs.push_back(join(device, *in.ring));
  std::array<std::uint32_t, 5> next{};
  // Many times as many as the ring has places.
  for (std::uint32_t round = 0; round < 60; ++round) {
    for (std::size_t i = 0; i < pairs.size(); ++i) {
      const auto text = out.subspan(round, 1 + (round * 5 + i) % 256);
      REQUIRE(pairs[i].here.post(vb::send_with_immediate(text, round)));
    }
    take(in.queue, 5, [&](const vb::message& got) {
      const auto of = std::ranges::find(pairs, got.connection(),
                                        [](const auto& each) { return each.there.id(); });
      REQUIRE(of != pairs.end());
      const auto which = static_cast<std::size_t>(of - pairs.begin());
      const std::uint32_t at = got.immediate_or(~0U);
      CHECK(at == next[which]++);
      CHECK(got.immediate() == at);
      CHECK_FALSE(got.is_write());
      CHECK(got.size() == 1 + (at * 5 + which) % 256);
      CHECK(std::ranges::equal(got.bytes(), out.elements().subspan(at, got.size())));
    });
    for (auto& each : pairs) each.here.wait(soon);
  }
}

TEST_CASE("ring: one connection's messages come in order, in batches", "[ring]") {
  VERBENA_DEVICE_OR_SKIP(device);
  VERBENA_RINGS_OR_SKIP(device);
  inbox<vb::completion::event_driven> in{device, {64, 64}};
  auto pair = join<vb::connection<vb::completion::event_driven>>(device, *in.ring);
  const source out = numbered(device);
  std::uint32_t taken = 0;
  for (std::uint32_t sent = 0; sent < 960; sent += 48) {
    for (std::uint32_t i = sent; i < sent + 48; ++i)
      REQUIRE(pair.here.post(vb::send(out.subspan(i, 8))));
    take(in.queue, 48, [&](const vb::message& got) {
      CHECK(std::ranges::equal(got.bytes(), out.elements().subspan(taken++, 8)));
    });
    pair.here.wait(soon);
  }
}

TEST_CASE("ring: a write with immediate takes a place", "[ring]") {
  VERBENA_DEVICE_OR_SKIP(device);
  VERBENA_RINGS_OR_SKIP(device);
  inbox<> in{device, {1, 64}};
  const auto target = device.allocate<vb::remote_writable>(64);
  auto pair = join(device, *in.ring, target);
  const source out = numbered(device);
  const auto there = pair.here.peer<std::byte>();
  for (std::uint32_t i = 0; i < 40; ++i) {
    REQUIRE(pair.here.post(vb::write_with_immediate(out.subspan(i, 64), there, i)));
    take(in.queue, 1, [&](const vb::message& got) {
      CHECK(got.is_write());
      CHECK(got.size() == 64);
      CHECK(got.bytes().empty());
      CHECK(got.immediate() == i);
      CHECK(std::ranges::equal(target.elements(), out.elements().subspan(i, 64)));
    });
    pair.here.wait(soon);
  }
}

TEST_CASE("ring: what finds no place waits", "[ring]") {
  VERBENA_DEVICE_OR_SKIP(device);
  VERBENA_RINGS_OR_SKIP(device);
  inbox<> in{device, {2, 64}};
  auto pair = join(device, *in.ring);
  const source out = numbered(device);
  for (std::uint32_t i = 0; i < 100; ++i)
    REQUIRE(pair.here.post(vb::send(out.subspan(i, 8)).token(i)));
  CHECK(error_of([&] { pair.here.wait(std::chrono::milliseconds{100}); }) == vb::errc::timed_out);
  std::uint32_t taken = 0;
  std::uint32_t left = 0;
  const auto handle = vb::on(
      [&](vb::message got) {
        CHECK(std::ranges::equal(got.bytes(), out.elements().subspan(taken++, 8)));
      },
      [](const vb::failed& f) { no_failure(f); });
  const auto until = std::chrono::steady_clock::now() + soon;
  while (taken < 100 && std::chrono::steady_clock::now() < until) {
    (void)in.queue.poll(handle);
    (void)pair.here.completions().poll(vb::on([&](vb::completed<vb::send>) { ++left; },
                                              [](const vb::failed& f) { no_failure(f); }));
  }
  CHECK(taken == 100);
  pair.here.wait(soon);
}

TEST_CASE("ring: a message too long breaks its connection alone, and keeps no place", "[ring]") {
  VERBENA_DEVICE_OR_SKIP(device);
  VERBENA_RINGS_OR_SKIP(device);
  inbox<> in{device, {1, 64}};
  const source out = numbered(device);
  const bool rxe = device.domain().device().is_rxe();
  auto other = join(device, *in.ring);
  for (std::uint32_t i = 0; i < 20; ++i) {
    auto pair = join(device, *in.ring);
    REQUIRE(pair.here.post(vb::send(out.first(65))));
    std::uint32_t failures = 0;
    const auto handle = vb::on([](vb::message) { FAIL("it was too long"); },
                               [&](const vb::failed& f) {
                                 ++failures;
                                 CHECK(f.connection() == pair.there.id());
                                 CHECK(f.what() == vb::operation::receive);
                                 // rxe's, on both ends, as for other receives
                                 CHECK((f.status() == vb::status::local_length ||
                                        (rxe && f.status() == vb::status::local_operation)));
                                 CHECK(f.breaks_connection());
                               });
    while (failures == 0) REQUIRE(in.queue.wait(soon, handle));
    const vb::error seen = error_of([&] { pair.here.wait(soon); });
    INFO(seen.message());
    CHECK((seen == vb::status::remote_invalid_request ||
           (rxe && seen == vb::status::remote_operation)));
    CHECK(error_of([&] { (void)pair.there.post(vb::send(out.first(1))); }) == vb::errc::broken);

    REQUIRE(other.here.post(vb::send(out.subspan(i, 64))));
    take(in.queue, 1, [&](const vb::message& got) {
      CHECK(got.connection() == other.there.id());
      CHECK(std::ranges::equal(got.bytes(), out.elements().subspan(i, 64)));
    });
    other.here.wait(soon);
  }
}

TEST_CASE("ring: closing takes the messages of its connection, and gives their places back",
          "[ring]") {
  VERBENA_DEVICE_OR_SKIP(device);
  VERBENA_RINGS_OR_SKIP(device);
  inbox<> in{device, {4, 64}};
  const source out = numbered(device);
  auto other = join(device, *in.ring);
  for (std::uint32_t i = 0; i < 20; ++i) {
    auto pair = join(device, *in.ring);
    REQUIRE(other.here.post(vb::send(out.subspan(i, 16))));
    for (std::uint32_t k = 0; k < 3; ++k) REQUIRE(pair.here.post(vb::send(out.first(8))));
    pair.here.wait(soon);
    other.here.wait(soon);
    pair.there.close();
    // What the other connection was sent is still to come, once.
    std::uint32_t seen = 0;
    take(in.queue, 1, [&](const vb::message& got) {
      ++seen;
      CHECK(got.connection() == other.there.id());
      CHECK(std::ranges::equal(got.bytes(), out.elements().subspan(i, 16)));
    });
    CHECK(seen == 1);
  }
}

TEST_CASE("ring: a place comes back where the handler throws, and where nobody listens", "[ring]") {
  VERBENA_DEVICE_OR_SKIP(device);
  VERBENA_RINGS_OR_SKIP(device);
  inbox<> in{device, {2, 64}};
  auto pair = join(device, *in.ring);
  const source out = numbered(device);
  std::uint32_t thrown = 0;
  const auto throws = vb::on([](vb::message) { throw std::runtime_error{"not today"}; },
                             [](const vb::failed& f) { no_failure(f); });
  for (std::uint32_t i = 0; i < 40; ++i) {
    REQUIRE(pair.here.post(vb::send(out.first(8))));
    pair.here.wait(soon);
    try {
      while (in.queue.wait(soon, throws)) {
      }
    } catch (const std::runtime_error&) {
      ++thrown;
    }
  }
  CHECK(thrown == 40);
  for (std::uint32_t i = 0; i < 40; ++i) {
    REQUIRE(pair.here.post(vb::send(out.first(8))));
    pair.here.wait(soon);
    REQUIRE(in.queue.wait(soon, no_failure));
  }
  REQUIRE(pair.here.post(vb::send(out.first(8))));
  take(in.queue, 1, [&](const vb::message& got) { CHECK(got.size() == 8); });
}

TEST_CASE("ring: connections made by RDMA CM outlive the ring's owner", "[ring][cm]") {
  VERBENA_DEVICE_OR_SKIP(device);
  VERBENA_RINGS_OR_SKIP(device);
  inbox<> in{device};
  auto pair = join<vb::connection<vb::setup::cm>>(device, *in.ring);
  in.ring.reset();
  const source out = numbered(device);
  for (std::uint32_t i = 0; i < 50; ++i) {
    REQUIRE(pair.here.post(vb::send(out.subspan(i, 100))));
    take(in.queue, 1, [&](const vb::message& got) {
      CHECK(std::ranges::equal(got.bytes(), out.elements().subspan(i, 100)));
    });
    pair.here.wait(soon);
  }
  pair.there.close();
  // With the last connection the ring has gone: its place on the queue is free again.
  const auto entries = static_cast<std::uint32_t>(in.queue.native_handle()->cqe);
  const vb::receive_ring again{device, in.queue, {entries - 15, 64}};
}

TEST_CASE("ring: a connection on it takes no receives of its own", "[ring]") {
  VERBENA_DEVICE_OR_SKIP(device);
  VERBENA_RINGS_OR_SKIP(device);
  inbox<> in{device};
  auto pair = join(device, *in.ring);
  const auto own = device.allocate<vb::sink>(64);
  const auto refused = error_of([&] { (void)pair.there.post(vb::receive(own)); });
  CHECK(refused == vb::errc::not_supported);
  CHECK(mentions(refused, "its messages come to a receive_ring"));
  CHECK(pair.there.capabilities().receive_depth == 0);
  CHECK(pair.there.granted().max_recv_wr == 0);
  const source out = numbered(device);
  REQUIRE(pair.there.post(vb::send(out.first(8))));  // not received, and not to be
}

TEST_CASE("ring: what can not be made names what was asked and allowed", "[ring]") {
  VERBENA_DEVICE_OR_SKIP(device);
  VERBENA_RINGS_OR_SKIP(device);
  vb::completion_queue<> queue{device, {64, 1}};
  const auto making = [&](const vb::receive_ring_options& asked) {
    return error_of([&] { const vb::receive_ring ring{device, queue, asked}; });
  };
  const auto none = making({0, 64});
  CHECK(none == vb::errc::capacity);
  CHECK(mentions(none, "a receive ring of 0 messages; " + device.name() + " allows 1 to "));
  CHECK(making({1'000'000'000, 64}) == vb::errc::capacity);
  CHECK(mentions(making({1, 0}), "messages of 0 bytes"));
  CHECK(making({1, (1U << 31) + 1}) == vb::errc::capacity);
  const auto entries = static_cast<std::uint32_t>(queue.native_handle()->cqe);
  CHECK(mentions(making({entries - 4, 64}), std::to_string(entries + 11) +
                                                " requests on a completion queue of " +
                                                std::to_string(entries) + " entries"));

  vb::receive_ring ring{device, queue, {16, 64}};
  CHECK(error_of([&] { const vb::endpoint<> end{device, ring}; }) == vb::errc::capacity);
  vb::completion_queue<> moved = std::move(queue);
  CHECK(making({1, 64}) == vb::errc::moved_from);
  const vb::receive_ring taken = std::move(ring);
  CHECK(error_of([&] { const vb::endpoint<> end{device, ring}; }) == vb::errc::moved_from);
  const auto again = vb::open_device(device.name());
  const auto mixed = error_of([&] { const vb::receive_ring other{again, moved, {1, 64}}; });
  CHECK(mixed == vb::errc::mismatch);
}

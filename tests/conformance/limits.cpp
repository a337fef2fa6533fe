// SPDX-License-Identifier: BSL-1.0
// needs exceptions
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

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

using rc = vb::connection<vb::setup::cm>;
using silent = vb::connection<vb::setup::cm, vb::signaling::per_operation>;
using uc = vb::connection<vb::transport::uc>;
using ud = vb::connection<vb::transport::ud>;

/// A send of `Count` pieces of one byte each.
template <class Memory, std::size_t... Index>
auto in_pieces(const Memory& memory, std::index_sequence<Index...>) {
  return vb::send(vb::pieces{memory.subspan(Index, 1)...});
}

/// Posts a send of more pieces than `granted`; false where there are none as many here.
template <std::size_t... Count>
bool post_more_than(std::uint32_t granted, auto& link, const auto& memory,
                    std::index_sequence<Count...>) {
  return ((granted < Count &&
           ((void)link.post(in_pieces(memory, std::make_index_sequence<Count>{})), true)) ||
          ...);
}

/// Takes the first 64 bytes of `sent`, which follow a message that was too long. By the book that
/// one is dropped; rxe spends the receive on it and fails.
template <class Message>
void take_short(auto& receiver, const auto& sent) {
  bool over = false;
  while (!over) {
    receiver.completions().wait(
        soon, vb::on(
                  [&](Message got) {
                    over = true;
                    CHECK(got.size() == 64);
                    CHECK(std::ranges::equal(got.bytes(), sent.elements().first(64)));
                  },
                  [&](vb::failed f) {
                    const auto* on = receiver.native_handle()->context->device;
                    CHECK(std::string{on->name}.starts_with("rxe"));
                    CHECK(f.what() == vb::operation::receive);
                    over = true;
                  }));
  }
}

}  // namespace

TEST_CASE("FC-01 a stream of unsignaled requests never fills the queue for good", "[limits]") {
  VERBENA_DEVICE_OR_SKIP(device);
  auto out = device.allocate<std::byte, vb::source>(64);
  auto shown = device.allocate<std::byte, vb::remote_writable>(64);
  for (const std::uint32_t depth : {1U, 2U, 3U, 64U}) {
    CAPTURE(depth);
    auto both = links::connect<silent>(device, {.send_depth = depth}, shown);
    const std::uint32_t granted = both.here.capabilities().send_depth;
    const auto to = both.here.peer<std::byte>();
    std::uint32_t posted = 0;
    std::uint32_t retired = 0;
    const auto count = [&](vb::completed<vb::write> done) { retired += done.retired(); };
    const auto until = std::chrono::steady_clock::now() + soon;
    while (posted < 10 * granted && std::chrono::steady_clock::now() < until) {
      const vb::posted result = both.here.post(vb::write(out, to).unsignaled());
      if (result) ++posted;
      if (!result) REQUIRE(result.would_block());
      both.here.completions().poll(vb::on(count, [](const vb::failed& f) { no_failure(f); }));
    }
    CHECK(posted == 10 * granted);
    both.here.wait(soon, vb::on(count, [](const vb::failed& f) { no_failure(f); }));
    CHECK(posted - retired < granted);  // those at the end, which the library retires
  }
}

TEST_CASE("FC-03 a full queue, too many pieces and too much inline are three errors", "[limits]") {
  VERBENA_DEVICE_OR_SKIP(device);
  auto out = device.allocate<std::byte, vb::source>(4096);
  auto shown = device.allocate<std::byte, vb::remote_writable>(4096);
  auto both =
      links::connect<rc>(device, {.send_depth = 4, .send_pieces = 1, .inline_bytes = 16}, shown);
  const vb::capabilities can = both.here.capabilities();
  const auto to = both.here.peer<std::byte>();

  std::string text(can.inline_bytes + 1, 'x');
  const auto too_long =
      error_of([&] { (void)both.here.post(vb::write(vb::unregistered{text}, to)); });
  CHECK(too_long == vb::errc::inline_too_long);
  CHECK(mentions(too_long, std::to_string(can.inline_bytes) + " bytes"));
  text.pop_back();
  REQUIRE(both.here.post(vb::write(vb::unregistered{text}, to)));
  both.here.wait(soon);

  const auto too_many = error_of([&] {
    if (!post_more_than(can.send_pieces, both.here, out, std::index_sequence<2, 5, 9, 17, 33>{})) {
      WARN("more than 32 pieces are granted");
    }
  });
  if (can.send_pieces <= 32) {
    CHECK(too_many == vb::errc::too_many_pieces);
    CHECK(mentions(too_many, "at most " + std::to_string(can.send_pieces)));
  }

  // Nothing is polled, so the queue is full once as many are posted as it holds.
  for (std::uint32_t i = 0; i < can.send_depth; ++i) REQUIRE(both.here.post(vb::write(out, to)));
  const vb::posted full = both.here.post(vb::write(out, to));
  CHECK(full.would_block());
  CHECK(full.count() == 0);
  both.here.wait(soon);
  CHECK(both.here.post(vb::write(out, to)));
  both.here.wait(soon);
}

TEST_CASE("FC-15 on RC a message longer than its receive breaks both ends, and both say so",
          "[limits]") {
  VERBENA_DEVICE_OR_SKIP(device);
  auto out = device.allocate<std::byte, vb::source>(65);
  auto in = device.allocate<std::byte, vb::sink>(64);
  auto both = links::connect<rc>(device);
  REQUIRE(both.there.post(vb::receive(in)));
  REQUIRE(both.here.post(vb::send(out)));
  // Adapters say "local length" where it was received, rxe "remote invalid request" on both ends
  // (verbs of iWARP end the stream: what is outstanding is flushed).
  const std::array accepted{vb::status::local_length,     vb::status::remote_invalid_request,
                            vb::status::remote_operation, vb::status::flushed,
                            vb::status::local_operation,  vb::status::fatal};
  const auto expect_broken = [&](rc& end) {
    std::uint32_t broken = 0;
    const auto outcome = error_of([&] {
      end.wait(soon, vb::on([&](vb::failed f) {
                 CAPTURE(vb::make_error_code(f.status()).message());
                 CHECK(std::ranges::find(accepted, f.status()) != accepted.end());
                 broken += f.breaks_connection() ? 1U : 0U;
               }));
    });
    CHECK((mentions(outcome, "is broken") || outcome == vb::errc::disconnected));
    CHECK(broken == 1);
  };
  expect_broken(both.there);
  if (!device.domain().device().is_iwarp()) expect_broken(both.here);
}

TEST_CASE("FC-15 on UC and UD a message longer than its receive is lost, later ones come",
          "[limits]") {
  VERBENA_DEVICE_OR_SKIP(device);
  if (device.domain().device().is_iwarp()) VERBENA_SKIP("iWARP has transport::rc alone");
  auto out = device.allocate<std::byte, vb::source>(65);
  auto in = device.allocate<std::byte, vb::sink>(4 * (64 + 40));
  for (std::size_t i = 0; i < out.size(); ++i) out[i] = static_cast<std::byte>(i + 1);
  {
    vb::endpoint<vb::transport::ud> there{device};
    const auto described = there.describe();
    for (std::uint32_t i = 0; i < 4; ++i) {
      REQUIRE(there.post(vb::receive(in.subspan(i * 104, 104)).token(i)));
    }
    ud receiver = std::move(there).connect();
    ud sender = vb::endpoint<vb::transport::ud>{device}.connect();
    const vb::peer to = sender.peer(described);
    REQUIRE(sender.post(vb::send(out).to(to), vb::send(out.first(64)).to(to)));
    take_short<vb::datagram>(receiver, out);
  }
  auto both = links::connect<uc>(device);
  for (std::uint32_t i = 0; i < 4; ++i) {
    REQUIRE(both.there.post(vb::receive(in.subspan(i * 104, 64)).token(i)));
  }
  REQUIRE(both.here.post(vb::send(out), vb::send(out.first(64))));
  both.here.wait(soon);
  take_short<vb::completed<vb::receive>>(both.there, out);
}

TEST_CASE("FC-23 a write and a read longer than a message, divided", "[limits]") {
  VERBENA_DEVICE_OR_SKIP(device);
  auto both = links::connect<rc>(device);
  const std::size_t most = both.here.capabilities().max_message;
  if (most > std::size_t{1} << 24U) {
    VERBENA_SKIP(device.name() + " has messages of " + std::to_string(most) + " bytes");
  }
  const std::size_t size = 2 * most + 4096;
  auto here = device.allocate<std::byte, vb::sink>(size);
  auto there = device.allocate<std::byte, vb::remote_writable, vb::remote_readable>(size);
  auto ends = links::connect<rc>(device, {}, there);
  for (std::size_t i = 0; i < size; ++i) here[i] = static_cast<std::byte>(i * 7 + i / 4096);
  const auto to = ends.here.peer<std::byte>();
  const auto from = ends.here.peer<std::byte, vb::remote_readable>();
  CHECK(error_of([&] { (void)ends.here.post(vb::write(here, to)); }) == vb::errc::message_too_long);
  std::uint32_t told = 0;
  REQUIRE(ends.here.post(vb::write(here, to).divided()));
  ends.here.wait(soon, vb::on([&](vb::completed<vb::write>) { ++told; },
                              [](const vb::failed& f) { no_failure(f); }));
  CHECK(told == 1);
  CHECK(std::ranges::equal(here.elements(), there.elements()));
  std::ranges::fill(here.elements(), std::byte{});
  REQUIRE(ends.here.post(vb::read(here, from).divided()));
  ends.here.wait(soon, vb::on([&](vb::completed<vb::read>) { ++told; },
                              [](const vb::failed& f) { no_failure(f); }));
  CHECK(told == 2);
  CHECK(std::ranges::equal(here.elements(), there.elements()));
}

// SPDX-License-Identifier: BSL-1.0
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <optional>
#include <utility>
#include <vector>

#include <verbena/connection/connection.hpp>
#include <verbena/connection/endpoint.hpp>
#include <verbena/operation/compare_and_swap.hpp>
#include <verbena/operation/fetch_and_add.hpp>
#include <verbena/operation/read.hpp>
#include <verbena/operation/send.hpp>
#include <verbena/operation/send_with_immediate.hpp>
#include <verbena/operation/write.hpp>
#include <verbena/policy/errors/returning.hpp>
#include <verbena/policy/signaling/one_in.hpp>

#include "catch.hpp"
#include "fabricated/device.hpp"
#include "fabricated/memory.hpp"
#include "mentions.hpp"

namespace vb = verbena;

using fabricated::call;
using vb::errc;

namespace {

/// A connection whose peer nobody looks at.
template <class... Policies>
struct host {
  using endpoint = vb::endpoint<vb::errors::returning, Policies...>;
  using link_type = vb::basic_connection<typename endpoint::policies>;

  fabricated::device adapter;
  vb::verbs::device opened = adapter.open();
  vb::verbs::protection_domain domain = vb::verbs::protection_domain::create(opened).value();
  fabricated::scratch memory = fabricated::memory(domain);
  fabricated::anywhere peer = fabricated::peer_region();

  link_type link(const vb::options& asked = {}) {
    auto here = endpoint::open(domain, asked).value();
    const auto there = endpoint::open(domain).value().describe().value();
    return std::move(here).connect(there).value();
  }
};

const auto& sends_of(const auto& link) {
  return fabricated::machine::of(link.native_handle()).sends.posted;
}
vb::work_request_id id_of(const fabricated::posted_send& of) { return {of.request.wr_id}; }

void drain(auto& link) {
  while (link.completions().poll(vb::on([](const vb::failed&) {}))) {
  }
}

}  // namespace

TEST_CASE("a prepared chain is posted as it was written, as often as wanted") {
  host<> on;
  auto link = on.link();
  auto chain = link.prepare(vb::write(vb::pieces{on.memory.first(3), on.memory.last(4)}, on.peer)
                                .token(7)
                                .fenced(),
                            vb::send_with_immediate(on.memory.first(5), 9).solicited(),
                            vb::read(on.memory.first(6), on.peer))
                   .value();
  static_assert(decltype(chain)::size == 3);
  CHECK(link.post(vb::send(on.memory)));
  for (int round = 0; round < 2; ++round) {
    const vb::posted done = link.post(chain);
    CHECK(done);
    CHECK(done.count() == 3);
  }
  CHECK(on.adapter.count(call::post_send) == 3);
  const auto& sends = sends_of(link);
  REQUIRE(sends.size() == 7);
  for (std::uint16_t at = 0; at < sends.size(); ++at) {
    CHECK(id_of(sends[at]).position() == at);
    CHECK(id_of(sends[at]).owner() == id_of(sends[0]).owner());
    CHECK(sends[at].is_signaled());
  }
  for (const std::size_t first : {1U, 4U}) {
    const auto& write = sends[first];
    CHECK(write.request.opcode == IBV_WR_RDMA_WRITE);
    CHECK(write.request.send_flags == (IBV_SEND_SIGNALED | IBV_SEND_FENCE));
    CHECK(write.request.wr.rdma.remote_addr == on.peer.address());
    CHECK(id_of(write).token() == 7);
    CHECK(id_of(write).what() == vb::operation::write);
    REQUIRE(write.pieces.size() == 2);
    CHECK(write.pieces[1].addr == reinterpret_cast<std::uintptr_t>(on.memory.data() + 4092));
    CHECK(write.pieces[1].length == 4);
    const auto& send = sends[first + 1];
    CHECK(send.request.imm_data == vb::swapped_immediate(9));
    CHECK(send.request.send_flags == (IBV_SEND_SIGNALED | IBV_SEND_SOLICITED));
    CHECK(sends[first + 2].request.opcode == IBV_WR_RDMA_READ);
    CHECK(sends[first + 2].pieces[0].length == 6);
  }
}

TEST_CASE("of a prepared chain tokens, immediates and numbers can be changed") {
  host<> on;
  auto link = on.link();
  auto told = link.prepare(vb::send(on.memory), vb::send_with_immediate(1)).value();
  CHECK(link.post(told));
  CHECK(link.post(told.token(3).token<1>(0xff'ffff).immediate<1>(2)));
  CHECK(id_of(sends_of(link)[2]).token() == 3);
  CHECK(id_of(sends_of(link)[3]).token() == 0xff'ffff);
  CHECK(sends_of(link)[1].request.imm_data == vb::swapped_immediate(1));
  CHECK(sends_of(link)[3].request.imm_data == vb::swapped_immediate(2));

  const auto words =
      vb::buffer<std::uint64_t, vb::grants_of<vb::sink>>::create(on.domain, 2).value();
  const vb::remote_region<std::uint64_t, vb::rights::remote_atomic> counter{0x7000'1000, 1,
                                                                            vb::rkey{0x8888}};
  auto swap = link.prepare(vb::compare_and_swap(words.first(1), counter, 0, 1)).value();
  auto add = link.prepare(vb::fetch_and_add(words.last(1), counter, 5)).value();
  CHECK(link.post(swap.operands(1, 2)));
  CHECK(link.post(add));
  CHECK(link.post(add.operand(6)));
  CHECK(sends_of(link)[4].request.wr.atomic.compare_add == 1);
  CHECK(sends_of(link)[4].request.wr.atomic.swap == 2);
  CHECK(sends_of(link)[5].request.wr.atomic.compare_add == 5);
  CHECK(sends_of(link)[6].request.wr.atomic.compare_add == 6);
  words.data()[0] = 77;
  words.data()[1] = 88;
  on.adapter.complete_sends(link.native_handle());
  std::uint64_t swapped = 0;
  std::uint64_t added = 0;
  while (link.completions().poll(
      vb::on([&](vb::completed<vb::compare_and_swap> done) { swapped = done.old_value(); },
             [&](vb::completed<vb::fetch_and_add> done) { added = done.old_value(); },
             [](const vb::failed&) {}))) {
  }
  CHECK(swapped == 77);
  CHECK(added == 88);
}

TEST_CASE("prepared chains and others count signals and positions together") {
  host<vb::signaling::one_in<4>> on;
  auto link = on.link();
  auto chain = link.prepare(vb::send(on.memory), vb::send(on.memory)).value();
  CHECK(link.post(vb::send(on.memory)));
  CHECK(link.post(chain));
  CHECK(link.post(chain));
  std::vector<bool> signaled;
  for (const auto& each : sends_of(link)) signaled.push_back(each.is_signaled());
  CHECK(signaled == std::vector<bool>{false, false, false, true, false});
  CHECK(id_of(sends_of(link)[4]).position() == 4);
}

TEST_CASE("what is inline in a prepared chain is read anew in each post") {
  host<> on;
  auto link = on.link({.inline_bytes = 8});
  std::uint64_t number = 1;
  auto chain =
      link.prepare(vb::send(vb::unregistered{number}), vb::send(on.memory.first(8)).inlined(),
                   vb::send(on.memory.first(9)).inlined())
          .value();
  CHECK(link.post(chain));
  number = 2;
  CHECK(link.post(chain));
  const auto value_of = [&](std::size_t at) {
    std::uint64_t found = 0;
    REQUIRE(sends_of(link)[at].inlined.size() == 8);
    std::memcpy(&found, sends_of(link)[at].inlined.data(), 8);
    return found;
  };
  CHECK(value_of(0) == 1);
  CHECK(value_of(3) == 2);
  CHECK(sends_of(link)[4].inlined.size() == 8);
  CHECK(sends_of(link)[5].inlined.empty());
}

TEST_CASE("a prepared chain is a value: copies are posted apart") {
  host<> on;
  auto link = on.link();
  auto first =
      link.prepare(vb::send(on.memory.first(1)), vb::send(on.memory.first(2)).token(5)).value();
  using type =
      decltype(link)::prepared<vb::shape<vb::operation::send>, vb::shape<vb::operation::send>>;
  std::optional<type> second{first};
  first.token<1>(6);
  CHECK(link.post(*second));
  first = *second;
  second.reset();
  CHECK(link.post(first));
  CHECK(id_of(sends_of(link)[1]).token() == 5);
  CHECK(id_of(sends_of(link)[3]).token() == 5);
  CHECK(sends_of(link)[3].pieces[0].length == 2);
}

TEST_CASE("what can not be posted is not prepared either, and the error says why") {
  host<> on;
  auto link = on.link({.inline_bytes = 0});
  const auto foreign_domain = vb::verbs::protection_domain::create(on.opened).value();
  const auto foreign = fabricated::memory(foreign_domain);
  const auto refused = link.prepare(vb::send(on.memory), vb::send(foreign));
  REQUIRE_FALSE(refused.has_value());
  CHECK(refused.error() == errc::foreign_domain);
  CHECK(mentions(refused.error(), "preparing"));
  CHECK(link.prepare(vb::send(on.memory.first(0))).error() == errc::empty_piece);
  CHECK(link.prepare(vb::write(on.memory, on.peer.first(3))).error() == errc::outside_region);
  CHECK(link.prepare(vb::send(vb::unregistered{42})).error() == errc::inline_too_long);
  CHECK(sends_of(link).empty());
  CHECK(link.close().has_value());
  CHECK(link.prepare(vb::send(on.memory)).error() == errc::moved_from);
}

TEST_CASE("a prepared chain is refused where there is no room, and posted later") {
  host<> on;
  auto link = on.link({.send_depth = 2});
  auto chain = link.prepare(vb::send(on.memory), vb::send(on.memory)).value();
  CHECK(link.post(chain));
  CHECK(link.post(chain).would_block());
  CHECK(on.adapter.count(call::post_send) == 1);
  on.adapter.complete_sends(link.native_handle());
  drain(link);
  CHECK(link.post(chain));

  auto longer = link.prepare(vb::send(on.memory), vb::send(on.memory), vb::send(on.memory)).value();
  CHECK(link.post(longer).error() == errc::capacity);
  auto single = link.prepare(vb::send(on.memory)).value();
  on.adapter.fail_send(link.native_handle(), IBV_WC_REM_OP_ERR);
  drain(link);
  CHECK(link.post(single).error() == errc::broken);
  CHECK(link.close().has_value());
  CHECK(link.post(single).error() == errc::broken);
}

TEST_CASE("a prepared chain is refused on another connection") {
  host<> on;
  auto link = on.link();
  auto other = on.link();
  auto chain = link.prepare(vb::send(on.memory)).value();
  CHECK(other.post(chain).error() == errc::other_connection);
  CHECK(sends_of(other).empty());
  auto moved = std::move(link);
  CHECK(moved.post(chain));
  CHECK(sends_of(moved).size() == 1);
}

TEST_CASE("of a prepared chain that the provider takes in part, the rest can be told") {
  host<> on;
  auto link = on.link();
  auto chain = link.prepare(vb::send(on.memory), vb::send(on.memory), vb::send(on.memory)).value();
  fabricated::machine::of(link.native_handle()).sends.limit = 2;
  const vb::posted done = link.post(chain);
  CHECK(done.count() == 2);
  CHECK(done.would_block());
  on.adapter.refuse.add(call::post_send, EIO);
  CHECK(link.post(chain).error() == std::errc::io_error);
}

// SPDX-License-Identifier: BSL-1.0
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include <verbena/connection/connection.hpp>
#include <verbena/connection/endpoint.hpp>
#include <verbena/operation/compare_and_swap.hpp>
#include <verbena/operation/fetch_and_add.hpp>
#include <verbena/operation/read.hpp>
#include <verbena/operation/receive.hpp>
#include <verbena/operation/send.hpp>
#include <verbena/operation/send_with_immediate.hpp>
#include <verbena/operation/write.hpp>
#include <verbena/operation/write_with_immediate.hpp>
#include <verbena/policy/errors/returning.hpp>
#include <verbena/policy/posting/builder.hpp>
#include <verbena/policy/signaling/one_in.hpp>
#include <verbena/policy/signaling/per_operation.hpp>
#include <verbena/policy/transport/uc.hpp>

#include "catch.hpp"
#include "fabricated/workbench.hpp"
#include "mentions.hpp"

namespace vb = verbena;

using fabricated::call;
using fabricated::workbench;
using vb::errc;

namespace {

using bench = workbench<vb::posting::builder>;
using endpoint = vb::endpoint<vb::posting::builder, vb::errors::returning>;

using word_memory = vb::buffer<std::uint64_t, vb::grants_of<vb::sink>>;
using remote_word = vb::remote_region<std::uint64_t, vb::rights::remote_atomic>;

std::string text_of(const fabricated::posted_send& request) {
  return {reinterpret_cast<const char*>(request.inlined.data()), request.inlined.size()};
}

struct host {
  fabricated::device adapter;
  vb::verbs::device opened;
  vb::verbs::protection_domain domain;

  /// Once the adapter says of itself what it shall.
  void up() {
    opened = adapter.open();
    domain = vb::verbs::protection_domain::create(opened).value();
  }
};

/// The operations that a queue pair was made for.
std::uint64_t ops_of(const auto& of) {
  return fabricated::machine::of(of.native_handle()).send_ops;
}

}  // namespace

TEST_CASE("builder: a chain reaches the provider as it was written, in one critical section") {
  bench test{{.inline_bytes = 16}};
  auto words = word_memory::create(test.domain, 2).value();
  const auto peer = fabricated::peer_region().subspan(64);
  const remote_word counter{0x7000'1000, 1, vb::rkey{0x8888}};
  const char text[] = {'a', 'b', 'c'};
  CHECK(test.link.post(
      vb::send(test.memory.first(3)).token(1), vb::send_with_immediate(test.memory.first(4), 5),
      vb::send_with_immediate(6), vb::read(test.memory.first(10), peer.subspan(5)),
      vb::write(test.memory.last(7), peer).fenced(), vb::write_with_immediate(peer, 7).solicited(),
      vb::compare_and_swap(words.first(1), counter, 8, 9),
      vb::fetch_and_add(words.last(1), counter, 10),
      vb::send(vb::pieces{test.memory.first(2), test.memory.last(1)}).inlined(),
      vb::write(vb::unregistered{text}, peer),
      vb::send(vb::pieces{test.memory.first(20), test.memory.last(30)}).inlined()));
  CHECK(test.adapter.count(call::wr_complete) == 1);
  CHECK(test.adapter.count(call::post_send) == 0);
  const auto& sends = test.sends();
  REQUIRE(sends.size() == 11);
  for (std::size_t at = 0; at < sends.size(); ++at) {
    CHECK(test.send_id(at).position() == at);
    CHECK(sends[at].is_signaled());
  }
  CHECK(test.send_id(0).token() == 1);
  const auto lkey = test.memory.native_handle()->lkey;
  CHECK(sends[0].request.opcode == IBV_WR_SEND);
  REQUIRE(sends[0].pieces.size() == 1);
  CHECK(sends[0].pieces[0].addr == reinterpret_cast<std::uintptr_t>(test.memory.data()));
  CHECK(sends[0].pieces[0].length == 3);
  CHECK(sends[0].pieces[0].lkey == lkey);
  CHECK(sends[1].request.opcode == IBV_WR_SEND_WITH_IMM);
  CHECK(sends[1].request.imm_data == vb::swapped_immediate(5));
  CHECK(sends[2].request.imm_data == vb::swapped_immediate(6));
  CHECK(sends[2].pieces.empty());
  CHECK(sends[3].request.opcode == IBV_WR_RDMA_READ);
  CHECK(sends[3].request.wr.rdma.remote_addr == peer.address() + 5);
  CHECK(sends[3].request.wr.rdma.rkey == 0x9999);
  CHECK(sends[4].request.opcode == IBV_WR_RDMA_WRITE);
  CHECK(sends[4].request.send_flags == (IBV_SEND_SIGNALED | IBV_SEND_FENCE));
  CHECK(sends[5].request.opcode == IBV_WR_RDMA_WRITE_WITH_IMM);
  CHECK(sends[5].request.imm_data == vb::swapped_immediate(7));
  CHECK(sends[5].request.wr.rdma.remote_addr == peer.address());
  CHECK(sends[5].request.send_flags == (IBV_SEND_SIGNALED | IBV_SEND_SOLICITED));
  CHECK(sends[6].request.opcode == IBV_WR_ATOMIC_CMP_AND_SWP);
  CHECK(sends[6].request.wr.atomic.compare_add == 8);
  CHECK(sends[6].request.wr.atomic.swap == 9);
  CHECK(sends[6].request.wr.atomic.remote_addr == counter.address());
  CHECK(sends[6].pieces[0].length == 8);
  CHECK(sends[7].request.opcode == IBV_WR_ATOMIC_FETCH_AND_ADD);
  CHECK(sends[7].request.wr.atomic.compare_add == 10);
  CHECK(sends[7].request.wr.atomic.rkey == 0x8888);
  CHECK(sends[8].inlined.size() == 3);
  CHECK(text_of(sends[9]) == "abc");
  CHECK(sends[10].inlined.empty());
  REQUIRE(sends[10].pieces.size() == 2);
  CHECK(sends[10].pieces[0].length == 20);
  CHECK(sends[10].pieces[1].length == 30);
}

TEST_CASE("builder: what the provider refuses of a chain it refuses whole") {
  bench test;
  test.adapter.refuse.add(call::wr_complete, EINVAL);
  const vb::posted refused = test.link.post(test.message(), test.message(), test.message());
  CHECK_FALSE(refused);
  CHECK(refused.count() == 0);
  CHECK(refused.error() == std::errc::invalid_argument);
  CHECK(test.sends().empty());
  CHECK(test.link.state->sends.outstanding() == 0);
  CHECK(test.link.post(test.message()));
  CHECK(test.send_id(0).position() == 0);
}

TEST_CASE("builder: a provider that is fuller than it said is a full queue") {
  // rxe says ENOSPC, others ENOMEM.
  for (const int number : {ENOMEM, -ENOMEM, ENOSPC}) {
    bench test;
    test.behind().sends.limit = 2;
    test.adapter.out_of_room = number;
    CHECK(test.link.post(test.message()));
    const vb::posted full = test.link.post(test.message(), test.message());
    CHECK(full.would_block());
    CHECK(full.count() == 0);
    CHECK(test.sends().size() == 1);
  }
}

TEST_CASE("builder: signaling counts on over chains") {
  workbench<vb::posting::builder, vb::signaling::one_in<4>> test;
  CHECK(test.link.post(test.message(), test.message(), test.message()));
  CHECK(test.link.post(test.message(), test.message()));
  std::vector<bool> signaled;
  for (const auto& each : test.sends()) signaled.push_back(each.is_signaled());
  CHECK(signaled == std::vector<bool>{false, false, false, true, false});
  CHECK(test.link.state->unsignaled == 1);

  workbench<vb::posting::builder, vb::signaling::per_operation> asked;
  CHECK(asked.link.post(asked.message().unsignaled(), asked.message()));
  CHECK_FALSE(asked.sends()[0].is_signaled());
  CHECK(asked.sends()[1].is_signaled());
}

TEST_CASE("builder: a queue pair is made for what its transport carries and the device has") {
  constexpr std::uint64_t uc = IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_SEND_WITH_IMM |
                               IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM;
  host on;
  on.up();
  CHECK(ops_of(endpoint::open(on.domain).value()) ==
        (uc | IBV_QP_EX_WITH_RDMA_READ | IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP |
         IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD));
  using unreliable = vb::endpoint<vb::transport::uc, vb::posting::builder, vb::errors::returning>;
  CHECK(ops_of(unreliable::open(on.domain).value()) == uc);
  CHECK(ops_of(vb::endpoint<vb::errors::returning>::open(on.domain).value()) == 0);

  host without;
  without.adapter.attributes.atomic_cap = IBV_ATOMIC_NONE;
  without.up();
  CHECK(ops_of(endpoint::open(without.domain).value()) == (uc | IBV_QP_EX_WITH_RDMA_READ));
}

TEST_CASE("builder: where there is no ibv_wr_* the endpoint is refused, and named what works") {
  const auto refuses = [](host& on) {
    on.up();
    const auto made = endpoint::open(on.domain);
    REQUIRE_FALSE(made.has_value());
    CHECK(made.error() == errc::not_supported);
    CHECK(made.error() == std::errc::not_supported);
    CHECK(mentions(made.error(), "posting::builder on fabricated0"));
    CHECK(mentions(made.error(), "posting::list"));
    CHECK(vb::endpoint<vb::errors::returning>::open(on.domain).has_value());
  };
  SECTION("iWARP") {
    host on{fabricated::device{"fabricated0", IBV_TRANSPORT_IWARP}, {}, {}};
    refuses(on);
  }
  SECTION("not all operations") {
    host on;
    on.adapter.send_ops &= ~std::uint64_t{IBV_QP_EX_WITH_RDMA_READ};
    refuses(on);
  }
  SECTION("a kernel that does not know the call") {
    host on;
    on.adapter.refuse.add(call::create_qp_ex, ENOSYS);
    refuses(on);
  }
  SECTION("a device without the call") {
    host on;
    on.adapter.table.create_qp_ex = nullptr;
    refuses(on);
  }
  SECTION("an ibv_qp_ex that does not begin with its queue pair") {
    host on;
    on.adapter.table.to_qp_ex = [](ibv_qp*) -> ibv_qp_ex* { return nullptr; };
    refuses(on);
    CHECK(on.adapter.live(fabricated::kind::queue_pair) == 0);
  }
}

TEST_CASE("builder: other failures of making a queue pair stay what they are") {
  host on;
  on.adapter.refuse.add(call::create_qp_ex, ENOMEM);
  on.up();
  const auto made = endpoint::open(on.domain);
  REQUIRE_FALSE(made.has_value());
  CHECK(made.error() == std::errc::not_enough_memory);
}

TEST_CASE("builder: rxe takes one piece, as its provider gets the length of several wrong") {
  host on;
  on.adapter.attributes.vendor_id = 0xff'ffff;
  on.up();
  const auto memory = fabricated::memory(on.domain);
  auto here = endpoint::open(on.domain).value();
  CHECK(here.granted().max_send_sge == 1);
  CHECK(here.granted().max_recv_sge >= 2);
  const vb::pieces both{memory.first(3), memory.last(200)};
  CHECK(here.post(vb::receive(both)));
  auto there = vb::endpoint<vb::errors::returning>::open(on.domain).value();
  CHECK(there.granted().max_send_sge >= 2);
  auto link = std::move(here).connect(there.describe().value()).value();
  const auto peer = fabricated::peer_region();
  CHECK(link.post(vb::send(both)).error() == errc::too_many_pieces);
  CHECK(link.post(vb::write(both, peer)).error() == errc::too_many_pieces);
  CHECK(link.post(vb::read(both, peer)).error() == errc::too_many_pieces);
  CHECK(link.post(vb::send(memory.first(3)), vb::read(memory.first(3), peer)));
}

TEST_CASE("builder: a wait retires unsignaled requests with a marker") {
  host on;
  on.up();
  const auto memory = fabricated::memory(on.domain);
  using link_endpoint =
      vb::endpoint<vb::posting::builder, vb::signaling::one_in<8>, vb::errors::returning>;
  auto here = link_endpoint::open(on.domain).value();
  auto there = link_endpoint::open(on.domain).value();
  auto link = std::move(here).connect(there.describe().value()).value();
  CHECK(link.post(vb::send(memory.first(3))));
  CHECK_FALSE(link.wait(std::chrono::milliseconds{1}).has_value());
  const auto& sends = fabricated::machine::of(link.native_handle()).sends.posted;
  REQUIRE(sends.size() == 2);
  CHECK(sends[1].is_signaled());
  CHECK(on.adapter.count(call::post_send) == 1);
  on.adapter.complete_sends(link.native_handle());
  CHECK(link.wait(std::chrono::milliseconds{100}).has_value());
}

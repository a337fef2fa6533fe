// SPDX-License-Identifier: BSL-1.0
#include <cstdint>
#include <optional>
#include <vector>

#include <verbena/connection/post_on.hpp>
#include <verbena/operation/receive.hpp>
#include <verbena/operation/send_with_immediate.hpp>
#include <verbena/operation/write_with_immediate.hpp>
#include <verbena/policy/accounting/unchecked.hpp>

#include "catch.hpp"
#include "fabricated/workbench.hpp"
#include "mentions.hpp"

namespace vb = verbena;

using fabricated::call;
using fabricated::workbench;
using vb::errc;

TEST_CASE("FC-30 an immediate goes out in network order, with data and without") {
  workbench<> test;
  const fabricated::anywhere peer = fabricated::peer_region();
  CHECK(test.link.post(vb::send_with_immediate(test.memory.first(5), 0x89AB'CDEF).token(1),
                       vb::send_with_immediate(2).token(2),
                       vb::write_with_immediate(test.memory.first(6), peer, 3).token(3),
                       vb::write_with_immediate(peer.subspan(64), 0xFFFF'FFFE)));
  REQUIRE(test.sends().size() == 4);
  const auto& sends = test.sends();
  CHECK(sends[0].request.opcode == IBV_WR_SEND_WITH_IMM);
  CHECK(sends[0].request.imm_data == htonl(0x89AB'CDEF));
  REQUIRE(sends[0].pieces.size() == 1);
  CHECK(sends[0].pieces[0].length == 5);
  CHECK(sends[1].request.opcode == IBV_WR_SEND_WITH_IMM);
  CHECK(sends[1].request.imm_data == htonl(2));
  CHECK(sends[1].pieces.empty());
  CHECK(sends[2].request.opcode == IBV_WR_RDMA_WRITE_WITH_IMM);
  CHECK(sends[2].request.imm_data == htonl(3));
  CHECK(sends[2].request.wr.rdma.remote_addr == peer.address());
  CHECK(sends[2].request.wr.rdma.rkey == 0x9999);
  CHECK(sends[2].pieces[0].length == 6);
  CHECK(sends[3].request.opcode == IBV_WR_RDMA_WRITE_WITH_IMM);
  CHECK(sends[3].request.imm_data == htonl(0xFFFF'FFFE));
  CHECK(sends[3].request.wr.rdma.remote_addr == peer.address() + 64);
  CHECK(sends[3].pieces.empty());
  CHECK(test.send_id(0).what() == vb::operation::send_with_immediate);
  CHECK(test.send_id(3).what() == vb::operation::write_with_immediate);
}

TEST_CASE("FC-30 an immediate comes in host order, and is absent unless it was sent") {
  workbench<> test;
  CHECK(test.link.post(vb::receive(test.memory), vb::receive(), vb::receive(test.memory)));
  CHECK(test.receives()[1].pieces.empty());
  test.adapter.complete_receive(test.link.native(), 5, 0x89AB'CDEF);
  test.adapter.complete_receive(test.link.native(), 0, 0U);
  test.adapter.complete_receive(test.link.native(), 7);
  std::vector<std::optional<std::uint32_t>> seen;
  std::vector<std::size_t> sizes;
  CHECK(test.link.queue->poll(vb::on(
      [&](vb::completed<vb::receive> done) {
        seen.push_back(done.immediate());
        sizes.push_back(done.bytes().size());
        CHECK_FALSE(done.is_write());
        CHECK(done.immediate_or(77) == done.immediate().value_or(77));
      },
      [](const vb::failed&) {})));
  CHECK(seen == std::vector<std::optional<std::uint32_t>>{0x89AB'CDEF, 0U, std::nullopt});
  CHECK(sizes == std::vector<std::size_t>{5, 0, 7});
}

TEST_CASE("a write with immediate leaves the memory of the receive it takes alone") {
  workbench<> test;
  CHECK(test.link.post(vb::receive(test.memory.first(8))));
  ibv_wc written{};
  written.wr_id = test.receives()[0].id;
  written.status = IBV_WC_SUCCESS;
  written.opcode = IBV_WC_RECV_RDMA_WITH_IMM;
  written.wc_flags = IBV_WC_WITH_IMM;
  written.imm_data = htonl(9);
  written.byte_len = 1'000'000;  // what was written, elsewhere
  test.adapter.push(test.link.queue->native(), written);
  unsigned seen = 0;
  CHECK(test.link.queue->poll(vb::on(
      [&](vb::completed<vb::receive> done) {
        ++seen;
        CHECK(done.is_write());
        CHECK(done.bytes().empty());
        CHECK(done.size() == 1'000'000);
        CHECK(done.immediate() == 9U);
      },
      [](const vb::failed&) {})));
  CHECK(seen == 1);
}

TEST_CASE("operations with immediate complete as what they were posted as") {
  workbench<> test;
  CHECK(test.link.post(vb::send_with_immediate(1).token(4),
                       vb::write_with_immediate(fabricated::peer_region(), 2).token(5)));
  test.adapter.complete_sends(test.link.native());
  std::uint32_t sent = 0;
  std::uint32_t written = 0;
  CHECK(test.link.queue->poll(
      vb::on([&](vb::completed<vb::send_with_immediate> done) { sent += done.token(); },
             [&](vb::completed<vb::write_with_immediate> done) { written += done.token(); },
             [](const vb::failed&) {})));
  CHECK(sent == 4);
  CHECK(written == 5);
}

TEST_CASE("FC-41 a device without immediates refuses them before the provider is called") {
  workbench<> test{{.lacking = vb::feature::immediates}};
  const auto sent = test.link.post(vb::send_with_immediate(test.memory.first(5), 1));
  CHECK(sent.error() == errc::not_supported);
  CHECK(test.link.post(vb::write_with_immediate(fabricated::peer_region(), 1)).error() ==
        errc::not_supported);
  CHECK(test.link.post(test.message(), vb::send_with_immediate(1)).error() == errc::not_supported);
  CHECK(test.adapter.count(call::post_send) == 0);
  CHECK(test.link.post(test.message()));
  const std::string said = vb::post_error(*test.link.state, sent).message();
  CHECK(mentions(said, std::string{test.adapter.native.name} + " has no immediate data"));
}

TEST_CASE("FC-41 a device that receives into memory alone refuses receives without") {
  workbench<> test{{.lacking = vb::feature::beyond_iwarp}};
  CHECK(test.link.post(vb::receive()).error() == errc::not_supported);
  CHECK(test.adapter.count(call::post_recv) == 0);
  CHECK(test.link.post(vb::receive(test.memory)));
}

TEST_CASE("FC-23 what goes with an immediate is checked as without") {
  workbench<> test{{.max_message = 64}};
  const auto peer = fabricated::peer_region();
  CHECK(test.link.post(vb::send_with_immediate(test.memory.first(65), 1)).error() ==
        errc::message_too_long);
  CHECK(test.link.post(vb::send_with_immediate(test.memory.first(0), 1)).error() ==
        errc::empty_piece);
  CHECK(test.link.post(vb::write_with_immediate(test.memory.first(8), peer.first(7), 1)).error() ==
        errc::outside_region);
  CHECK(test.link.post(vb::write_with_immediate(test.memory.first(8), peer.first(8), 1)));
}

// SPDX-License-Identifier: BSL-1.0
#include <cerrno>
#include <set>

#include "side.hpp"

using namespace soft_test;

TEST_CASE("soft knobs: limits of the device", "[soft][knobs]") {
  side here{fabric_name() + ",max_qp_wr=4,max_sge=3,max_inline=16,max_reads=2"};
  CHECK(here.device.attributes().max_qp_wr == 4);
  CHECK(here.device.attributes().max_sge == 3);
  CHECK(here.device.attributes().max_qp_rd_atom == 2);
  ibv_cq* const queue = here.calls.create_cq(here.native, 8, nullptr, nullptr, 0);
  const auto makes = [&](ibv_qp_cap cap) {
    ibv_qp_init_attr asked{};
    asked.send_cq = asked.recv_cq = queue;
    asked.qp_type = IBV_QPT_RC;
    asked.cap = cap;
    errno = 0;
    ibv_qp* const made = here.calls.create_qp(here.domain, &asked);
    if (made == nullptr) return errno;
    here.calls.destroy_qp(made);
    return 0;
  };
  CHECK(makes({4, 4, 3, 3, 16}) == 0);
  CHECK(makes({5, 4, 3, 3, 16}) == EINVAL);
  CHECK(makes({4, 5, 3, 3, 16}) == EINVAL);
  CHECK(makes({4, 4, 4, 3, 16}) == EINVAL);
  CHECK(makes({4, 4, 3, 4, 16}) == EINVAL);
  CHECK(makes({4, 4, 3, 3, 17}) == EINVAL);
  here.calls.destroy_cq(queue);
  end_options with;
  with.cap = {4, 4, 3, 3, 16};
  with.reads_answered = 3;
  end one{here, with};
  REQUIRE(one.to_init() == 0);
  CHECK(one.to_rtr(5) == EINVAL);
}

TEST_CASE("soft knobs: the longest message", "[soft][knobs]") {
  linked both{{}, ",max_message=100"};
  CHECK(both.here.device.port(1).value().max_msg_sz == 100);
  REQUIRE(both.one.rdma(IBV_WR_RDMA_WRITE, 1, both.here.piece(0, 100), both.remote(), both.key()) ==
          0);
  CHECK(status_of(both.one.sends, 1) == IBV_WC_SUCCESS);
  REQUIRE(both.one.rdma(IBV_WR_RDMA_WRITE, 2, both.here.piece(0, 101), both.remote(), both.key()) ==
          0);
  CHECK(status_of(both.one.sends, 2) == IBV_WC_LOC_LEN_ERR);
}

TEST_CASE("soft knobs: the MTU", "[soft][knobs]") {
  side here{fabric_name() + ",mtu=2"};
  CHECK(here.device.port(1).value().active_mtu == IBV_MTU_512);
  end one{here};
  REQUIRE(one.to_init() == 0);
  CHECK(one.to_rtr(5, IBV_MTU_1024) == EINVAL);
  CHECK(one.to_rtr(5, IBV_MTU_512) == 0);
  end_options with;
  with.type = IBV_QPT_UD;
  end datagrams{here, with};
  datagrams.connect(0);
  ibv_ah_attr to = datagrams.address();
  ibv_ah* const handle = here.calls.create_ah(here.domain, &to);
  REQUIRE(handle != nullptr);
  REQUIRE(datagrams.send_to(1, handle, datagrams.pair->qp_num, {here.piece(0, 512)}) == 0);
  CHECK(status_of(datagrams.sends, 1) == IBV_WC_SUCCESS);
  REQUIRE(datagrams.send_to(2, handle, datagrams.pair->qp_num, {here.piece(0, 513)}) == 0);
  CHECK(status_of(datagrams.sends, 2) == IBV_WC_LOC_LEN_ERR);
  here.calls.destroy_ah(handle);
}

TEST_CASE("soft knobs: holes in the table of GIDs", "[soft][knobs]") {
  struct {
    int holes;
    std::set<std::uint32_t> left;
  } const cases[] = {{0, {0, 1, 2, 3}}, {5, {1, 3}}, {10, {0, 2}},
                     {12, {0, 1}},      {9, {1, 2}}, {15, {}}};
  for (const auto& each : cases) {
    INFO(each.holes);
    side here{fabric_name() + ",gid_holes=" + std::to_string(each.holes)};
    CHECK(here.device.port(1).value().gid_tbl_len == 4);
    std::set<std::uint32_t> found;
    const auto table = here.device.gids(1).value();
    for (const ibv_gid_entry& gid : table) {
      found.insert(gid.gid_index);
      CHECK(gid.gid_type ==
            (gid.gid_index % 2 == 0 ? int{IBV_GID_TYPE_ROCE_V1} : int{IBV_GID_TYPE_ROCE_V2}));
      CHECK((gid.gid.raw[0] == 0xfe) == (gid.gid_index < 2));
    }
    CHECK(found == each.left);
    for (std::uint8_t index = 0; index < 4; ++index) {
      ibv_gid_entry gid{};
      const bool there = each.left.count(index) != 0;
      CHECK(here.calls.query_gid(here.native, 1, index, &gid) == (there ? 0 : ENODATA));
      end one{here};
      REQUIRE(one.to_init() == 0);
      CHECK(one.to_rtr(5, IBV_MTU_1024, index) == (there ? 0 : EINVAL));
      ibv_ah_attr to = one.address(index);
      ibv_ah* const handle = here.calls.create_ah(here.domain, &to);
      CHECK((handle != nullptr) == there);
      if (handle != nullptr) here.calls.destroy_ah(handle);
    }
  }
}

TEST_CASE("soft knobs: the first half of the GRH", "[soft][knobs]") {
  const bool garbage = GENERATE(true, false);
  side here{fabric_name() + (garbage ? "" : ",undefined_grh=0")};
  end_options with;
  with.type = IBV_QPT_UD;
  end one{here, with};
  one.connect(0);
  ibv_ah_attr to = one.address();
  ibv_ah* const handle = here.calls.create_ah(here.domain, &to);
  here.word(512) = 77;
  REQUIRE(one.receive(1, {here.piece(0, 128)}) == 0);
  REQUIRE(one.send_to(1, handle, one.pair->qp_num, {here.piece(512, 8)}) == 0);
  const auto got = next(one.receives);
  REQUIRE(got.has_value());
  CHECK(got->byte_len == 48);
  CHECK((got->wc_flags & IBV_WC_GRH) != 0);
  CHECK(here.word(40) == 77);
  bool is_zero = true;
  for (std::size_t i = 0; i < 20; ++i) is_zero = is_zero && here.memory[i] == std::byte{0};
  CHECK(is_zero != garbage);
  CHECK(here.memory[20] == std::byte{0x45});  // the IPv4 header
  here.calls.destroy_ah(handle);
}

TEST_CASE("soft knobs: granted is not what was asked for", "[soft][knobs]") {
  end_options with;
  with.cap = {5, 6, 2, 1, 32};
  SECTION("deeper queues") {
    side here{fabric_name() + ",round_up_depths=1"};
    end one{here, with};
    CHECK(one.granted.max_send_wr == 8);
    CHECK(one.granted.max_recv_wr == 8);
    CHECK(one.granted.max_send_sge == 2);
    REQUIRE(one.to_init() == 0);
    for (std::uint64_t id = 0; id < 8; ++id) CHECK(one.receive(id, {}) == 0);
    CHECK(one.receive(8, {}) == ENOMEM);
    ibv_qp_attr is{};
    ibv_qp_init_attr was{};
    REQUIRE(here.calls.query_qp(one.pair, &is, IBV_QP_CAP, &was) == 0);
    CHECK(is.cap.max_send_wr == 8);
    ibv_cq* const queue = here.calls.create_cq(here.native, 33, nullptr, nullptr, 0);
    CHECK(queue->cqe == 64);
    here.calls.destroy_cq(queue);
    ibv_srq_init_attr asked{};
    asked.attr.max_wr = 3;
    asked.attr.max_sge = 1;
    ibv_srq* const shared = here.calls.create_srq(here.domain, &asked);
    REQUIRE(shared != nullptr);
    CHECK(asked.attr.max_wr == 4);
    here.calls.destroy_srq(shared);
  }
  SECTION("more pieces") {
    side here{fabric_name() + ",extra_pieces=2"};
    end one{here, with};
    CHECK(one.granted.max_send_sge == 4);
    CHECK(one.granted.max_recv_sge == 3);
    REQUIRE(one.to_init() == 0);
    CHECK(one.receive(1, std::vector<ibv_sge>(3, here.piece(0, 8))) == 0);
    CHECK(one.receive(1, std::vector<ibv_sge>(4, here.piece(0, 8))) == EINVAL);
  }
  SECTION("no inline data") {
    linked both{with, ",grant_no_inline=1"};
    CHECK(both.one.granted.max_inline_data == 0);
    CHECK(both.one.send(1, {both.here.piece(0, 8)}, IBV_SEND_INLINE) == ENOMEM);
  }
  SECTION("exactly, otherwise") {
    side here{fabric_name()};
    end one{here, with};
    CHECK(one.granted.max_send_wr == 5);
    CHECK(one.granted.max_recv_wr == 6);
    CHECK(one.granted.max_recv_sge == 1);
    CHECK(one.granted.max_inline_data == 32);
  }
}

TEST_CASE("soft knobs: numbers of queue pairs come again", "[soft][knobs]") {
  const bool reuse = GENERATE(true, false);
  side here{fabric_name() + (reuse ? ",reuse_numbers=1" : "")};
  const auto number_of_one = [&] { return end{here}.pair->qp_num; };
  const std::uint32_t first = number_of_one();
  CHECK((number_of_one() == first) == reuse);
  const end one{here};
  const end other{here};
  CHECK(one.pair->qp_num != other.pair->qp_num);
}

// SPDX-License-Identifier: BSL-1.0
#include <arpa/inet.h>

#include <array>
#include <cstring>

#include "fixture/linked.hpp"

using namespace raw;

namespace {

constexpr std::uint64_t everything =
    IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_SEND_WITH_IMM | IBV_QP_EX_WITH_RDMA_WRITE |
    IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM | IBV_QP_EX_WITH_RDMA_READ |
    IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP | IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD;

/// A queue pair posted to by ibv_wr_*, connected to an end.
class built {
 public:
  explicit built(const bed& on) : sends{on}, there{on}, on_{on} {
    ibv_qp_init_attr_ex asked{};
    asked.qp_type = IBV_QPT_RC;
    asked.send_cq = asked.recv_cq = sends.native();
    asked.cap = end_options{}.cap;
    asked.pd = on.domain;
    asked.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
    asked.send_ops_flags = everything;
    errno = 0;
    native = on.calls.create_qp_ex(on.context, &asked);
    error = native == nullptr ? errno : 0;
    if (native == nullptr) return;
    to = on.calls.to_qp_ex(native);
    REQUIRE(to != nullptr);
    const auto go = [&](ibv_qp_attr with, int mask) {
      REQUIRE(on.calls.modify_qp(native, &with, mask) == 0);
    };
    go(there.init_attributes(), there.full_init_mask());
    go(there.rtr_attributes(there.number()), there.full_rtr_mask());
    go(there.rts_attributes(), there.full_rts_mask());
    there.to_init();
    there.to_rtr(native->qp_num);
    there.to_rts();
  }
  ~built() {
    if (native != nullptr) CHECK(on_.calls.destroy_qp(native) == 0);
  }
  built(const built&) = delete;
  built& operator=(const built&) = delete;

  void next(std::uint64_t id, unsigned flags = IBV_SEND_SIGNALED) const {
    to->wr_id = id;
    to->wr_flags = flags;
  }

  queue sends;
  end there;
  ibv_qp* native = nullptr;
  ibv_qp_ex* to = nullptr;
  int error = 0;

 private:
  const bed& on_;
};

}  // namespace

#define VERBENA_BUILT_OR_SKIP(on, pair) \
  built pair{on};                       \
  if (pair.native == nullptr) VERBENA_SKIP(reason(on.name + ": send_ops_flags", pair.error))

TEST_CASE("builder: every operation", "[rc][builder]") {
  VERBENA_BED_OR_SKIP(on);
  VERBENA_BUILT_OR_SKIP(on, pair);
  region mine{on, 4096};
  region theirs{on, 4096};
  mine.fill(1);
  theirs.word(2048) = 5;
  for (std::uint64_t id = 1; id <= 3; ++id)
    pair.there.post(receive_work{id, {theirs.piece(0, 512)}});
  ibv_wr_start(pair.to);
  pair.next(11);
  ibv_wr_send(pair.to);
  ibv_wr_set_sge(pair.to, mine.lkey(), mine.address(), 100);
  pair.next(12);
  ibv_wr_send_imm(pair.to, htonl(7));
  ibv_wr_set_sge(pair.to, mine.lkey(), mine.address(), 100);
  pair.next(13, 0);
  ibv_wr_rdma_write(pair.to, theirs.rkey(), theirs.address(1024));
  ibv_wr_set_sge(pair.to, mine.lkey(), mine.address(7), 100);
  pair.next(14);
  ibv_wr_rdma_write_imm(pair.to, theirs.rkey(), theirs.address(1536), htonl(8));
  ibv_wr_set_sge(pair.to, mine.lkey(), mine.address(9), 100);
  REQUIRE(ibv_wr_complete(pair.to) == 0);
  for (const std::uint64_t id : std::initializer_list<std::uint64_t>{11, 12, 14})
    CHECK(is(pair.sends.take_one(), id));
  const auto got = pair.there.receives().take(3);
  CHECK(got[1].imm_data == htonl(7));
  CHECK(got[2].imm_data == htonl(8));
  CHECK(theirs.same(0, mine, 0, 100));
  CHECK(theirs.same(1024, mine, 7, 100));
  CHECK(theirs.same(1536, mine, 9, 100));

  ibv_wr_start(pair.to);
  pair.next(21);
  ibv_wr_rdma_read(pair.to, theirs.rkey(), theirs.address(1024));
  ibv_wr_set_sge(pair.to, mine.lkey(), mine.address(1024), 100);
  pair.next(22);
  ibv_wr_atomic_fetch_add(pair.to, theirs.rkey(), theirs.address(2048), 3);
  ibv_wr_set_sge(pair.to, mine.lkey(), mine.address(2048), 8);
  pair.next(23);
  ibv_wr_atomic_cmp_swp(pair.to, theirs.rkey(), theirs.address(2048), 8, 9);
  ibv_wr_set_sge(pair.to, mine.lkey(), mine.address(2056), 8);
  REQUIRE(ibv_wr_complete(pair.to) == 0);
  for (const std::uint64_t id : std::initializer_list<std::uint64_t>{21, 22, 23})
    CHECK(is(pair.sends.take_one(), id));
  CHECK(mine.same(1024, theirs, 1024, 100));
  CHECK(mine.word(2048) == 5);
  CHECK(mine.word(2056) == 8);
  CHECK(theirs.word(2048) == 9);
}

TEST_CASE("builder: inline data, in one piece and in several", "[rc][builder][inline]") {
  VERBENA_BED_OR_SKIP(on);
  VERBENA_BUILT_OR_SKIP(on, pair);
  region theirs{on, 4096};
  char source[] = "0123456789";
  pair.there.post(receive_work{1, {theirs.piece(0, 64)}});
  pair.there.post(receive_work{2, {theirs.piece(64, 64)}});
  // The setter says that the data is inline; rxe's provider of rdma-core 44 wants the flag too.
  const unsigned flags = IBV_SEND_SIGNALED | (on.is_rxe() ? unsigned{IBV_SEND_INLINE} : 0U);
  ibv_wr_start(pair.to);
  pair.next(11, flags);
  ibv_wr_send(pair.to);
  ibv_wr_set_inline_data(pair.to, source, 10);
  pair.next(12, flags);
  ibv_wr_send(pair.to);
  const std::array<ibv_data_buf, 2> parts{ibv_data_buf{source + 7, 3}, ibv_data_buf{source, 2}};
  ibv_wr_set_inline_data_list(pair.to, parts.size(), parts.data());
  std::memset(source, '!', sizeof source);
  REQUIRE(ibv_wr_complete(pair.to) == 0);
  pair.sends.take(2);
  const auto got = pair.there.receives().take(2);
  CHECK(got[0].byte_len == 10);
  CHECK(std::memcmp(theirs.data(), "0123456789", 10) == 0);
  if (on.is_rxe() && got[1].byte_len == 0)
    VERBENA_SKIP(on.name + ": the provider counts nothing of an inline list");
  CHECK(got[1].byte_len == 5);
  CHECK(std::memcmp(theirs.data() + 64, "78901", 5) == 0);
}

TEST_CASE("builder: several pieces of unequal length", "[rc][builder][sge]") {
  VERBENA_BED_OR_SKIP(on);
  VERBENA_BUILT_OR_SKIP(on, pair);
  // Its provider of rdma-core 44 multiplies the first length by the number of pieces.
  if (on.is_rxe())
    VERBENA_SKIP(on.name + ": the provider takes all pieces for as long as the first");
  region mine{on, 4096};
  region theirs{on, 4096};
  mine.fill(1);
  pair.there.post(receive_work{1, {theirs.piece()}});
  const std::array<ibv_sge, 3> pieces{mine.piece(0, 3), mine.piece(100, 200), mine.piece(50, 17)};
  ibv_wr_start(pair.to);
  pair.next(11);
  ibv_wr_send(pair.to);
  ibv_wr_set_sge_list(pair.to, pieces.size(), pieces.data());
  REQUIRE(ibv_wr_complete(pair.to) == 0);
  CHECK(is(pair.sends.take_one(), 11));
  const ibv_wc got = pair.there.receives().take_one();
  CHECK(got.byte_len == 220);
  CHECK(theirs.same(0, mine, 0, 3));
  CHECK(theirs.same(3, mine, 100, 200));
  CHECK(theirs.same(203, mine, 50, 17));
}

TEST_CASE("builder: aborted requests leave nothing behind", "[rc][builder]") {
  VERBENA_BED_OR_SKIP(on);
  VERBENA_BUILT_OR_SKIP(on, pair);
  region mine{on, 64};
  region theirs{on, 64};
  mine.fill(1);
  for (int round = 0; round < 40; ++round) {  // more than the queue holds
    ibv_wr_start(pair.to);
    pair.next(1);
    ibv_wr_rdma_write(pair.to, theirs.rkey(), theirs.address());
    ibv_wr_set_sge(pair.to, mine.lkey(), mine.address(), 64);
    ibv_wr_abort(pair.to);
  }
  CHECK(pair.sends.stays_empty());
  CHECK(theirs.zero(0, 64));
  ibv_wr_start(pair.to);
  pair.next(2);
  ibv_wr_rdma_write(pair.to, theirs.rkey(), theirs.address());
  ibv_wr_set_sge(pair.to, mine.lkey(), mine.address(), 64);
  REQUIRE(ibv_wr_complete(pair.to) == 0);
  CHECK(is(pair.sends.take_one(), 2));
  CHECK(theirs.same(0, mine, 0, 64));
}

TEST_CASE("builder: one request too many fails them all", "[rc][builder][posting]") {
  VERBENA_BED_OR_SKIP(on);
  VERBENA_BUILT_OR_SKIP(on, pair);
  region mine{on, 64};
  region theirs{on, 64};
  mine.fill(1);
  ibv_wr_start(pair.to);
  for (std::uint64_t i = 0; i < 100; ++i) {
    pair.next(i);
    ibv_wr_rdma_write(pair.to, theirs.rkey(), theirs.address());
    ibv_wr_set_sge(pair.to, mine.lkey(), mine.address(), 64);
  }
  CHECK(number(ibv_wr_complete(pair.to)) != 0);
  CHECK(pair.sends.stays_empty());
  CHECK(theirs.zero(0, 64));
  ibv_wr_start(pair.to);
  pair.next(200);
  ibv_wr_rdma_write(pair.to, theirs.rkey(), theirs.address());
  ibv_wr_set_sge(pair.to, mine.lkey(), mine.address(), 64);
  REQUIRE(ibv_wr_complete(pair.to) == 0);
  CHECK(is(pair.sends.take_one(), 200));
}

TEST_CASE("builder: ibv_post_send works on the same queue pair", "[rc][builder]") {
  VERBENA_BED_OR_SKIP(on);
  VERBENA_BUILT_OR_SKIP(on, pair);
  region mine{on, 64};
  region theirs{on, 64};
  send_work work{1, IBV_WR_RDMA_WRITE, {mine.piece()}};
  ibv_send_wr* bad = nullptr;
  REQUIRE(ibv_post_send(pair.native, &work.at(theirs), &bad) == 0);
  CHECK(is(pair.sends.take_one(), 1));
  // One made without the flags has no builder.
  if (!on.is_rxe()) {
    CHECK(on.calls.to_qp_ex(pair.there.native()) == nullptr);
  }
}

// SPDX-License-Identifier: BSL-1.0
#include "fixture/linked.hpp"

using namespace raw;

namespace {

end_options uc() {
  end_options chosen;
  chosen.type = IBV_QPT_UC;
  chosen.access = IBV_ACCESS_REMOTE_WRITE;
  return chosen;
}

/// Leaves where the device makes no such queue pair, with its reason.
#define VERBENA_UC_OR_SKIP(on)                                             \
  if ((on).iwarp) {                                                        \
    queue both{on};                                                        \
    ibv_qp_init_attr asked{};                                              \
    asked.qp_type = IBV_QPT_UC;                                            \
    asked.send_cq = asked.recv_cq = both.native();                         \
    asked.cap = {1, 1, 1, 1, 0};                                           \
    errno = 0;                                                             \
    REQUIRE((on).calls.create_qp((on).domain, &asked) == nullptr);         \
    VERBENA_SKIP(reason((on).name + ": creating a UC queue pair", errno)); \
  }

/// Both ends work: a message passes.
void works(linked& pair, region& memory, std::uint64_t id) {
  memory.fill(unsigned(id));
  std::memset(memory.data() + 1024, 0, 64);
  pair.there.post(receive_work{id, {memory.piece(1024, 64)}});
  pair.here.post(send_work{id, IBV_WR_SEND, {memory.piece(0, 33)}});
  CHECK(is(pair.here.sends().take_one(), id));
  const ibv_wc got = pair.there.receives().take_one();
  CHECK(is(got, id));
  CHECK(got.byte_len == 33);
  CHECK(memory.same(1024, memory, 0, 33));
}

}  // namespace

TEST_CASE("UC: send, write, immediates", "[uc]") {
  VERBENA_BED_OR_SKIP(on);
  VERBENA_UC_OR_SKIP(on);
  region out{on, 8192};
  region in{on, 8192};
  linked pair{on, uc()};
  out.fill(1);
  works(pair, out, 1);
  out.fill(1);
  pair.there.post(receive_work{2, {in.piece(0, 4096)}});
  pair.here.post(send_work{2, IBV_WR_SEND_WITH_IMM, {out.piece(0, 3000)}}.with_immediate(5));
  ibv_wc got = pair.there.receives().take_one();
  CHECK(is(got, 2));
  CHECK(got.imm_data == 5);
  CHECK(got.opcode == IBV_WC_RECV);
  CHECK(got.byte_len == 3000);
  CHECK(in.same(0, out, 0, 3000));
  pair.here.post(send_work{3, IBV_WR_RDMA_WRITE, {out.piece(0, 3000)}}.at(in, 4096));
  pair.there.post(receive_work{4, {}});
  pair.here.post(
      send_work{4, IBV_WR_RDMA_WRITE_WITH_IMM, {out.piece(3000, 100)}}.at(in, 7096).with_immediate(
          6));
  got = pair.there.receives().take_one();
  CHECK(is(got, 4));
  CHECK(got.opcode == IBV_WC_RECV_RDMA_WITH_IMM);
  CHECK(got.imm_data == 6);
  CHECK(in.same(4096, out, 0, 3100));
  for (std::uint64_t i = 2; i <= 4; ++i) CHECK(is(pair.here.sends().take_one(), i));
}

TEST_CASE("UC: a message without a receive is lost without a word", "[uc]") {
  VERBENA_BED_OR_SKIP(on);
  VERBENA_UC_OR_SKIP(on);
  region memory{on, 4096};
  linked pair{on, uc()};
  pair.here.post(send_work{1, IBV_WR_SEND, {memory.piece(0, 8)}});
  CHECK(is(pair.here.sends().take_one(), 1));
  std::this_thread::sleep_for(a_while);
  works(pair, memory, 2);
  CHECK(pair.there.receives().stays_empty());
}

TEST_CASE("FC-15 UC: a message longer than the receive", "[uc][length]") {
  VERBENA_BED_OR_SKIP(on);
  VERBENA_UC_OR_SKIP(on);
  region memory{on, 4096};
  linked pair{on, uc()};
  pair.there.post(receive_work{1, {memory.piece(2048, 64)}});
  pair.here.post(send_work{2, IBV_WR_SEND, {memory.piece(0, 65)}});
  CHECK(is(pair.here.sends().take_one(), 2));
  // Dropped by the book, with the receive still there; or the receive is spent on it, with an
  // error. The sender's end lives in any case.
  std::this_thread::sleep_for(a_while);
  CHECK(pair.here.state() == IBV_QPS_RTS);
  const auto got = pair.there.receives().poll();
  if (got.empty()) {
    pair.here.post(send_work{3, IBV_WR_SEND, {memory.piece(0, 64)}});
    const ibv_wc next = pair.there.receives().take_one();
    CHECK(is(next, 1));
    CHECK(next.byte_len == 64);
    CHECK(pair.there.state() == IBV_QPS_RTS);
  } else {
    CHECK(on.is_rxe());
    CHECK(got.front().wr_id == 1);
    CHECK(got.front().status != IBV_WC_SUCCESS);
  }
}

TEST_CASE("UC: a write to a wrong key is lost without a word", "[uc][access]") {
  VERBENA_BED_OR_SKIP(on);
  VERBENA_UC_OR_SKIP(on);
  region memory{on, 4096};
  region theirs{on, 64, IBV_ACCESS_LOCAL_WRITE};
  linked pair{on, uc()};
  pair.here.post(send_work{1, IBV_WR_RDMA_WRITE, {memory.piece(0, 64)}}.at(theirs));
  CHECK(is(pair.here.sends().take_one(), 1));
  std::this_thread::sleep_for(a_while);
  CHECK(theirs.zero(0, 64));
  CHECK(pair.here.state() == IBV_QPS_RTS);
  // rxe fails the end that was written to; the book drops the packet.
  if (on.is_rxe() && pair.there.state() == IBV_QPS_ERR) return;
  works(pair, memory, 2);
}

TEST_CASE("UC: reads and atomics do not exist", "[uc]") {
  VERBENA_BED_OR_SKIP(on);
  VERBENA_UC_OR_SKIP(on);
  region memory{on, 4096};
  // Refused in the post, or taken and failed (rxe and mlx5 do not look).
  for (const ibv_wr_opcode opcode : {IBV_WR_RDMA_READ, IBV_WR_ATOMIC_FETCH_AND_ADD}) {
    INFO("opcode " << opcode);
    linked pair{on, uc()};
    send_work work{1, opcode, {memory.piece(0, 8)}};
    if (opcode == IBV_WR_RDMA_READ)
      work.at(memory, 64);
    else
      work.atomic(memory.address(64), memory.rkey(), 1);
    const auto said = pair.here.try_post(work);
    if (said.accepted()) {
      CHECK(on.is_rxe());
      const ibv_wc done = pair.here.sends().take_one();
      CHECK(done.wr_id == 1);
      CHECK(done.status != IBV_WC_SUCCESS);
    } else {
      CHECK(said.error == EINVAL);
      CHECK(said.refused == &work);
      works(pair, memory, 2);
    }
  }
}

TEST_CASE("UC: an error of the sender leaves its receiving alone", "[uc][sqe]") {
  VERBENA_BED_OR_SKIP(on);
  VERBENA_UC_OR_SKIP(on);
  region memory{on, 4096};
  linked pair{on, uc()};
  ibv_sge wrong = memory.piece(0, 8);
  wrong.lkey ^= 0x5a5a5a5a;
  pair.here.post(send_work{1, IBV_WR_SEND, {wrong}});
  const ibv_wc done = pair.here.sends().take_one();
  CHECK(
      is(done, 1, {IBV_WC_LOC_PROT_ERR, on.is_rxe() ? IBV_WC_LOC_QP_OP_ERR : IBV_WC_LOC_PROT_ERR}));
  // SQE by the book; rxe goes to ERR.
  const ibv_qp_state state = pair.here.state();
  CHECK((state == IBV_QPS_SQE || (on.is_rxe() && state == IBV_QPS_ERR)));
  pair.here.post(send_work{2, IBV_WR_SEND, {memory.piece(0, 8)}, 0});
  CHECK(is(pair.here.sends().take_one(), 2, {IBV_WC_WR_FLUSH_ERR}));
  if (state != IBV_QPS_SQE) return;
  pair.here.post(receive_work{3, {memory.piece(512, 64)}});
  pair.there.post(send_work{4, IBV_WR_SEND, {memory.piece(0, 8)}});
  CHECK(is(pair.here.receives().take_one(), 3));
  pair.there.sends().take_one();
  REQUIRE(pair.here.modify(IBV_QPS_RTS) == 0);
  works(pair, memory, 5);
}

// SPDX-License-Identifier: BSL-1.0
#include <set>
#include <string>
#include <vector>

#include "fixture/linked.hpp"

using namespace raw;

namespace {

/// What iWARP does not have, as a reason to skip.
std::string no_not_ready(const bed& on) {
  return on.name +
         ": iWARP has no receiver-not-ready; a message without a receive ends the connection";
}

}  // namespace

TEST_CASE("FC-14 a receive that comes late is waited for", "[rc][rnr]") {
  VERBENA_BED_OR_SKIP(on);
  if (on.iwarp) VERBENA_SKIP(no_not_ready(on));
  region memory{on, 128};
  linked pair{on};
  memory.fill(1);
  pair.here.post(send_work{1, IBV_WR_SEND, {memory.piece(0, 64)}});
  pair.here.post(send_work{2, IBV_WR_RDMA_WRITE_WITH_IMM, {memory.piece(0, 8)}}.at(memory, 100));
  CHECK(pair.here.sends().stays_empty());
  CHECK(memory.data()[100] != memory.data()[0]);  // nothing overtakes
  pair.there.post(receive_work{3, {memory.piece(64, 64)}});
  CHECK(is(pair.here.sends().take_one(), 1));
  CHECK(is(pair.there.receives().take_one(), 3));
  CHECK(memory.same(64, memory, 0, 36));
  CHECK(pair.here.sends().stays_empty());
  pair.there.post(receive_work{4, {}});
  CHECK(is(pair.here.sends().take_one(), 2));
  CHECK(is(pair.there.receives().take_one(), 4));
  CHECK(memory.same(100, memory, 0, 8));
}

TEST_CASE("FC-14 a receiver alone brings what has waited for its receive", "[rc][rnr]") {
  VERBENA_BED_OR_SKIP(on);
  if (on.iwarp) VERBENA_SKIP(no_not_ready(on));
  region memory{on, 128};
  linked pair{on};
  memory.fill(1);
  pair.here.post(send_work{1, IBV_WR_SEND, {memory.piece(0, 64)}});
  CHECK(pair.there.receives().stays_empty());
  pair.there.post(receive_work{2, {memory.piece(64, 64)}});
  CHECK(is(pair.there.receives().take_one(), 2));  // nobody has polled for the sender
  CHECK(memory.same(64, memory, 0, 64));
  CHECK(is(pair.here.sends().take_one(), 1));
}

TEST_CASE("FC-14 retries for a receive run out", "[rc][rnr]") {
  VERBENA_BED_OR_SKIP(on);
  if (on.iwarp) VERBENA_SKIP(no_not_ready(on));
  region memory{on, 64};
  for (const std::uint8_t retries : {std::uint8_t{0}, std::uint8_t{2}}) {
    for (const ibv_wr_opcode opcode : {IBV_WR_SEND, IBV_WR_RDMA_WRITE_WITH_IMM}) {
      INFO("retries " << int{retries} << ", opcode " << opcode);
      end_options chosen;
      chosen.not_ready_retries = retries;
      chosen.not_ready_timer = 20;  // 10.24 ms
      linked pair{on, chosen};
      const auto begun = clock::now();
      pair.here.post(send_work{1, opcode, {memory.piece(0, 8)}}.at(memory));
      CHECK(is(pair.here.sends().take_one(), 1, {IBV_WC_RNR_RETRY_EXC_ERR}));
      CHECK(clock::now() - begun >= retries * std::chrono::microseconds{10'000});
      CHECK(pair.here.reaches(IBV_QPS_ERR));
      // The peer has noticed nothing.
      CHECK(pair.there.state() == IBV_QPS_RTS);
    }
  }
}

TEST_CASE("failures: nobody answers", "[rc][retry]") {
  VERBENA_BED_OR_SKIP(on);
  if (on.iwarp) VERBENA_SKIP(on.name + ": the connection of iWARP ends with its peer");
  region memory{on, 64};
  for (const bool destroyed : {false, true}) {
    INFO("destroyed " << destroyed);
    end_options chosen;
    chosen.retries = 1;
    chosen.timeout = 12;  // 17 ms
    linked pair{on, chosen};
    if (destroyed)
      pair.there.destroy();
    else
      REQUIRE(pair.there.modify(IBV_QPS_RESET) == 0);
    const auto begun = clock::now();
    pair.here.post(send_work{1, IBV_WR_RDMA_WRITE, {memory.piece(0, 8)}}.at(memory, 8));
    pair.here.post(send_work{2, IBV_WR_SEND, {memory.piece(0, 8)}, 0});
    const auto done = pair.here.sends().take(2);
    CHECK(is(done[0], 1, {IBV_WC_RETRY_EXC_ERR}));
    CHECK(is(done[1], 2, {IBV_WC_WR_FLUSH_ERR}));
    // One time-out at least for each try: 4.096 us x 2^12.
    CHECK(clock::now() - begun >= std::chrono::milliseconds{16});
    CHECK(pair.here.reaches(IBV_QPS_ERR));
    CHECK(memory.zero(0, 64));
  }
}

TEST_CASE("failures: a peer in ERR does not answer either", "[rc][retry]") {
  VERBENA_BED_OR_SKIP(on);
  if (on.iwarp) VERBENA_SKIP(on.name + ": the connection of iWARP ends with its peer");
  region memory{on, 64};
  end_options chosen;
  chosen.retries = 1;
  chosen.timeout = 12;  // 17 ms
  linked pair{on, chosen};
  REQUIRE(pair.there.modify(IBV_QPS_ERR) == 0);
  pair.here.post(send_work{1, IBV_WR_RDMA_WRITE, {memory.piece(0, 8)}}.at(memory, 8));
  CHECK(is(pair.here.sends().take_one(), 1, {IBV_WC_RETRY_EXC_ERR}));
}

TEST_CASE("failures: the peer of an iWARP connection is gone", "[rc][retry]") {
  VERBENA_BED_OR_SKIP(on);
  if (!on.iwarp) VERBENA_SKIP(on.name + " is no iWARP device");
  region memory{on, 64, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE};
  linked pair{on};
  pair.here.post(receive_work{3, {memory.piece()}});
  pair.there.destroy();
  CHECK(is(pair.here.receives().take_one(), 3, {IBV_WC_WR_FLUSH_ERR}));
}

TEST_CASE("FC-16 everything outstanding is flushed and nothing twice", "[rc][flush]") {
  VERBENA_BED_OR_SKIP(on);
  region memory{on, 4096, IBV_ACCESS_LOCAL_WRITE};
  linked pair{on};
  for (std::uint64_t i = 0; i < 16; ++i)
    pair.here.post(receive_work{i, {memory.piece(64 * i, 64)}});
  std::uint64_t sends = 0;
  if (!on.iwarp) {  // there they would be carried out, and end the connection
    for (; sends < 8; ++sends) {
      pair.here.post(send_work{100 + sends,
                               IBV_WR_SEND,
                               {memory.piece(0, 8)},
                               sends % 2 == 0 ? unsigned{IBV_SEND_SIGNALED} : 0U});
    }
  }
  REQUIRE(pair.here.modify(IBV_QPS_ERR) == 0);
  std::set<std::uint64_t> seen;
  for (const ibv_wc& each : pair.here.receives().take(16)) {
    CHECK(is(each, each.wr_id, {IBV_WC_WR_FLUSH_ERR}));
    CHECK(seen.insert(each.wr_id).second);
    CHECK(each.qp_num == pair.here.number());
  }
  CHECK(*seen.begin() == 0);
  CHECK(*seen.rbegin() == 15);
  // Unsignaled ones too; the first may have met RNR before.
  std::uint64_t next = 100;
  for (const ibv_wc& each : pair.here.sends().take(sends)) {
    CHECK(is(each, next, {IBV_WC_WR_FLUSH_ERR}));
    ++next;
  }
  CHECK(pair.here.receives().stays_empty());
  CHECK(pair.here.sends().stays_empty());
}

TEST_CASE("failures: after the first error the rest is flushed", "[rc][flush]") {
  VERBENA_BED_OR_SKIP(on);
  if (on.iwarp) VERBENA_SKIP(on.name + ": a write that is refused completes with success there");
  region memory{on, 4096};
  linked pair{on};
  pair.here.post(receive_work{50, {memory.piece(0, 8)}});
  pair.there.post(receive_work{60, {memory.piece(0, 8)}});
  pair.here.post(send_work{1, IBV_WR_RDMA_WRITE, {memory.piece(0, 8)}, 0}.at(memory, 64));
  pair.here.post(send_work{2, IBV_WR_RDMA_WRITE, {memory.piece(0, 8)}, 0}.at(0x1000, 0x77777));
  pair.here.post(send_work{3, IBV_WR_RDMA_WRITE, {memory.piece(0, 8)}, 0}.at(memory, 128));
  pair.here.post(send_work{4, IBV_WR_SEND, {memory.piece(0, 8)}});
  const auto done = pair.here.sends().take(3);
  CHECK(is(done[0], 2, {IBV_WC_REM_ACCESS_ERR}));
  CHECK(is(done[1], 3, {IBV_WC_WR_FLUSH_ERR}));
  CHECK(is(done[2], 4, {IBV_WC_WR_FLUSH_ERR}));
  CHECK(pair.here.sends().stays_empty());
  CHECK(pair.here.reaches(IBV_QPS_ERR));
  CHECK(is(pair.here.receives().take_one(), 50, {IBV_WC_WR_FLUSH_ERR}));
  // The responder fails too, and with it what it has posted.
  CHECK(is(pair.there.receives().take_one(), 60, {IBV_WC_WR_FLUSH_ERR}));
  CHECK(pair.there.reaches(IBV_QPS_ERR));
}

TEST_CASE("FC-15 a message longer than the receive", "[rc][length]") {
  VERBENA_BED_OR_SKIP(on);
  for (const std::size_t length : {std::size_t{65}, std::size_t{5000}}) {
    INFO("length " << length);
    region out{on, 8192, IBV_ACCESS_LOCAL_WRITE};
    region in{on, 8192, IBV_ACCESS_LOCAL_WRITE};
    out.fill(1);
    linked pair{on};
    pair.there.post(receive_work{1, {in.piece(0, 40), in.piece(100, 24)}});
    pair.there.post(receive_work{2, {in.piece(200, 64)}});
    pair.here.post(send_work{3, IBV_WR_SEND, {out.piece(0, length)}});
    const ibv_wc got = pair.there.receives().take_one();
    // Adapters: LOC_LEN, and REM_INV_REQ at the sender. rxe: REM_INV_REQ on both sides in some
    // versions, LOC_QP_OP here and REM_OP there in others. siw: LOC_LEN or a flush.
    CHECK(is(got, 1,
             {IBV_WC_LOC_LEN_ERR, on.is_rxe() ? IBV_WC_REM_INV_REQ_ERR : IBV_WC_LOC_LEN_ERR,
              on.iwarp ? IBV_WC_WR_FLUSH_ERR : IBV_WC_LOC_LEN_ERR,
              on.is_rxe() ? IBV_WC_LOC_QP_OP_ERR : IBV_WC_LOC_LEN_ERR}));
    const ibv_wc sent = pair.here.sends().take_one();
    // On iWARP the sender may have been done before.
    if (on.iwarp)
      CHECK(sent.wr_id == 3);
    else
      CHECK(is(sent, 3,
               {IBV_WC_REM_INV_REQ_ERR, on.is_rxe() ? IBV_WC_REM_OP_ERR : IBV_WC_REM_INV_REQ_ERR}));
    CHECK(is(pair.there.receives().take_one(), 2, {IBV_WC_WR_FLUSH_ERR}));
    if (on.iwarp) continue;
    CHECK(pair.here.reaches(IBV_QPS_ERR));
    CHECK(pair.there.reaches(IBV_QPS_ERR));
    CHECK(in.zero(200, 64));
  }
}

TEST_CASE("FC-07 a failed completion tells wr_id, status and queue pair", "[rc][flush]") {
  VERBENA_BED_OR_SKIP(on);
  region memory{on, 64, IBV_ACCESS_LOCAL_WRITE};
  queue shared{on};
  end_options chosen;
  chosen.send_queue = shared.native();
  chosen.receive_queue = shared.native();
  linked pair{on, chosen, {}};
  pair.here.post(receive_work{0xfedc'ba98'7654'3210, {memory.piece()}});
  REQUIRE(pair.here.modify(IBV_QPS_ERR) == 0);
  const ibv_wc got = shared.take_one();
  CHECK(is(got, 0xfedc'ba98'7654'3210, {IBV_WC_WR_FLUSH_ERR}));
  CHECK(got.qp_num == pair.here.number());
}

TEST_CASE("FC-16 destroying with requests outstanding", "[rc][teardown]") {
  VERBENA_BED_OR_SKIP(on);
  region memory{on, 4096, IBV_ACCESS_LOCAL_WRITE};
  for (int round = 0; round < 3; ++round) {
    linked pair{on};
    for (std::uint64_t i = 0; i < 16; ++i) pair.here.post(receive_work{i, {memory.piece()}});
    if (!on.iwarp) pair.here.post(send_work{20, IBV_WR_SEND, {memory.piece()}});
    // In ~linked, without having been polled.
  }
}

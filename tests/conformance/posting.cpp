// SPDX-License-Identifier: BSL-1.0
#include <memory>
#include <vector>

#include "fixture/linked.hpp"

using namespace raw;

TEST_CASE("posting: requests before the queue pair takes them", "[rc][posting]") {
  VERBENA_BED_OR_SKIP(on);
  region memory{on, 64, IBV_ACCESS_LOCAL_WRITE};
  end one{on};
  // Receives are taken from INIT on, sends from RTS on. rxe and siw do not name the request; and
  // rxe's provider has put a send into its queue by the time the kernel refuses it, so it may be
  // carried out later all the same.
  const auto refused = [&](auto&& work) {
    const auto said = one.try_post(work);
    INFO(std::strerror(said.error));
    CHECK_FALSE(said.accepted());
    if (on.is_soft()) CHECK(said.refused == &work);
    CHECK((said.error == EINVAL || on.iwarp));  // siw's provider returns -1 of its system call
  };
  const auto a_send = [&](std::uint64_t id) {
    return send_work{id, IBV_WR_SEND, {memory.piece()}};
  };
  refused(a_send(10));
  if (on.iwarp) return;
  refused(receive_work{1, {memory.piece()}});
  one.to_init();
  refused(a_send(11));
  for (std::uint64_t id = 2; id < 6; ++id) one.post(receive_work{id, {memory.piece()}});
  one.to_rtr(one.number());
  refused(a_send(12));
  one.to_rts();
  one.post(a_send(13));
  ibv_wc done{};
  do {
    done = one.sends().take_one();
    CHECK(done.status == IBV_WC_SUCCESS);
    CHECK((done.wr_id == 13 || on.is_rxe()));
  } while (done.wr_id < 13);
  CHECK(is(one.receives().take_one(), 2));
}

TEST_CASE("FC-13 receives posted in INIT are there for the first message", "[rc][posting]") {
  VERBENA_BED_OR_SKIP(on);
  region out{on, 64, IBV_ACCESS_LOCAL_WRITE};
  region in{on, 64, IBV_ACCESS_LOCAL_WRITE};
  end_options impatient;
  impatient.not_ready_retries = 0;
  if (on.iwarp) VERBENA_SKIP(on.name + ": in INIT only between the steps of RDMA CM");
  end here{on, impatient};
  end there{on, impatient};
  there.to_init();
  there.post(receive_work{1, {in.piece()}});
  here.to_init();
  here.to_rtr(there.number());
  there.to_rtr(here.number());
  here.to_rts();
  here.post(send_work{2, IBV_WR_SEND, {out.piece()}});
  CHECK(is(here.sends().take_one(), 2));
  CHECK(is(there.receives().take_one(), 1));
}

TEST_CASE("FC-03 a full send queue", "[rc][posting]") {
  VERBENA_BED_OR_SKIP(on);
  region out{on, 64, IBV_ACCESS_LOCAL_WRITE};
  region in{on, 4096, IBV_ACCESS_LOCAL_WRITE};
  queue wide{on, 600};
  queue narrow{on, 600};
  end_options chosen;
  chosen.send_queue = wide.native();
  linked pair{on, chosen, {}};
  // No receive yet: what is posted stays, unless the peer is iWARP, where it waits in a socket.
  const std::uint32_t depth = pair.here.granted().max_send_wr;
  std::uint64_t accepted = 0;
  answer<ibv_send_wr> said;
  while (accepted <= 2 * depth) {
    send_work next{accepted, IBV_WR_SEND, {out.piece(0, 8)}};
    said = pair.here.try_post(next);
    if (!said.accepted()) {
      CHECK(said.refused == &next);
      break;
    }
    ++accepted;
  }
  INFO("granted " << depth << ", accepted " << accepted << ": " << std::strerror(said.error));
  if (on.iwarp)
    VERBENA_SKIP(on.name + " frees a place when its socket has taken the message: " +
                 std::to_string(accepted) + " accepted by a queue of " + std::to_string(depth));
  // Providers round up what they allocate.
  CHECK(accepted >= depth);
  CHECK(accepted <= 2 * depth);
  CHECK(said.error == ENOMEM);
  // Polled completions make room, and nothing was lost.
  for (std::uint64_t i = 0; i < accepted; ++i) {
    pair.there.post(receive_work{i, {in.piece()}});
    CHECK(is(wide.take_one(), i));
    CHECK(is(pair.there.receives().take_one(), i));
  }
  pair.there.post(receive_work{99, {in.piece()}});
  pair.here.post(send_work{99, IBV_WR_SEND, {out.piece(0, 8)}});
  CHECK(is(wide.take_one(), 99));
}

TEST_CASE("FC-03 a full receive queue", "[rc][posting]") {
  VERBENA_BED_OR_SKIP(on);
  region in{on, 64, IBV_ACCESS_LOCAL_WRITE};
  linked pair{on};
  const std::uint32_t depth = pair.there.granted().max_recv_wr;
  std::uint64_t accepted = 0;
  answer<ibv_recv_wr> said;
  while (accepted <= 2 * depth) {
    receive_work next{accepted, {in.piece()}};
    said = pair.there.try_post(next);
    if (!said.accepted()) {
      CHECK(said.refused == &next);
      break;
    }
    ++accepted;
  }
  INFO("granted " << depth << ", accepted " << accepted << ": " << std::strerror(said.error));
  CHECK(accepted >= depth);
  CHECK(accepted <= 2 * depth);
  CHECK(said.error == ENOMEM);
}

TEST_CASE("FC-03 too many pieces", "[rc][posting]") {
  VERBENA_BED_OR_SKIP(on);
  region memory{on, 4096, IBV_ACCESS_LOCAL_WRITE};
  linked pair{on};
  // siw holds every queue pair to the maximum of the device, and ends the connection that exceeds
  // it: there the provider's check is all there is to look at.
  const auto one_more = [&](std::uint32_t granted) {
    return on.iwarp ? std::size_t(on.device.max_sge) + 1 : std::size_t{granted} + 1;
  };
  std::vector<ibv_sge> pieces(one_more(pair.here.granted().max_send_sge), memory.piece(0, 1));
  send_work too_many{1, IBV_WR_SEND, pieces};
  const auto sent = pair.here.try_post(too_many);
  CHECK_FALSE(sent.accepted());
  CHECK(sent.refused == &too_many);
  CHECK((sent.error == EINVAL || sent.error == ENOMEM || (on.iwarp && sent.error == 0)));

  pieces.assign(one_more(pair.there.granted().max_recv_sge), memory.piece(0, 1));
  receive_work too_many_receives{2, pieces};
  const auto received = pair.there.try_post(too_many_receives);
  CHECK_FALSE(received.accepted());
  CHECK(received.refused == &too_many_receives);
  CHECK(
      (received.error == EINVAL || received.error == ENOMEM || (on.iwarp && received.error == 0)));

  // Neither broke anything.
  pair.there.post(receive_work{3, {memory.piece(64, 64)}});
  pair.here.post(send_work{4, IBV_WR_SEND, {memory.piece(0, 8)}});
  CHECK(is(pair.here.sends().take_one(), 4));
  CHECK(is(pair.there.receives().take_one(), 3));
}

TEST_CASE("FC-03 too much inline", "[rc][posting]") {
  VERBENA_BED_OR_SKIP(on);
  region memory{on, 8192, IBV_ACCESS_LOCAL_WRITE};
  linked pair{on};
  const std::size_t most = pair.here.granted().max_inline_data;
  if (on.iwarp)
    VERBENA_SKIP(on.name + ": the provider copies any length into its queue, over what follows");
  send_work too_long{1,
                     IBV_WR_SEND,
                     {memory.piece(0, 1), memory.piece(0, most)},
                     IBV_SEND_SIGNALED | IBV_SEND_INLINE};
  const auto said = pair.here.try_post(too_long);
  CHECK_FALSE(said.accepted());
  CHECK(said.refused == &too_long);
  CHECK((said.error == EINVAL || said.error == ENOMEM));  // rxe; mlx5 and the software device
  pair.there.post(receive_work{2, {memory.piece(4096, 4096)}});
  pair.here.post(send_work{3,
                           IBV_WR_SEND,
                           {memory.piece(0, pair.here.granted().max_inline_data)},
                           IBV_SEND_SIGNALED | IBV_SEND_INLINE});
  CHECK(is(pair.there.receives().take_one(), 2));
  CHECK(is(pair.here.sends().take_one(), 3));
}

TEST_CASE("FC-02 a chain that is accepted in part", "[rc][posting]") {
  VERBENA_BED_OR_SKIP(on);
  region memory{on, 4096, IBV_ACCESS_LOCAL_WRITE};
  linked pair{on};
  for (std::uint64_t i = 0; i < 4; ++i)
    pair.there.post(receive_work{i, {memory.piece(64 * i, 64)}});
  // More than siw's maximum too, which counts instead of what is granted.
  const std::vector<ibv_sge> too_many(
      std::max(pair.here.granted().max_send_sge, unsigned(on.device.max_sge)) + 1,
      memory.piece(0, 1));
  send_work last{13, IBV_WR_SEND, {memory.piece(0, 13)}};
  send_work invalid{12, IBV_WR_SEND, too_many};
  send_work second{11, IBV_WR_SEND, {memory.piece(0, 11)}};
  send_work first{10, IBV_WR_SEND, {memory.piece(0, 10)}};
  invalid.then(last);
  second.then(invalid);
  const auto said = pair.here.try_post(first.then(second));
  CHECK_FALSE(said.accepted());
  CHECK(said.refused == &invalid);
  const auto done = pair.here.sends().take(2);
  CHECK(is(done[0], 10));
  CHECK(is(done[1], 11));
  const auto got = pair.there.receives().take(2);
  CHECK(is(got[0], 0));
  CHECK(got[0].byte_len == 10);
  CHECK(got[1].byte_len == 11);
  CHECK(pair.there.receives().stays_empty());
  CHECK(pair.here.sends().stays_empty());

  std::vector<std::unique_ptr<receive_work>> receives;
  const std::vector<ibv_sge> too_many_receives(
      std::max(pair.there.granted().max_recv_sge, unsigned(on.device.max_sge)) + 1,
      memory.piece(0, 1));
  receive_work bad_receive{21, too_many_receives};
  receive_work good_receive{20, {memory.piece()}};
  const auto told = pair.there.try_post(good_receive.then(bad_receive));
  CHECK_FALSE(told.accepted());
  CHECK(told.refused == &bad_receive);
}

TEST_CASE("posting: a chain is one order", "[rc][posting]") {
  VERBENA_BED_OR_SKIP(on);
  region memory{on, 4096, all_rights & ~(on.iwarp ? IBV_ACCESS_REMOTE_ATOMIC : 0)};
  linked pair{on};
  memory.fill(1);
  receive_work second_receive{2, {memory.piece(1024, 64)}};
  receive_work first_receive{1, {memory.piece(512, 64)}};
  pair.there.post(first_receive.then(second_receive));
  send_work fourth{14, IBV_WR_SEND, {memory.piece(0, 32)}};
  send_work third{13, IBV_WR_RDMA_READ, {memory.piece(3072, 64)}};
  third.at(memory, 0).then(fourth);
  send_work second{12, IBV_WR_RDMA_WRITE, {memory.piece(0, 64)}};
  second.at(memory, 2048).then(third);
  send_work first{11, IBV_WR_SEND, {memory.piece(0, 16)}};
  pair.here.post(first.then(second));
  auto done = pair.here.sends().take(4);
  // siw completes a send before the read that was posted ahead of it: no order without a fence.
  if (on.iwarp && done[2].wr_id == 14) std::swap(done[2], done[3]);
  for (std::uint64_t i = 0; i < 4; ++i) CHECK(is(done[i], 11 + i));
  CHECK(done[1].opcode == IBV_WC_RDMA_WRITE);
  CHECK(done[2].opcode == IBV_WC_RDMA_READ);
  const auto got = pair.there.receives().take(2);
  CHECK(is(got[0], 1));
  CHECK(got[0].byte_len == 16);
  CHECK(is(got[1], 2));
  CHECK(got[1].byte_len == 32);
  CHECK(memory.same(2048, memory, 0, 64));
  CHECK(memory.same(3072, memory, 0, 64));
}

TEST_CASE("posting: after an error requests are taken and flushed", "[rc][posting]") {
  VERBENA_BED_OR_SKIP(on);
  region memory{on, 64, IBV_ACCESS_LOCAL_WRITE};
  linked pair{on};
  REQUIRE(pair.here.modify(IBV_QPS_ERR) == 0);
  // They come flushed; but siw never looks at a send posted then, rxe not at a receive.
  send_work a_send{1, IBV_WR_SEND, {memory.piece()}};
  if (pair.here.try_post(a_send).accepted() && !on.iwarp)
    CHECK(is(pair.here.sends().take_one(), 1, {IBV_WC_WR_FLUSH_ERR}));
  receive_work a_receive{2, {memory.piece()}};
  if (pair.here.try_post(a_receive).accepted() && !on.is_rxe() && !on.iwarp)
    CHECK(is(pair.here.receives().take_one(), 2, {IBV_WC_WR_FLUSH_ERR}));
  if (on.is_soft()) return;
  for (queue* each : {&pair.here.sends(), &pair.here.receives()}) {
    for (const ibv_wc& late : each->poll()) CHECK(late.status == IBV_WC_WR_FLUSH_ERR);
  }
}

TEST_CASE("posting: inline is for sends and writes", "[rc][posting]") {
  VERBENA_BED_OR_SKIP(on);
  region memory{on, 64, all_rights & ~(on.iwarp ? IBV_ACCESS_REMOTE_ATOMIC : 0)};
  linked pair{on};
  memory.fill(3);
  // A call error where the provider looks; rxe does not, and copies nothing.
  send_work read{1, IBV_WR_RDMA_READ, {memory.piece(0, 8)}, IBV_SEND_SIGNALED | IBV_SEND_INLINE};
  if (const auto said = pair.here.try_post(read.at(memory, 32)); said.accepted()) {
    CHECK_FALSE(on.is_soft());
    CHECK(pair.here.sends().take_one().wr_id == 1);
  } else {
    CHECK((said.refused == &read || on.iwarp));
  }
}

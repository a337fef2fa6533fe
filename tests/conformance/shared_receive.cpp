// SPDX-License-Identifier: BSL-1.0
#include "fixture/async_events.hpp"
#include "fixture/linked.hpp"
#include "fixture/shared_receives.hpp"

using namespace raw;

// siw makes shared receive queues, but a queue pair on one brings its provider or its kernel module
// down: asked for before that can happen.
#define VERBENA_SRQ_PAIRS_OR_SKIP(on) \
  if ((on).iwarp) VERBENA_SKIP((on).name + ": a queue pair on a shared receive queue crashes siw")

TEST_CASE("SRQ: several queue pairs take from one queue", "[rc][srq]") {
  VERBENA_BED_OR_SKIP(on);
  VERBENA_SRQ_PAIRS_OR_SKIP(on);
  shared_receives shared{on};
  if (shared.native() == nullptr) VERBENA_SKIP(reason(on.name + ": create_srq", shared.error));
  region memory{on, 4096, IBV_ACCESS_LOCAL_WRITE};
  queue received{on};
  end_options peer;
  peer.shared_receives = shared.native();
  peer.receive_queue = received.native();
  linked first{on, {}, peer};
  linked second{on, {}, peer};
  memory.fill(1);
  for (std::uint64_t i = 0; i < 4; ++i)
    shared.post(
        receive_work{i, {memory.piece(1024 + 64 * i, 20), memory.piece(2048 + 64 * i, 44)}});
  for (std::uint64_t i = 0; i < 4; ++i) {
    linked& from = i % 2 == 0 ? first : second;
    from.here.post(send_work{i, IBV_WR_SEND, {memory.piece(0, 30 + i)}});
    CHECK(is(from.here.sends().take_one(), i));
    const ibv_wc got = received.take_one();
    CHECK(is(got, i));
    CHECK(got.byte_len == 30 + i);
    CHECK(got.qp_num == from.there.number());
    CHECK(memory.same(1024 + 64 * i, memory, 0, 20));
    CHECK(memory.same(2048 + 64 * i, memory, 20, 10 + i));
  }
}

TEST_CASE("SRQ: full, too many pieces, limits", "[srq]") {
  VERBENA_BED_OR_SKIP(on);
  shared_receives shared{on, 8, 2};
  if (shared.native() == nullptr) VERBENA_SKIP(reason(on.name + ": create_srq", shared.error));
  CHECK(shared.granted.max_wr >= 8);
  CHECK(shared.granted.max_sge >= 2);
  region memory{on, 64, IBV_ACCESS_LOCAL_WRITE};
  std::uint64_t accepted = 0;
  answer<ibv_recv_wr> said;
  const std::uint64_t most = 4 * std::uint64_t{shared.granted.max_wr};
  for (; accepted <= most; ++accepted) {
    receive_work next{accepted, {memory.piece()}};
    said = shared.try_post(next);
    if (said.accepted()) continue;
    CHECK(said.refused == &next);
    break;
  }
  INFO("granted " << shared.granted.max_wr << ", accepted " << accepted);
  CHECK(accepted >= shared.granted.max_wr);
  CHECK(accepted <= most);
  CHECK(said.error == ENOMEM);

  shared_receives other{on, 8, 2};
  REQUIRE(other.native() != nullptr);
  const std::vector<ibv_sge> pieces(
      std::max(other.granted.max_sge, on.iwarp ? unsigned(on.device.max_sge) : 0U) + 1,
      memory.piece(0, 1));
  receive_work too_many{1, pieces};
  CHECK_FALSE(other.try_post(too_many).accepted());

  if (on.iwarp) {  // siw's provider has no query
    ibv_srq_attr found{};
    CHECK(number(on.calls.query_srq(other.native(), &found)) == EOPNOTSUPP);
    return;
  }
  CHECK(other.query().max_wr >= 8);
  CHECK(other.query().srq_limit == 0);
  // Above the number of requests there is nothing to warn of.
  CHECK(other.set_limit(other.granted.max_wr + 1000) != 0);
  CHECK(other.set_limit(2) == 0);
  CHECK(other.query().srq_limit == 2);
}

TEST_CASE("SRQ: a message waits for a receive", "[rc][srq][rnr]") {
  VERBENA_BED_OR_SKIP(on);
  if (on.iwarp) VERBENA_SKIP(on.name + ": iWARP has no receiver-not-ready");
  shared_receives shared{on};
  REQUIRE(shared.native() != nullptr);
  region memory{on, 128, IBV_ACCESS_LOCAL_WRITE};
  end_options peer;
  peer.shared_receives = shared.native();
  linked pair{on, {}, peer};
  pair.here.post(send_work{1, IBV_WR_SEND, {memory.piece(0, 8)}});
  CHECK(pair.here.sends().stays_empty());
  shared.post(receive_work{2, {memory.piece(64, 64)}});
  CHECK(is(pair.here.sends().take_one(), 1));
  CHECK(is(pair.there.receives().take_one(), 2));
}

TEST_CASE("FC-16 SRQ: its receives outlive a queue pair that fails", "[rc][srq]") {
  VERBENA_BED_OR_SKIP(on);
  VERBENA_SRQ_PAIRS_OR_SKIP(on);
  shared_receives shared{on};
  if (shared.native() == nullptr) VERBENA_SKIP(reason(on.name + ": create_srq", shared.error));
  region memory{on, 256, IBV_ACCESS_LOCAL_WRITE};
  queue received{on};
  end_options peer;
  peer.shared_receives = shared.native();
  peer.receive_queue = received.native();
  for (std::uint64_t i = 0; i < 3; ++i) shared.post(receive_work{i, {memory.piece(0, 64)}});
  {
    linked lost{on, {}, peer};
    REQUIRE(lost.there.modify(IBV_QPS_ERR) == 0);
    CHECK(received.stays_empty());
  }
  CHECK(received.stays_empty());
  linked pair{on, {}, peer};
  for (std::uint64_t i = 0; i < 3; ++i) {
    pair.here.post(send_work{10 + i, IBV_WR_SEND, {memory.piece(128, 8)}});
    CHECK(is(received.take_one(), i));
  }
}

TEST_CASE("SRQ: queue pairs have no receive queue of their own then", "[rc][srq]") {
  VERBENA_BED_OR_SKIP(on);
  VERBENA_SRQ_PAIRS_OR_SKIP(on);
  shared_receives shared{on};
  if (shared.native() == nullptr) VERBENA_SKIP(reason(on.name + ": create_srq", shared.error));
  region memory{on, 64, IBV_ACCESS_LOCAL_WRITE};
  end_options chosen;
  chosen.shared_receives = shared.native();
  linked pair{on, {}, chosen};
  receive_work work{1, {memory.piece()}};
  CHECK_FALSE(pair.there.try_post(work).accepted());
  CHECK(number(on.calls.destroy_srq(shared.native())) == EBUSY);
}

TEST_CASE("SRQ: falling below the limit tells once", "[rc][srq][async]") {
  VERBENA_BED_OR_SKIP(on);
  VERBENA_SRQ_PAIRS_OR_SKIP(on);
  shared_receives shared{on};
  if (shared.native() == nullptr) VERBENA_SKIP(reason(on.name + ": create_srq", shared.error));
  async_events events{on};
  region memory{on, 128, IBV_ACCESS_LOCAL_WRITE};
  end_options peer;
  peer.shared_receives = shared.native();
  linked pair{on, {}, peer};
  for (std::uint64_t i = 0; i < 6; ++i) shared.post(receive_work{i, {memory.piece(0, 64)}});
  REQUIRE(shared.set_limit(4) == 0);
  const auto send_one = [&](std::uint64_t id) {
    pair.here.post(send_work{id, IBV_WR_SEND, {memory.piece(64, 8)}});
    CHECK(is(pair.here.sends().take_one(), id));
    CHECK(is(pair.there.receives().take_one(), id));
  };
  send_one(0);  // 5 left
  CHECK_FALSE(events.hear(IBV_EVENT_SRQ_LIMIT_REACHED, shared.native(), a_while));
  send_one(1);
  send_one(2);  // 3 left
  CHECK(events.hear(IBV_EVENT_SRQ_LIMIT_REACHED, shared.native()));
  CHECK(shared.query().srq_limit == 0);
  send_one(3);
  CHECK_FALSE(events.hear(IBV_EVENT_SRQ_LIMIT_REACHED, shared.native(), a_while));
}

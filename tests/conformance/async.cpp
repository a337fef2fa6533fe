// SPDX-License-Identifier: BSL-1.0
#include "fixture/async_events.hpp"
#include "fixture/linked.hpp"
#include "fixture/shared_receives.hpp"

using namespace raw;

TEST_CASE("FC-08 async: a completion queue that overruns", "[rc][async][cq]") {
  VERBENA_BED_OR_SKIP(on);
  async_events events{on};
  region memory{on, 128, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE};
  queue small{on, 4};
  const auto holds = std::uint64_t(small.native()->cqe);
  end_options chosen;
  chosen.send_queue = small.native();
  chosen.cap.max_send_wr = 64;
  linked pair{on, chosen, {}};
  // Never polled. One more than it holds is one too many.
  for (std::uint64_t i = 0; i < std::min<std::uint64_t>(holds + 8, 60); ++i)
    pair.here.post(send_work{i, IBV_WR_RDMA_WRITE, {memory.piece(0, 8)}}.at(memory, 64));
  CHECK(events.hear(IBV_EVENT_CQ_ERR, small.native()));
  // What follows differs: a queue that gives an error, or what it had taken before.
  ibv_wc done{};
  const int count = ibv_poll_cq(small.native(), 1, &done);
  CHECK(count <= 1);
}

TEST_CASE("async: the responder hears of a request it refused", "[rc][async]") {
  VERBENA_BED_OR_SKIP(on);
  if (on.iwarp)
    VERBENA_SKIP(on.name + ": what iWARP tells of a refused write is a Terminate message");
  async_events events{on};
  region memory{on, 128, IBV_ACCESS_LOCAL_WRITE};
  linked pair{on};
  pair.here.post(send_work{1, IBV_WR_RDMA_WRITE, {memory.piece(0, 8)}}.at(memory, 64));
  CHECK(is(pair.here.sends().take_one(), 1, {IBV_WC_REM_ACCESS_ERR}));
  // IBA: a local access violation. rxe tells of no more than the failed queue pair, or nothing.
  const bool heard = events.hear(IBV_EVENT_QP_ACCESS_ERR, pair.there.native(),
                                 on.is_rxe() ? std::chrono::nanoseconds{5 * a_while} : soon);
  CHECK((heard || on.is_rxe()));
  CHECK(pair.there.reaches(IBV_QPS_ERR));
}

TEST_CASE("async: the last receive of a queue pair on a shared queue", "[rc][async][srq]") {
  VERBENA_BED_OR_SKIP(on);
  shared_receives shared{on};
  if (shared.native() == nullptr) VERBENA_SKIP(reason(on.name + ": create_srq", shared.error));
  async_events events{on};
  end_options peer;
  peer.shared_receives = shared.native();
  linked pair{on, {}, peer};
  REQUIRE(pair.there.modify(IBV_QPS_ERR) == 0);
  const bool heard = events.hear(IBV_EVENT_QP_LAST_WQE_REACHED, pair.there.native(),
                                 on.is_soft() ? soon : std::chrono::nanoseconds{5 * a_while});
  if (!heard && !on.is_soft()) VERBENA_SKIP(on.name + " does not tell of the last receive");
  CHECK(heard);
}

TEST_CASE("async: nothing to tell", "[async]") {
  VERBENA_BED_OR_SKIP(on);
  async_events events{on};
  ibv_async_event event{};
  errno = 0;
  CHECK(on.calls.get_async_event(on.context, &event) == -1);
  CHECK(errno == EAGAIN);
}

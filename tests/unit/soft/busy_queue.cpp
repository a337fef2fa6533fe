// SPDX-License-Identifier: BSL-1.0
#include "side.hpp"

using namespace soft_test;

TEST_CASE("soft: what waits goes on though no poll finds its queue empty", "[soft]") {
  linked both;
  side& on = both.here;
  end busy{on};  // whose sends complete where those of the waiting one do
  ibv_qp_init_attr asked{};
  asked.send_cq = asked.recv_cq = both.one.sends;
  asked.cap = busy.chosen.cap;
  asked.qp_type = IBV_QPT_RC;
  ibv_qp* const own = std::exchange(busy.pair, on.calls.create_qp(on.domain, &asked));
  REQUIRE(busy.pair != nullptr);
  busy.connect(busy.pair->qp_num);
  const auto write = [&](std::uint64_t id) {
    return busy.rdma(IBV_WR_RDMA_WRITE, id, on.piece(0, 8),
                     reinterpret_cast<std::uintptr_t>(on.memory + 64), on.region->rkey);
  };
  REQUIRE(both.one.send(1, {on.piece(0, 8)}) == 0);
  REQUIRE(write(2) == 0);
  REQUIRE(both.other.receive(3, {both.there.piece(0, 8)}) == 0);
  std::this_thread::sleep_for(1ms);
  bool came = false;
  for (int i = 0; !came && i < 1000; ++i) {
    REQUIRE(write(2) == 0);
    ibv_wc found{};
    REQUIRE(ibv_poll_cq(both.one.sends, 1, &found) == 1);
    came = found.wr_id == 1;
  }
  CHECK(came);
  CHECK(status_of(both.other.receives, 3) == IBV_WC_SUCCESS);
  on.calls.destroy_qp(own);
}

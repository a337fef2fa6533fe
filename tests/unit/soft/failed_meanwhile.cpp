// SPDX-License-Identifier: BSL-1.0
#include <cerrno>
#include <cstddef>
#include <new>

#include "interrupted.hpp"
#include "side.hpp"

using namespace soft_test;

TEST_CASE("soft: a queue pair that its peer fails while it is moved on stays failed", "[soft]") {
  side on{fabric_name()};
  end one{on};
  REQUIRE(one.to_init() == 0);
  REQUIRE(one.to_rtr(one.pair->qp_num) == 0);
  auto& state = verbena::soft::queue_pair::of(one.pair).entry->state;
  interrupting_memory touched{[&] { state = IBV_QPS_ERR; }};
  // The state to go to can be read, and what follows it not.
  constexpr std::size_t first = offsetof(ibv_qp_attr, qkey);
  auto* const with = new (touched.second_page() - first) ibv_qp_attr{};
  with->qp_state = IBV_QPS_RTS;
  touched.arm();
  constexpr int needed = IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC | IBV_QP_RETRY_CNT |
                         IBV_QP_RNR_RETRY | IBV_QP_TIMEOUT;
  CHECK(on.calls.modify_qp(one.pair, with, needed) == EINVAL);
  CHECK(touched.has_been_touched());
  CHECK(state == IBV_QPS_ERR);
}

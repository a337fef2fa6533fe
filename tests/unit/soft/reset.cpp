// SPDX-License-Identifier: BSL-1.0
#include <cerrno>

#include "side.hpp"

using namespace soft_test;

TEST_CASE("soft: completions from before a reset are polled after it", "[soft]") {
  side on{fabric_name()};
  end one{on};
  one.connect(one.pair->qp_num);
  const auto write = [&](std::uint64_t id) {
    return one.rdma(IBV_WR_RDMA_WRITE, id, on.piece(0, 8),
                    reinterpret_cast<std::uintptr_t>(on.memory + 64), on.region->rkey);
  };
  const std::uint64_t depth = one.granted.max_send_wr;
  for (std::uint64_t id = 0; id < depth; ++id) REQUIRE(write(id) == 0);
  REQUIRE(one.modify(IBV_QPS_RESET, 0) == 0);
  one.connect(one.pair->qp_num);
  for (std::uint64_t id = 0; id < depth; ++id) CHECK(status_of(one.sends, id) == IBV_WC_SUCCESS);
  // As many as before, no more and no fewer.
  for (std::uint64_t id = 0; id < depth; ++id) REQUIRE(write(100 + id) == 0);
  CHECK(write(200) == ENOMEM);
  for (std::uint64_t id = 0; id < depth; ++id)
    CHECK(status_of(one.sends, 100 + id) == IBV_WC_SUCCESS);
  CHECK(write(300) == 0);
  CHECK(status_of(one.sends, 300) == IBV_WC_SUCCESS);
}

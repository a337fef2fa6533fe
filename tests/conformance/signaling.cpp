// SPDX-License-Identifier: BSL-1.0
#include <vector>

#include "fixture/linked.hpp"

using namespace raw;

TEST_CASE("signaling: an unsignaled request completes silently", "[rc][signaling]") {
  VERBENA_BED_OR_SKIP(on);
  region memory{on, 4096, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE};
  linked pair{on};
  memory.fill(1);
  for (std::uint64_t i = 0; i < 5; ++i)
    pair.here.post(
        send_work{i, IBV_WR_RDMA_WRITE, {memory.piece(0, 64)}, 0}.at(memory, 1024 + 64 * i));
  CHECK(pair.here.sends().stays_empty());
  pair.here.post(send_work{9, IBV_WR_RDMA_WRITE, {memory.piece(0, 64)}}.at(memory, 2048));
  CHECK(is(pair.here.sends().take_one(), 9));
  CHECK(pair.here.sends().stays_empty());
  for (std::size_t i = 0; i < 5; ++i) CHECK(memory.same(1024 + 64 * i, memory, 0, 64));
}

TEST_CASE("FC-01 one signaled request frees the places of those before it", "[rc][signaling]") {
  VERBENA_BED_OR_SKIP(on);
  region memory{on, 4096, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE};
  for (const std::uint32_t depth : {2U, 3U, 16U}) {
    INFO("depth " << depth);
    end_options chosen;
    chosen.cap.max_send_wr = depth;
    linked pair{on, chosen};
    std::uint64_t posted = 0;
    for (int round = 0; round < 20; ++round) {
      for (std::uint32_t i = 0; i < depth; ++i, ++posted) {
        pair.here.post(send_work{posted,
                                 IBV_WR_RDMA_WRITE,
                                 {memory.piece(0, 8)},
                                 i + 1 == depth ? unsigned{IBV_SEND_SIGNALED} : 0U}
                           .at(memory, 1024));
      }
      CHECK(is(pair.here.sends().take_one(), posted - 1));
    }
    CHECK(pair.here.sends().stays_empty());
  }
}

TEST_CASE("signaling: sq_sig_all makes every request tell", "[rc][signaling]") {
  VERBENA_BED_OR_SKIP(on);
  region memory{on, 4096, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE};
  end_options chosen;
  chosen.signal_all = true;
  linked pair{on, chosen};
  for (std::uint64_t i = 0; i < 4; ++i)
    pair.here.post(send_work{i, IBV_WR_RDMA_WRITE, {memory.piece(0, 8)}, 0}.at(memory, 1024));
  const auto done = pair.here.sends().take(4);
  for (std::uint64_t i = 0; i < 4; ++i) CHECK(is(done[i], i));
}

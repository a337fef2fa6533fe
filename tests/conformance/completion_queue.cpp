// SPDX-License-Identifier: BSL-1.0
#include <array>
#include <map>
#include <memory>

#include "fixture/linked.hpp"

using namespace raw;

TEST_CASE("completion queue: shared by several queue pairs and both directions", "[rc][cq]") {
  VERBENA_BED_OR_SKIP(on);
  queue shared{on, 256};
  region memory{on, 4096, IBV_ACCESS_LOCAL_WRITE};
  end_options chosen;
  chosen.send_queue = shared.native();
  chosen.receive_queue = shared.native();
  std::array<std::unique_ptr<linked>, 3> pairs;
  for (auto& each : pairs) each = std::make_unique<linked>(on, chosen);
  for (std::uint64_t i = 0; i < 3; ++i) {
    for (std::uint64_t n = 0; n < 4; ++n) {
      pairs[i]->there.post(receive_work{1000 + 10 * i + n, {memory.piece(0, 64)}});
      pairs[i]->here.post(send_work{10 * i + n, IBV_WR_SEND, {memory.piece(64, n + 1)}});
    }
  }
  std::map<std::uint32_t, std::uint64_t> next;
  for (std::uint64_t i = 0; i < 3; ++i) {
    next[pairs[i]->here.number()] = 10 * i;
    next[pairs[i]->there.number()] = 1000 + 10 * i;
  }
  for (const ibv_wc& each : shared.take(24)) {
    CHECK(each.status == IBV_WC_SUCCESS);
    REQUIRE(next.count(each.qp_num) == 1);
    CHECK(each.wr_id == next[each.qp_num]++);
    CHECK(((each.opcode & IBV_WC_RECV) != 0) == (each.wr_id >= 1000));
  }
}

TEST_CASE("FC-09 polled in small portions", "[rc][cq]") {
  VERBENA_BED_OR_SKIP(on);
  region memory{on, 4096, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE};
  linked pair{on};
  for (std::uint64_t i = 0; i < 10; ++i)
    pair.here.post(send_work{i, IBV_WR_RDMA_WRITE, {memory.piece(0, 8)}}.at(memory, 1024));
  ibv_wc one{};
  CHECK(ibv_poll_cq(pair.here.sends().native(), 0, &one) == 0);
  std::uint64_t next = 0;
  const auto deadline = clock::now() + soon;
  while (next < 10 && clock::now() < deadline) {
    const auto some = pair.here.sends().poll(3);
    CHECK(some.size() <= 3);
    for (const ibv_wc& each : some) CHECK(is(each, next++));
  }
  CHECK(next == 10);
  CHECK(pair.here.sends().poll().empty());
}

TEST_CASE("completion queue: sizes", "[cq]") {
  VERBENA_BED_OR_SKIP(on);
  // 0 is taken by some and refused by others; both is well, growing is not promised.
  for (const int entries : {1, 2, 3, 100, 1000}) {
    queue made{on, entries};
    CHECK(made.native()->cqe >= entries);
    CHECK(made.poll().empty());
  }
  errno = 0;
  ibv_cq* none = on.calls.create_cq(on.context, -1, nullptr, nullptr, 0);
  CHECK(none == nullptr);
  if (none != nullptr) on.calls.destroy_cq(none);
  if (on.device.max_cqe < 1 << 30) {
    errno = 0;
    none = on.calls.create_cq(on.context, on.device.max_cqe + 1, nullptr, nullptr, 0);
    CHECK(none == nullptr);
    CHECK(errno != 0);
    if (none != nullptr) on.calls.destroy_cq(none);
  }
  errno = 0;
  none = on.calls.create_cq(on.context, 8, nullptr, nullptr, on.context->num_comp_vectors);
  CHECK(none == nullptr);
  CHECK(errno == EINVAL);
  if (none != nullptr) on.calls.destroy_cq(none);
}

TEST_CASE("FC-22 parents are busy while their children live", "[objects]") {
  VERBENA_BED_OR_SKIP(on);
  ibv_pd* const domain = on.calls.alloc_pd(on.context);
  REQUIRE(domain != nullptr);
  ibv_comp_channel* const channel = on.calls.create_comp_channel(on.context);
  REQUIRE(channel != nullptr);
  ibv_cq* const queue = on.calls.create_cq(on.context, 8, nullptr, channel, 0);
  REQUIRE(queue != nullptr);
  {
    end_options chosen;
    chosen.send_queue = chosen.receive_queue = queue;
    chosen.domain = domain;
    end one{on, chosen};
    CHECK(number(on.calls.destroy_cq(queue)) == EBUSY);
    CHECK(number(on.calls.dealloc_pd(domain)) == EBUSY);
    CHECK(one.state() == (on.iwarp ? one.state() : IBV_QPS_RESET));
  }
  {
    region memory{on, 64, IBV_ACCESS_LOCAL_WRITE, domain};
    CHECK(number(on.calls.dealloc_pd(domain)) == EBUSY);
  }
  CHECK(number(on.calls.destroy_comp_channel(channel)) == EBUSY);
  CHECK(on.calls.destroy_cq(queue) == 0);
  CHECK(on.calls.destroy_comp_channel(channel) == 0);
  CHECK(on.calls.dealloc_pd(domain) == 0);
}

// SPDX-License-Identifier: BSL-1.0
// What one thread destroys while another comes upon it.
#include <fcntl.h>
#include <sys/mman.h>

#include <cerrno>
#include <future>

#include "side.hpp"

using namespace soft_test;
namespace soft = verbena::soft;

namespace {

/// Lets a queue pair look as it does to a thread that has read where it is, while another has just
/// destroyed it: its number is gone, and its memory may not be read.
class gone_meanwhile {
 public:
  explicit gone_meanwhile(ibv_qp* of)
      : pair_{soft::queue_pair::of(of)},
        number_{pair_.entry->number.exchange(0)},
        freed_{::mmap(nullptr, sizeof pair_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)} {
    REQUIRE(freed_ != MAP_FAILED);
    place() = static_cast<soft::queue_pair*>(freed_);
  }
  ~gone_meanwhile() {
    place() = &pair_;
    pair_.entry->number = number_;
    ::munmap(freed_, sizeof pair_);
  }
  gone_meanwhile(const gone_meanwhile&) = delete;
  gone_meanwhile& operator=(const gone_meanwhile&) = delete;

 private:
  std::atomic<soft::queue_pair*>& place() const {
    return context::of(pair_.native.qp_base.context).queue_pairs[pair_.index];
  }
  soft::queue_pair& pair_;
  std::uint32_t number_;
  void* freed_;
};

/// Whether what runs in another thread has ended after a while.
template <class Result>
bool has_ended(const std::future<Result>& of) {
  return of.wait_for(20ms) == std::future_status::ready;
}

}  // namespace

TEST_CASE("soft: the peer of a queue pair is destroyed while it is looked up", "[soft]") {
  side on{fabric_name()};
  end one{on};
  end other{on};
  one.connect(other.pair->qp_num);
  other.connect(one.pair->qp_num);
  const gone_meanwhile gone{other.pair};
  CHECK(soft::peer_here(context::of(on.native), soft::queue_pair::of(one.pair)) == nullptr);
}

TEST_CASE("soft: a queue pair is destroyed while its completion is polled", "[soft]") {
  linked both;
  REQUIRE(both.write(1) == 0);
  const gone_meanwhile gone{both.one.pair};
  CHECK(status_of(both.one.sends, 1) == IBV_WC_SUCCESS);
}

TEST_CASE("soft: a completion queue is destroyed while its channel is attended to", "[soft]") {
  side on{fabric_name()};
  ibv_comp_channel* const wakes = on.calls.create_comp_channel(on.native);
  REQUIRE(wakes != nullptr);
  REQUIRE(::fcntl(wakes->fd, F_SETFL, O_NONBLOCK) == 0);
  ibv_cq* const first = on.calls.create_cq(on.native, 4, nullptr, wakes, 0);
  ibv_cq* const second = on.calls.create_cq(on.native, 4, nullptr, wakes, 0);
  REQUIRE(first != nullptr);
  REQUIRE(second != nullptr);
  std::unique_lock polling{soft::completion_queue::of(first).mutex};
  auto attending = std::async(std::launch::async, [&] {
    ibv_cq* given = nullptr;
    void* own = nullptr;
    return on.calls.get_cq_event(wakes, &given, &own);
  });
  // It waits for the first of its queues, and will come to the second.
  auto& known = soft::channel::of(wakes).mutex;
  const auto until = clock::now() + 5s;
  bool is_held = false;
  while (!is_held && clock::now() < until) {
    is_held = !known.try_lock();
    if (!is_held) known.unlock();
    std::this_thread::sleep_for(1ms);
  }
  CHECK(is_held);
  if (is_held) {
    auto destroying = std::async(std::launch::async, [&] { return on.calls.destroy_cq(second); });
    CHECK_FALSE(has_ended(destroying));
    polling.unlock();
    CHECK(destroying.get() == 0);
  } else {
    polling.unlock();
    on.calls.destroy_cq(second);
  }
  CHECK(attending.get() == -1);
  on.calls.destroy_cq(first);
  on.calls.destroy_comp_channel(wakes);
}

TEST_CASE("soft: destroying waits until an event has been acknowledged", "[soft]") {
  side on{fabric_name()};
  REQUIRE(::fcntl(on.native->async_fd, F_SETFL, O_NONBLOCK) == 0);
  ibv_async_event told{};
  const auto waits = [&](auto&& destroy) {
    REQUIRE(on.calls.get_async_event(on.native, &told) == 0);
    auto destroying = std::async(std::launch::async, destroy);
    CHECK_FALSE(has_ended(destroying));
    on.calls.ack_async_event(&told);
    CHECK(destroying.get() == 0);
  };
  ibv_cq* const queue = on.calls.create_cq(on.native, 4, nullptr, nullptr, 0);
  REQUIRE(queue != nullptr);
  ibv_srq_init_attr asked{};
  asked.attr = {2, 1, 0};
  ibv_srq* const shared = on.calls.create_srq(on.domain, &asked);
  REQUIRE(shared != nullptr);
  SECTION("a queue pair") {
    ibv_qp_init_attr with{};
    with.send_cq = with.recv_cq = queue;
    with.srq = shared;
    with.cap.max_send_wr = 1;
    with.qp_type = IBV_QPT_RC;
    ibv_qp* const pair = on.calls.create_qp(on.domain, &with);
    REQUIRE(pair != nullptr);
    ibv_qp_attr failed{};
    failed.qp_state = IBV_QPS_ERR;
    REQUIRE(on.calls.modify_qp(pair, &failed, IBV_QP_STATE) == 0);
    waits([&] { return on.calls.destroy_qp(pair); });
    CHECK(told.event_type == IBV_EVENT_QP_LAST_WQE_REACHED);
    on.calls.destroy_srq(shared);
    on.calls.destroy_cq(queue);
  }
  SECTION("a shared receive queue") {
    soft::shared_receive_queue::of(shared).queue.entry->limit = soft::limit_reached;
    waits([&] { return on.calls.destroy_srq(shared); });
    on.calls.destroy_cq(queue);
  }
  SECTION("a completion queue") {
    soft::completion_queue::of(queue).entry->failed = 1;
    waits([&] { return on.calls.destroy_cq(queue); });
    on.calls.destroy_srq(shared);
  }
}

TEST_CASE("soft: deregistering waits for what this process reads itself", "[soft]") {
  linked both;
  ibv_mr* const region =
      both.here.calls.reg_mr(both.here.domain, both.here.memory, side::bytes, both.here.rights());
  REQUIRE(region != nullptr);
  soft::queue_pair& reading = soft::queue_pair::of(both.one.pair);
  reading.lock();
  auto ended = std::async(std::launch::async, [&] { return both.here.calls.dereg_mr(region); });
  CHECK_FALSE(has_ended(ended));
  reading.unlock();
  CHECK(ended.get() == 0);
}

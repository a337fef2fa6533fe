// SPDX-License-Identifier: BSL-1.0
// Who sleeps wakes for what a process left that died in the middle.
#include <fcntl.h>
#include <poll.h>

#include "child.hpp"
#include "side.hpp"

using namespace soft_test;
namespace soft = verbena::soft;

namespace {

/// The ring of a completion queue as another process sees it.
soft::completion_slot* ring_of(const side& on, std::uint32_t index, soft::ring_view& ring) {
  soft::fabric& shared = *context::of(on.native).fabric;
  const soft::completion_queue_entry& queue = shared.shared().completion_queues[index];
  const std::scoped_lock guard{shared.work_on(0)};
  ring = soft::look(shared, queue.ring, queue.owner);
  return reinterpret_cast<soft::completion_slot*>(ring.base);
}

/// The next completion, slept for; `after_arming` is done once the queue has been armed so often.
std::optional<ibv_wc> sleep_for(const side& on, ibv_comp_channel* wakes, ibv_cq* queue, int times,
                                const std::function<void()>& after_arming) {
  const auto until = clock::now() + 10s;
  for (int armed = 1; clock::now() < until; ++armed) {
    REQUIRE(ibv_req_notify_cq(queue, 0) == 0);
    if (const auto got = next(queue, 0ns)) return got;
    if (armed == times) after_arming();
    pollfd look{wakes->fd, POLLIN, 0};
    if (::poll(&look, 1, 5000) != 1) return std::nullopt;
    ibv_cq* given = nullptr;
    void* own = nullptr;
    if (on.calls.get_cq_event(wakes, &given, &own) == 0) on.calls.ack_cq_events(given, 1);
  }
  return std::nullopt;
}

}  // namespace

TEST_CASE("soft: what comes behind a completion that was never written wakes", "[soft]") {
  const std::string fabric = fabric_name();
  child dying{[&](child& parent) {
    const auto index = static_cast<std::uint32_t>(parent.hear());
    const side on{fabric};
    soft::ring_view ring;
    auto* const slots = ring_of(on, index, ring);
    const std::uint32_t me = context::of(on.native).fabric->me();
    soft::claims_of(slots, ring.mask)[0] = soft::make_turn(0, me, soft::claimed);
    parent.say(1);
    parent.hear();
  }};
  side here{fabric};
  side there{fabric};
  ibv_comp_channel* const wakes = here.calls.create_comp_channel(here.native);
  REQUIRE(wakes != nullptr);
  REQUIRE(::fcntl(wakes->fd, F_SETFL, O_NONBLOCK) == 0);
  {
    end_options with;
    with.channel = wakes;
    end one{here, with};
    end other{there};
    one.connect(other.pair->qp_num);
    other.connect(one.pair->qp_num);
    REQUIRE(one.receive(1, {}) == 0);
    dying.say(one.receives->handle);
    REQUIRE(dying.hear() == 1);
    REQUIRE(other.send(2, {}) == 0);
    const auto got = sleep_for(here, wakes, one.receives, 2, [&] { dying.end(); });
    REQUIRE(got.has_value());
    CHECK(got->wr_id == 1);
  }
  here.calls.destroy_comp_channel(wakes);
}

TEST_CASE("soft: a datagram wakes whose sender died before it did", "[soft]") {
  const std::string fabric = fabric_name();
  child dying{[&](child& parent) {
    const auto index = static_cast<std::uint32_t>(parent.hear());
    const side on{fabric};
    soft::ring_view ring;
    auto* const slots = ring_of(on, index, ring);
    const std::uint32_t me = context::of(on.native).fabric->me();
    parent.say(1);
    parent.hear();
    soft::claims_of(slots, ring.mask)[0] = soft::make_turn(0, me, soft::claimed);
    slots[0].wr_id = 7;
    slots[0].turn = soft::make_turn(0, me, soft::full);
    parent.say(2);
    parent.hear();
  }};
  side here{fabric};
  ibv_comp_channel* const wakes = here.calls.create_comp_channel(here.native);
  REQUIRE(wakes != nullptr);
  REQUIRE(::fcntl(wakes->fd, F_SETFL, O_NONBLOCK) == 0);
  {
    end_options with;
    with.type = IBV_QPT_UD;
    with.channel = wakes;
    end one{here, with};
    dying.say(one.receives->handle);
    REQUIRE(dying.hear() == 1);
    one.connect(0);
    const auto got = sleep_for(here, wakes, one.receives, 1, [&] {
      dying.say(1);
      REQUIRE(dying.hear() == 2);
      dying.end();
    });
    REQUIRE(got.has_value());
    CHECK(got->wr_id == 7);
  }
  here.calls.destroy_comp_channel(wakes);
}

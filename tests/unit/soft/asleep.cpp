// SPDX-License-Identifier: BSL-1.0
// Who sleeps wakes for what a process left that died in the middle.
#include "child.hpp"
#include "side.hpp"
#include "sleeper.hpp"

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
  const sleeper asleep{here};
  end_options with;
  with.channel = asleep.channel;
  end one{here, with};
  end other{there};
  one.connect(other.pair->qp_num);
  other.connect(one.pair->qp_num);
  REQUIRE(one.receive(1, {}) == 0);
  dying.say(one.receives->handle);
  REQUIRE(dying.hear() == 1);
  REQUIRE(other.send(2, {}) == 0);
  const auto got = asleep.next(one.receives, 2, [&] { dying.end(); });
  REQUIRE(got.has_value());
  CHECK(got->wr_id == 1);
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
  const sleeper asleep{here};
  end_options with;
  with.type = IBV_QPT_UD;
  with.channel = asleep.channel;
  end one{here, with};
  dying.say(one.receives->handle);
  REQUIRE(dying.hear() == 1);
  one.connect(0);
  const auto got = asleep.next(one.receives, 1, [&] {
    dying.say(1);
    REQUIRE(dying.hear() == 2);
    dying.end();
  });
  REQUIRE(got.has_value());
  CHECK(got->wr_id == 7);
}

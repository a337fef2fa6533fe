// SPDX-License-Identifier: BSL-1.0
#include <verbena/connection/queue_pair_state.hpp>

namespace vb = verbena;

// Retiring is by position: the same completion twice retires nothing the second time.
constexpr bool idempotent() {
  vb::work_queue_positions queue{5, 0, 8};
  return queue.retire(2) == 3 && queue.retire(2) == 0 && queue.retire(0) == 0 &&
         queue.outstanding() == 2 && queue.retire(4) == 2 && queue.retire(4) == 0 &&
         queue.outstanding() == 0;
}
static_assert(idempotent());

// Positions that were never posted retire nothing.
constexpr bool not_posted() {
  vb::work_queue_positions queue{5, 3, 8};
  return queue.retire(5) == 0 && queue.retire(6) == 0 && queue.retire(0x8000) == 0 &&
         queue.outstanding() == 2;
}
static_assert(not_posted());

// A queue of the greatest depth, at every place where 16 and 32 bits wrap around.
constexpr bool wraps_around() {
  constexpr std::uint32_t depth = vb::work_queue_positions::depth_limit;
  for (const std::uint32_t start : {0U, 0x7fffU, 0xffffU, 0x1'0000U, 0xffff'8000U, 0xffff'ffffU}) {
    vb::work_queue_positions queue{start + depth, start, depth};
    if (queue.has_room(1) || queue.outstanding() != depth) return false;
    if (queue.retire(static_cast<std::uint16_t>(start - 1)) != 0) return false;
    if (queue.retire(static_cast<std::uint16_t>(start)) != 1) return false;
    if (queue.retire(static_cast<std::uint16_t>(start)) != 0) return false;
    if (!queue.has_room(1) || queue.has_room(2)) return false;
    if (queue.retire(static_cast<std::uint16_t>(start + depth - 1)) != depth - 1) return false;
    if (queue.outstanding() != 0) return false;
  }
  return true;
}
static_assert(wraps_around());

// After the first failure there is no room, and the first reason stays.
constexpr bool fails_once() {
  vb::queue_pair_state state;
  state.sends.capacity = 4;
  state.receives.capacity = 4;
  if (state.broken() || !state.sends.has_room(4)) return false;
  state.fail(vb::status::retry_exceeded);
  state.fail(vb::status::flushed);
  return state.broken() && state.failure == vb::status::retry_exceeded &&
         !state.sends.has_room(1) && !state.receives.has_room(1);
}
static_assert(fails_once());

// The table is one cache line for each connection.
static_assert(sizeof(vb::queue_pair_state) == 64 && alignof(vb::queue_pair_state) == 64);

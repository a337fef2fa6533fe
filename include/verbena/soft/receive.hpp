// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>

#include <verbena/soft/objects.hpp>
#include <verbena/soft/ring.hpp>
#include <verbena/soft/wake.hpp>

namespace verbena::soft {

inline receive_slot& slot_at(const ring_view& ring, std::uint64_t position) noexcept {
  return *reinterpret_cast<receive_slot*>(ring.base + (position & ring.mask) * ring.stride);
}

/// The next receive that nobody has taken, from `at` on, which moves to it; null for none. `at` may
/// be old by any number of laps, where a taker was held up before it told of what it took.
inline receive_slot* next_posted(const receive_queue_entry& entry, const ring_view& ring,
                                 std::uint64_t& at, std::uint64_t& turn) noexcept {
  for (std::uint64_t tries = 0; tries < 4 * (ring.mask + 1) + 64; ++tries, ++at) {
    receive_slot& found = slot_at(ring, at);
    turn = found.turn.load(std::memory_order_acquire);
    const bool is_taken =
        position_of(turn) > at || (position_of(turn) == at && what_of(turn) == claimed);
    if (is_taken) {
      const std::uint64_t latest = entry.posted.load(std::memory_order_relaxed) + ring.mask + 1;
      if (position_of(turn) > at + ring.mask + 1 && position_of(turn) <= latest) [[unlikely]]
        at = position_of(turn) - ring.mask - 2;
      continue;
    }
    return position_of(turn) == at && what_of(turn) == full ? &found : nullptr;
  }
  return nullptr;
}

enum class taking { got, empty, too_short, gone };

/// Whether a queue has a receive that could be taken now.
inline taking look_for_receive(const receive_queue_entry& entry, const ring_view& ring) noexcept {
  if (ring.base == nullptr) return taking::gone;
  std::uint64_t at = entry.taken.load(std::memory_order_acquire);
  std::uint64_t turn = 0;
  return next_posted(entry, ring, at, turn) != nullptr ? taking::got : taking::empty;
}

/// Whether the completion of a receive may have come. To be asked once its taker is known dead.
inline bool has_told(const receive_slot& of) noexcept {
  return of.told.load(std::memory_order_acquire) != 0;
}

/// Takes over a receive that a process took and died with, where the queue is empty otherwise.
/// What that process has written of its message is written over. One that it has told of is its
/// owner's.
[[gnu::cold, gnu::noinline]] inline bool take_over(context& here, receive_queue_entry& entry,
                                                   const ring_view& ring, std::uint32_t queue_pair,
                                                   std::uint64_t needed,
                                                   taken_receive& into) noexcept {
  fabric& on = *here.fabric;
  const std::int64_t now = fabric::coarse_now();
  std::int64_t before = entry.searched.load(std::memory_order_relaxed);
  if (now == before || !entry.searched.compare_exchange_strong(before, now)) return false;
  for (std::uint64_t place = 0; place <= ring.mask; ++place) {
    receive_slot& slot = slot_at(ring, place);
    std::uint64_t turn = slot.turn.load(std::memory_order_acquire);
    if (what_of(turn) != claimed || on.claimer_lives(turn) || has_told(slot)) continue;
    if (!into.copy(slot, ring.stride) || into.room() < needed ||
        !slot.turn.compare_exchange_strong(turn, make_turn(position_of(turn), on.me(), claimed))) {
      continue;
    }
    slot.queue_pair.store(queue_pair, std::memory_order_release);
    into.is_of(slot, position_of(turn), on.me(), ring.mask);
    return true;
  }
  return false;
}

/// Posts again the receive whose slot is the next to be used and whose taker has died with it,
/// telling nobody. Not where none has been taken after it: then it is the next to be.
[[gnu::cold, gnu::noinline]] inline bool post_again(context& here, receive_queue& into) noexcept {
  receive_slot& slot = into.slot(into.posted);
  std::uint64_t turn = slot.turn.load(std::memory_order_acquire);
  if (what_of(turn) != claimed || position_of(turn) + into.mask + 1 != into.posted ||
      into.slot(position_of(turn) + 1).turn.load(std::memory_order_acquire) ==
          make_turn(position_of(turn) + 1, 0, full) ||
      here.fabric->claimer_lives(turn) || has_told(slot) ||
      !slot.turn.compare_exchange_strong(turn, make_turn(into.posted, 0, full))) {
    return false;
  }
  ++into.posted;
  into.entry->posted.store(into.posted, std::memory_order_release);
  return true;
}

/// Whether the completion of a receive that its taker has told of is in its queue, or has been
/// polled. Under a fabric::work_lock.
[[gnu::cold, gnu::noinline]] inline bool has_come(fabric& on, const receive_slot& of) noexcept {
  const std::uint64_t told = of.told.load(std::memory_order_acquire);
  const std::uint64_t queue = told >> 48;
  const std::uint64_t next = told & ((std::uint64_t{1} << 48) - 1);
  if (next == 0 || queue >= completion_queue_limit) return false;
  const completion_queue_entry& entry = on.shared().completion_queues[queue];
  if (next <= entry.head.load(std::memory_order_acquire)) return true;
  const ring_view ring = look(on, entry.ring, entry.owner.load(std::memory_order_acquire));
  if (ring.base == nullptr || ring.stride != completion_stride) return false;
  const auto& slot = reinterpret_cast<const completion_slot*>(ring.base)[(next - 1) & ring.mask];
  const std::uint64_t turn = slot.turn.load(std::memory_order_acquire);
  return position_of(turn) > next - 1 || (position_of(turn) == next - 1 && what_of(turn) == full);
}

/// Whether the receive at `at` is the next to be told of: all before it have been. Receives of one
/// queue complete in the order of posting, also where several send to it; so who comes second waits
/// for the first, unless that has died or does not end.
[[gnu::noinline]] inline bool is_next_to_tell(fabric& on, const ring_view& ring,
                                              std::uint64_t at) noexcept {
  std::int64_t latest = 0;
  for (pause wait;; wait()) {
    const receive_slot& before = slot_at(ring, at - 1);
    const std::uint64_t turn = before.turn.load(std::memory_order_acquire);
    const bool is_held = at != 0 && position_of(turn) == at - 1 && what_of(turn) == claimed;
    if (!is_held || has_come(on, before)) return true;
    const std::int64_t now = fabric::coarse_now();
    if (latest == 0) latest = now + 100'000'000;
    if (!on.claimer_lives(turn) || now > latest) return false;
  }
}

/// Takes the next receive of a queue of any process, whose ring is `ring`, if its memory holds
/// `needed` bytes; one that is too short is taken only where the taker fails with it
/// (`reliable`); others take it when those before it have been told of. Then finish() and
/// move_taken(), under the same fabric::work_lock. Takers claim a slot under their number, and pass
/// over those that are claimed.
inline taking take_receive(context& here, receive_queue_entry& entry, const ring_view& ring,
                           std::uint32_t queue_pair, std::uint64_t needed, bool reliable,
                           taken_receive& into) noexcept {
  fabric& on = *here.fabric;
  into.slot = nullptr;
  if (ring.base == nullptr) return taking::gone;
  std::uint64_t at = entry.taken.load(std::memory_order_acquire);
  for (std::uint64_t tries = 0; tries < 4 * (ring.mask + 1) + 64; ++tries) {
    std::uint64_t turn = 0;
    receive_slot* const slot = next_posted(entry, ring, at, turn);
    if (slot == nullptr) {
      return take_over(here, entry, ring, queue_pair, needed, into) ? taking::got : taking::empty;
    }
    if (!into.copy(*slot, ring.stride)) return taking::gone;
    const bool is_short = into.room() < needed;
    if (!reliable) {
      if (is_short) return taking::too_short;
      if (!is_next_to_tell(on, ring, at)) {
        return take_over(here, entry, ring, queue_pair, needed, into) ? taking::got : taking::empty;
      }
    }
    if (!slot->turn.compare_exchange_strong(turn, make_turn(at, on.me(), claimed),
                                            std::memory_order_acq_rel)) {
      continue;
    }
    slot->queue_pair.store(queue_pair, std::memory_order_release);
    into.is_of(*slot, at, on.me(), ring.mask);
    return is_short ? taking::too_short : taking::got;
  }
  return taking::empty;
}

/// Lets later takers begin after this one, tells the owner of an SRQ when it runs low, and has the
/// next receive on its way here: its owner wrote it last.
inline void move_taken(context& here, receive_queue_entry& entry, const ring_view& ring,
                       const taken_receive& by) noexcept {
  if (entry.taken.load(std::memory_order_relaxed) <= by.position)
    entry.taken.store(by.position + 1, std::memory_order_release);
  std::uint32_t limit = entry.limit.load(std::memory_order_relaxed);
  if (limit != 0 && entry.posted.load() - (by.position + 1) < (limit & ~limit_reached) &&
      entry.limit.compare_exchange_strong(limit, limit_reached)) {
    wake(here, entry.owner.load(), async_number);
  }
  __builtin_prefetch(&slot_at(ring, by.position + 1), 1);
}

/// Whether its owner has polled the completion of a receive, which is all that its slot was for.
inline bool has_been_seen(const segment& in, const receive_slot& of) noexcept {
  const std::uint64_t told = of.told.load(std::memory_order_acquire);
  const std::uint64_t queue = told >> 48;
  const std::uint64_t next = told & ((std::uint64_t{1} << 48) - 1);
  return next != 0 && queue < completion_queue_limit &&
         next <= in.completion_queues[queue].head.load(std::memory_order_acquire);
}

/// Whether the slot for the next receive can be used: it has been given back, or is taken back here
/// from one who has only that left to do. If he is dead another may be about to take it over, so
/// nothing is written into it before it is this side's.
inline bool is_free(const context& here, const receive_queue& of) noexcept {
  receive_slot& slot = of.slot(of.posted);
  std::uint64_t turn = slot.turn.load(std::memory_order_acquire);
  if (position_of(turn) == of.posted && what_of(turn) == vacant) [[likely]]
    return true;
  return position_of(turn) + of.mask + 1 == of.posted && what_of(turn) == claimed &&
         has_been_seen(here.fabric->shared(), slot) &&
         (slot.turn.compare_exchange_strong(turn, make_turn(of.posted, 0, vacant)) ||
          turn == make_turn(of.posted, 0, vacant));
}

/// Posts one receive; ENOMEM when the queue is full (`kept` places are kept free), EINVAL for too
/// many pieces. A piece of no length is given `zero_length`. Under the lock of the queue pair, or
/// of the shared queue.
inline int put_receive(context& here, receive_queue& into, const ibv_recv_wr& work,
                       std::uint32_t kept, std::uint32_t zero_length) noexcept {
  if (work.num_sge < 0 || static_cast<std::uint32_t>(work.num_sge) > into.max_pieces) return EINVAL;
  if (!is_free(here, into)) [[unlikely]] {
    while (post_again(here, into)) {
    }
    if (!is_free(here, into)) return ENOMEM;
  }
  const std::uint32_t depth = into.depth - std::min(kept, into.depth);
  if (depth == 0) return ENOMEM;
  if (depth <= into.mask && into.posted >= depth) {
    // Fewer are allowed than there are slots: the one `depth` before must have been taken.
    const std::uint64_t before = into.posted - depth;
    const std::uint64_t other = into.slot(before).turn.load(std::memory_order_acquire);
    if (position_of(other) == before && what_of(other) == full) return ENOMEM;
  }
  receive_slot& slot = into.slot(into.posted);
  slot.wr_id = work.wr_id;
  slot.pieces = static_cast<std::uint32_t>(work.num_sge);
  slot.queue_pair.store(0, std::memory_order_relaxed);
  slot.told.store(0, std::memory_order_relaxed);
  auto* const listed = reinterpret_cast<shared_piece*>(&slot + 1);
  for (int i = 0; i < work.num_sge; ++i) {
    const std::uint32_t length = work.sg_list[i].length;
    listed[i] = {work.sg_list[i].addr, length == 0 ? zero_length : length, work.sg_list[i].lkey};
  }
  slot.turn.store(make_turn(into.posted, 0, full), std::memory_order_release);
  ++into.posted;
  into.entry->posted.store(into.posted, std::memory_order_release);
  // Whoever took the next slot a lap ago wrote it last: have it back before it is needed.
  __builtin_prefetch(&into.slot(into.posted), 1);
  return 0;
}

}  // namespace verbena::soft

// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include <verbena/soft/objects.hpp>
#include <verbena/soft/ring.hpp>
#include <verbena/soft/wake.hpp>

namespace verbena::soft {

/// One receive, taken out of a queue: a copy of what its owner posted.
struct taken_receive {
  std::uint64_t wr_id = 0;
  std::vector<shared_piece> pieces;
  std::atomic<std::uint64_t>* turn = nullptr;
  std::atomic<std::uint64_t>* told = nullptr;
  std::uint64_t mine = 0;
  std::uint64_t done = 0;

  std::uint64_t room() const noexcept {
    std::uint64_t sum = 0;
    for (const shared_piece& each : pieces) sum += each.length;
    return sum;
  }
  /// False for a slot that holds nonsense.
  bool copy(const receive_slot& from, std::uint64_t stride) {
    const std::uint32_t count = from.pieces;
    if (sizeof(receive_slot) + std::uint64_t{count} * sizeof(shared_piece) > stride) return false;
    const auto* const listed = reinterpret_cast<const shared_piece*>(&from + 1);
    pieces.assign(listed, listed + count);
    wr_id = from.wr_id;
    return true;
  }
  /// Says that it is of this slot, which process `me` has claimed.
  void is_of(receive_slot& slot, std::uint64_t position, std::uint32_t me, std::uint64_t mask) {
    turn = &slot.turn;
    told = &slot.told;
    mine = make_turn(position, me, claimed);
    done = make_turn(position + mask + 1, 0, vacant);
  }
  /// Gives the slot back to its owner, who may have taken it back on seeing the completion.
  void finish() const noexcept {
    std::uint64_t expected = mine;
    turn->compare_exchange_strong(expected, done, std::memory_order_acq_rel);
  }
};

enum class taking { got, empty, too_short, gone };

/// Whether the completion of a receive may have come. To be asked once its taker is known dead.
inline bool has_told(const receive_slot& of) noexcept {
  return of.told.load(std::memory_order_acquire) != 0;
}

/// Takes over a receive that a process took and died with, where the queue is empty otherwise.
/// What that process has written of its message is written over. One that it has told of is its
/// owner's.
inline bool take_over(context& here, receive_queue_entry& entry, const ring_view& ring,
                      std::uint32_t queue_pair, std::uint64_t needed, taken_receive& into) {
  fabric& on = *here.fabric;
  const std::int64_t now = fabric::coarse_now();
  std::int64_t before = entry.searched.load(std::memory_order_relaxed);
  if (now == before || !entry.searched.compare_exchange_strong(before, now)) return false;
  for (std::uint64_t place = 0; place <= ring.mask; ++place) {
    auto& slot = *reinterpret_cast<receive_slot*>(ring.base + place * ring.stride);
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
/// telling nobody.
inline bool post_again(context& here, receive_queue& into) noexcept {
  receive_slot& slot = into.slot(into.posted);
  std::uint64_t turn = slot.turn.load(std::memory_order_acquire);
  if (what_of(turn) != claimed || position_of(turn) + into.mask + 1 != into.posted ||
      here.fabric->claimer_lives(turn) || has_told(slot) ||
      !slot.turn.compare_exchange_strong(turn, make_turn(into.posted, 0, full))) {
    return false;
  }
  ++into.posted;
  into.entry->posted.store(into.posted, std::memory_order_release);
  return true;
}

/// Takes the next receive of a queue of any process, if its memory holds `needed` bytes; one that
/// is too short is taken only where the taker fails with it (`fail_short`). Under a visit, and
/// finish() in the same one. Takers claim a slot under their number; any may move `taken` on.
inline taking take_receive(context& here, receive_queue_entry& entry, std::uint32_t queue_pair,
                           std::uint64_t needed, bool fail_short, taken_receive& into) {
  fabric& on = *here.fabric;
  const ring_view ring = look(on, entry.ring, entry.owner.load(std::memory_order_acquire));
  const auto [base, mask, stride] = ring;
  if (base == nullptr) return taking::gone;
  for (std::uint64_t tries = 0; tries < 4 * (mask + 1) + 64; ++tries) {
    std::uint64_t at = entry.taken.load(std::memory_order_acquire);
    auto& slot = *reinterpret_cast<receive_slot*>(base + (at & mask) * stride);
    std::uint64_t turn = slot.turn.load(std::memory_order_acquire);
    if (position_of(turn) != at || what_of(turn) != full) {
      if (position_of(turn) == at && what_of(turn) == claimed) {
        entry.taken.compare_exchange_strong(at, at + 1, std::memory_order_acq_rel);
        continue;
      }
      if (position_of(turn) > at && entry.taken.load() == at) {
        entry.taken.compare_exchange_strong(at, at + 1, std::memory_order_acq_rel);
        continue;
      }
      return take_over(here, entry, ring, queue_pair, needed, into) ? taking::got : taking::empty;
    }
    if (!into.copy(slot, stride)) return taking::gone;
    const bool is_short = into.room() < needed;
    if (is_short && !fail_short) return taking::too_short;
    if (!slot.turn.compare_exchange_strong(turn, make_turn(at, on.me(), claimed),
                                           std::memory_order_acq_rel)) {
      continue;
    }
    slot.queue_pair.store(queue_pair, std::memory_order_release);
    std::uint64_t expected = at;
    entry.taken.compare_exchange_strong(expected, at + 1, std::memory_order_acq_rel);
    const std::uint32_t limit = entry.limit.load(std::memory_order_relaxed);
    if (limit != 0 && entry.posted.load() - (at + 1) < limit && entry.limit.exchange(0) != 0) {
      entry.reached = 1;
      wake(here, entry.owner.load(), async_number);
    }
    into.is_of(slot, at, on.me(), mask);
    return is_short ? taking::too_short : taking::got;
  }
  return taking::empty;
}

/// Whether its owner has polled the completion of a receive, which is all that its slot was for.
inline bool has_been_seen(const segment& in, const receive_slot& of) noexcept {
  const std::uint64_t told = of.told.load(std::memory_order_acquire);
  const std::uint64_t queue = told >> 48;
  const std::uint64_t next = told & ((std::uint64_t{1} << 48) - 1);
  return next != 0 && queue < completion_queue_limit &&
         next <= in.completion_queues[queue].head.load(std::memory_order_acquire);
}

/// Posts one receive; ENOMEM when the queue is full (`kept` places are kept free), EINVAL for too
/// many pieces. A piece of no length is given `zero_length`.
inline int put_receive(context& here, receive_queue& into, const ibv_recv_wr& work,
                       std::uint32_t kept, std::uint32_t zero_length) noexcept {
  if (work.num_sge < 0 || static_cast<std::uint32_t>(work.num_sge) > into.max_pieces) return EINVAL;
  while (post_again(here, into)) {
  }
  receive_slot& slot = into.slot(into.posted);
  const std::uint64_t turn = slot.turn.load(std::memory_order_acquire);
  const bool is_vacant = position_of(turn) == into.posted && what_of(turn) == vacant;
  const bool is_as_good = position_of(turn) + into.mask + 1 == into.posted &&
                          what_of(turn) == claimed && has_been_seen(here.fabric->shared(), slot);
  if (!is_vacant && !is_as_good) return ENOMEM;
  if (into.posted - into.entry->taken.load(std::memory_order_acquire) + kept >= into.depth)
    return ENOMEM;
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
  return 0;
}

}  // namespace verbena::soft

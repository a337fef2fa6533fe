// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

#include <verbena/soft/objects.hpp>
#include <verbena/soft/wake.hpp>

namespace verbena::soft {

/// One receive, taken out of a queue: a copy of what its owner posted.
struct taken_receive {
  std::uint64_t wr_id = 0;
  std::vector<shared_piece> pieces;
  std::atomic<std::uint64_t>* turn = nullptr;
  std::uint64_t done = 0;

  std::uint64_t room() const noexcept {
    std::uint64_t sum = 0;
    for (const shared_piece& each : pieces) sum += each.length;
    return sum;
  }
  /// False for a slot that holds nonsense.
  bool copy(const receive_slot& from, std::uint64_t stride) {
    const std::uint32_t count = from.pieces;
    if (sizeof(receive_slot) + count * sizeof(shared_piece) > stride) return false;
    const auto* const listed = reinterpret_cast<const shared_piece*>(&from + 1);
    pieces.assign(listed, listed + count);
    wr_id = from.wr_id;
    return true;
  }
  /// Gives the slot back to its owner once the completion has been put down.
  void finish() const noexcept { turn->store(done, std::memory_order_release); }
};

enum class taking { got, empty, too_short, gone };

/// Takes over a receive that a process took and died with, where the queue is empty otherwise.
/// What that process has written of its message is written over.
inline bool take_over(context& here, receive_queue_entry& entry, std::byte* base,
                      std::uint32_t queue_pair, std::uint64_t needed, taken_receive& into) {
  fabric& on = *here.fabric;
  const std::int64_t now = fabric::coarse_now();
  std::int64_t before = entry.searched.load(std::memory_order_relaxed);
  if (now == before || !entry.searched.compare_exchange_strong(before, now)) return false;
  const std::uint64_t mask = entry.mask.load(std::memory_order_relaxed);
  const std::uint64_t stride = entry.stride.load(std::memory_order_relaxed);
  for (std::uint64_t place = 0; place <= mask; ++place) {
    auto& slot = *reinterpret_cast<receive_slot*>(base + place * stride);
    std::uint64_t turn = slot.turn.load(std::memory_order_acquire);
    if (what_of(turn) != claimed || on.claimer_lives(turn)) continue;
    if (!into.copy(slot, stride) || into.room() < needed ||
        !slot.turn.compare_exchange_strong(turn, make_turn(position_of(turn), on.me(), claimed))) {
      continue;
    }
    slot.queue_pair.store(queue_pair, std::memory_order_release);
    into.turn = &slot.turn;
    into.done = make_turn(position_of(turn) + mask + 1, 0, vacant);
    return true;
  }
  return false;
}

/// Posts again the receive whose slot is the next to be used and whose taker has died with it.
inline bool post_again(context& here, receive_queue& into) noexcept {
  receive_slot& slot = into.slot(into.posted);
  std::uint64_t turn = slot.turn.load(std::memory_order_acquire);
  if (what_of(turn) != claimed || here.fabric->claimer_lives(turn) ||
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
  const std::uint64_t mask = entry.mask.load(std::memory_order_acquire);
  const std::uint64_t stride = entry.stride.load(std::memory_order_relaxed);
  if (mask > (1U << 20) || !std::has_single_bit(mask + 1) || stride < sizeof(receive_slot) ||
      stride > 4096 || stride % alignof(receive_slot) != 0) {
    return taking::gone;
  }
  std::byte* const base =
      on.reach(entry.arena.load(std::memory_order_relaxed), (mask + 1) * stride);
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
      return take_over(here, entry, base, queue_pair, needed, into) ? taking::got : taking::empty;
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
    into.turn = &slot.turn;
    into.done = make_turn(at + mask + 1, 0, vacant);
    return is_short ? taking::too_short : taking::got;
  }
  return taking::empty;
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
  if (position_of(turn) != into.posted || what_of(turn) != vacant) return ENOMEM;
  if (into.posted - into.entry->taken.load(std::memory_order_acquire) + kept >= into.depth)
    return ENOMEM;
  slot.wr_id = work.wr_id;
  slot.pieces = static_cast<std::uint32_t>(work.num_sge);
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

// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include <verbena/soft/cause.hpp>
#include <verbena/soft/memory.hpp>
#include <verbena/soft/objects.hpp>
#include <verbena/soft/ring.hpp>
#include <verbena/soft/wake.hpp>

namespace verbena::soft {

struct completion {
  std::uint64_t wr_id = 0;
  ibv_wc_status status = IBV_WC_SUCCESS;
  ibv_wc_opcode opcode{};
  std::uint32_t byte_length = 0;
  std::uint32_t immediate = 0;
  std::uint32_t queue_pair = 0;
  std::uint32_t source = 0;
  std::uint32_t flags = 0;
  cause why = cause::unsaid;
  bool solicited = false;
  bool sending = false;   ///< of a send queue: `place` says which request
  bool carries = false;   ///< `bytes`, for the memory at `place`
  std::uint32_t key = 0;  ///< of that memory
  std::uint64_t place = 0;
  std::array<std::uint64_t, 2> bytes{};
  std::atomic<std::uint64_t>* told = nullptr;  ///< of the receive it is of; see receive_slot
};

inline completion_claim* claims_of(completion_slot* ring, std::uint64_t mask) noexcept {
  return reinterpret_cast<completion_claim*>(ring + mask + 1);
}

[[gnu::always_inline]] inline void fill_slot(completion_slot& slot,
                                             const completion& what) noexcept {
  const bool fails = what.status != IBV_WC_SUCCESS;
  slot.wr_id = what.wr_id;
  slot.place = what.place;
  slot.key = what.carries ? what.key : static_cast<std::uint32_t>(what.why);
  slot.byte_length = what.byte_length;
  slot.immediate = what.immediate;
  slot.queue_pair = what.queue_pair;
  slot.source_queue_pair = what.source;
  slot.status = static_cast<std::uint8_t>(what.status);
  slot.opcode = static_cast<std::uint8_t>(what.opcode);
  slot.flags = static_cast<std::uint8_t>(what.flags);
  slot.marks = static_cast<std::uint8_t>((what.solicited || fails ? is_solicited : 0) |
                                         (what.sending ? is_of_send : 0) |
                                         (what.carries ? carries_bytes : 0));
  slot.bytes = what.bytes;
}

/// Marks a queue failed; of which its owner is told once.
[[gnu::cold, gnu::noinline]] inline void fail(context& here,
                                              completion_queue_entry& entry) noexcept {
  std::uint32_t good = 0;
  if (!entry.failed.compare_exchange_strong(good, 1)) return;
  fire(here, entry, true);
  wake(here, entry.owner.load(), async_number);
}

/// Puts a completion into a queue, of whatever process, whose ring is at `ring`. Several may do so
/// at once: each claims a slot under its number before it writes there, and passes over what is
/// claimed; so one that dies blocks nobody and leaves a slot that the queue's owner skips.
[[gnu::always_inline]] inline void complete_in(context& here, std::uint32_t index,
                                               completion_slot* ring, std::uint64_t mask,
                                               const completion& what) noexcept {
  completion_queue_entry& entry = here.fabric->shared().completion_queues[index];
  completion_claim* const claims = claims_of(ring, mask);
  std::uint64_t at = entry.tail.load(std::memory_order_acquire);
  for (std::uint64_t tries = 0; tries < 4 * (mask + 1) + 64; ++tries) {
    completion_claim& claim = claims[at & mask];
    std::uint64_t last = claim.load(std::memory_order_acquire);
    if (what_of(last) == claimed && position_of(last) >= at) {
      at = position_of(last) + 1;
      continue;
    }
    // Signed: others may have gone on meanwhile, and the head with them.
    const std::int64_t limit = entry.limit.load(std::memory_order_relaxed);
    const auto held_by = [at](std::uint64_t head) { return static_cast<std::int64_t>(at - head); };
    if (held_by(entry.head_seen.load(std::memory_order_acquire)) >= limit) [[unlikely]] {
      const std::uint64_t head = entry.head.load(std::memory_order_acquire);
      entry.head_seen.store(head, std::memory_order_release);
      if (held_by(head) >= limit) break;
    }
    const std::uint32_t me = here.fabric->me();
    if (!claim.compare_exchange_strong(last, make_turn(at, me, claimed),
                                       std::memory_order_acq_rel)) {
      continue;
    }
    // Before it can be seen: so whoever dies in between, the receive is told of once.
    if (what.told != nullptr) what.told->store(make_told(index, at), std::memory_order_release);
    completion_slot& slot = ring[at & mask];
    fill_slot(slot, what);
    const std::uint64_t turn = make_turn(at, me, full);
    if (entry.wake.load(std::memory_order_relaxed) == 0) {
      slot.turn.store(turn, std::memory_order_release);
    } else {
      // Sequentially consistent, as is the load in fire(): either this thread sees the queue
      // armed, or the one that armed it sees the completion.
      slot.turn.store(turn, std::memory_order_seq_cst);
      fire(here, entry, what.solicited || what.status != IBV_WC_SUCCESS);
    }
    if (entry.tail.load(std::memory_order_relaxed) <= at)
      entry.tail.store(at + 1, std::memory_order_release);
    return;
  }
  fail(here, entry);  // it overruns, and the completion is lost
}

/// Completes on a queue of the peer of queue pair `by`, whose lock is held; the peer is of process
/// `owner`. Not at all where the queue is gone, or another's.
[[gnu::always_inline]] inline void complete_there(context& here, queue_pair& by,
                                                  std::uint32_t owner, std::uint32_t index,
                                                  const completion& what) noexcept {
  if (index >= completion_queue_limit) return;
  const completion_queue_entry& entry = here.fabric->shared().completion_queues[index];
  const ring_view& seen = look_again(*here.fabric, entry.ring, owner, by.peer_completions);
  if (seen.base == nullptr || seen.stride != completion_stride) [[unlikely]]
    return;
  complete_in(here, index, reinterpret_cast<completion_slot*>(seen.base), seen.mask, what);
}

/// Completes on a queue of this process.
[[gnu::noinline]] inline void complete_here(context& here, const completion_queue& in,
                                            const completion& what) noexcept {
  complete_in(here, in.index, in.ring, in.mask, what);
}

inline bool is_full(const completion_slot& slot, std::uint64_t position) noexcept {
  const std::uint64_t turn = slot.turn.load(std::memory_order_acquire);
  return position_of(turn) == position && what_of(turn) == full;
}

/// The completion at `place`, which its claimer did not live to write, is not there: the receive it
/// was of will be flushed. Under the queue's lock.
inline void forget_told(const completion_queue& in, std::uint64_t place) noexcept {
  for (const queue_pair* each : in.attached) {
    if (each->receive_completions != &in) continue;
    const receive_queue& of =
        each->shared_receives == nullptr ? each->receives : each->shared_receives->queue;
    for (std::uint64_t at = 0; of.entry != nullptr && at <= of.mask; ++at) {
      std::uint64_t told = make_told(in.index, place);
      receive_slot& slot = of.slot(at);
      if (what_of(slot.turn.load(std::memory_order_acquire)) == claimed)
        slot.told.compare_exchange_strong(told, 0);
    }
  }
}

/// Lets those who complete use the place of the completion at the head again.
inline void pass(completion_queue& of) noexcept {
  const std::uint64_t next = of.head.load(std::memory_order_relaxed) + 1;
  of.head.store(next, std::memory_order_relaxed);
  of.entry->head.store(next, std::memory_order_release);
}

/// Passes over slots whose claimers have died: what they were to say is lost with them. True where
/// the next slot's claimer lives and has not written it yet: he may still die. Under the queue's
/// lock.
inline bool pass_lost(context& here, completion_queue& of) noexcept {
  for (std::uint64_t tries = 0; tries <= of.mask; ++tries) {
    const std::uint64_t at = of.head.load(std::memory_order_relaxed);
    const completion_slot& slot = of.ring[at & of.mask];
    const std::uint64_t claim = of.claims[at & of.mask].load(std::memory_order_acquire);
    if (what_of(claim) != claimed || position_of(claim) != at || is_full(slot, at)) return false;
    if (here.fabric->claimer_lives(claim)) return true;
    if (is_full(slot, at)) return false;  // it had done that much
    forget_told(of, at);
    pass(of);
  }
  return false;
}

/// Fails a queue whose next slot is in a state that nobody leaves it in. Under the queue's lock.
inline void fail_damaged(context& here, completion_queue& of) noexcept {
  const std::uint64_t at = of.head.load(std::memory_order_relaxed);
  const std::uint64_t turn = of.ring[at & of.mask].turn.load(std::memory_order_acquire);
  const std::uint64_t position = position_of(turn);
  const bool is_own = ((position ^ at) & of.mask) == 0 && position <= at;
  const bool is_new = what_of(turn) == vacant && position <= of.mask;
  if (is_own && (is_new || what_of(turn) == full)) return;
  fail(here, *of.entry);
}

/// Puts the bytes that a completion carries where they belong; false where that is not in `region`.
inline bool unload(const region_view& region, const completion_slot& slot, std::uint64_t place,
                   std::uint32_t length) noexcept {
  if (length > carried_limit || !region || !region.holds(place, length) ||
      (region.access & IBV_ACCESS_LOCAL_WRITE) == 0) {
    return false;
  }
  copy_small(reinterpret_cast<std::byte*>(place),
             reinterpret_cast<const std::byte*>(slot.bytes.data()), length);
  return true;
}

/// A word of a slot, read once whatever the compiler would like.
template <class Word>
[[gnu::always_inline]] inline Word once(const Word& of) noexcept {
  return const_cast<const volatile Word&>(of);
}

/// Puts the bytes that waiting completions carry into place, where `region_of` has their region:
/// before it or the queue pair goes, after which nothing may be written. Under the queue's lock.
template <class RegionOf>
void unload_waiting(completion_queue& in, RegionOf&& region_of) noexcept {
  const std::uint64_t head = in.head.load(std::memory_order_relaxed);
  for (std::uint64_t at = head; at <= head + in.mask; ++at) {
    const std::uint64_t claim = in.claims[at & in.mask].load(std::memory_order_acquire);
    if (what_of(claim) != claimed || position_of(claim) != at) break;
    completion_slot& slot = in.ring[at & in.mask];
    if (!is_full(slot, at) || (once(slot.marks) & carries_bytes) == 0) continue;
    if (!unload(region_of(slot), slot, once(slot.place), once(slot.byte_length))) continue;
    slot.marks = static_cast<std::uint8_t>(slot.marks & ~carries_bytes);
    slot.key = 0;
  }
}

/// Takes the next completion of this process's queue; false when there is none yet. `position` is
/// that of a request in its send queue, times 2 plus 1, or 0. Under the queue's lock.
inline bool take(context& here, completion_queue& from, ibv_wc& into,
                 std::uint64_t& position) noexcept {
  const std::uint64_t at = from.head.load(std::memory_order_relaxed);
  const completion_slot& slot = from.ring[at & from.mask];
  if (!is_full(slot, at)) return false;
  const std::uint8_t marks = once(slot.marks);
  const std::uint8_t status = once(slot.status);
  const std::uint32_t key = once(slot.key);
  const std::uint32_t length = once(slot.byte_length);
  const std::uint64_t place = once(slot.place);
  into.wr_id = slot.wr_id;
  into.status =
      status > IBV_WC_TM_RNDV_INCOMPLETE ? IBV_WC_GENERAL_ERR : static_cast<ibv_wc_status>(status);
  into.opcode = static_cast<ibv_wc_opcode>(slot.opcode);
  into.vendor_err = (marks & carries_bytes) != 0 ? 0 : key;
  into.byte_len = length;
  into.imm_data = slot.immediate;
  into.qp_num = slot.queue_pair;
  into.src_qp = slot.source_queue_pair;
  into.wc_flags = slot.flags;
  into.pkey_index = 0;
  into.slid = 0;
  into.sl = 0;
  into.dlid_path_bits = 0;
  position = (marks & is_of_send) != 0 ? place << 1 | 1 : 0;
  if ((marks & carries_bytes) != 0 && !unload(find_own(here, key, false), slot, place, length) &&
      !unload(find_going(here, key), slot, place, length)) [[unlikely]]
    into.status = IBV_WC_LOC_PROT_ERR;
  pass(from);
  return true;
}

}  // namespace verbena::soft

// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cstdint>

#include <verbena/soft/cause.hpp>
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
  std::uint64_t position = 0;
  cause why = cause::unsaid;
  bool solicited = false;
  bool sending = false;                        ///< of a send queue: `position` says which request
  std::atomic<std::uint64_t>* told = nullptr;  ///< of the receive it is of; see receive_slot
};

/// Puts a completion into a queue, of whatever process. Several may do so at once: a slot is
/// claimed under its claimer's number before the tail moves on, anyone may move the tail, so a
/// claimer that dies blocks nobody and leaves a slot that the queue's owner skips. A full queue
/// overruns: it is marked failed and the completion is lost. False when the queue is gone.
inline bool complete(context& here, std::uint32_t index, const completion& what) noexcept {
  fabric& on = *here.fabric;
  if (index >= completion_queue_limit) return false;
  completion_queue_entry& entry = on.shared().completion_queues[index];
  const fabric::visit visiting{on};
  const ring_view seen = look(on, entry.ring, entry.owner.load(std::memory_order_acquire));
  if (seen.base == nullptr) return false;
  const std::uint64_t mask = seen.mask;
  auto* const ring = reinterpret_cast<completion_slot*>(seen.base);
  for (std::uint64_t tries = 0; tries < 4 * (mask + 1) + 64; ++tries) {
    std::uint64_t tail = entry.tail.load(std::memory_order_acquire);
    completion_slot& slot = ring[tail & mask];
    std::uint64_t turn = slot.turn.load(std::memory_order_acquire);
    if (position_of(turn) != tail || what_of(turn) != vacant) {
      if (position_of(turn) == tail) {  // claimed by another: help the tail on
        entry.tail.compare_exchange_strong(tail, tail + 1, std::memory_order_acq_rel);
        continue;
      }
      if (position_of(turn) > tail) continue;  // the tail has moved on meanwhile
      break;                                   // still holds the completion of a lap ago
    }
    // The head may have passed this tail, which others have moved on since: signed.
    const auto held = static_cast<std::int64_t>(tail - entry.head.load(std::memory_order_acquire));
    if (held >= std::int64_t{entry.limit.load(std::memory_order_relaxed)}) break;
    if (!slot.turn.compare_exchange_strong(turn, make_turn(tail, on.me(), claimed),
                                           std::memory_order_acq_rel)) {
      continue;
    }
    std::uint64_t expected = tail;
    entry.tail.compare_exchange_strong(expected, tail + 1, std::memory_order_acq_rel);
    // Before it can be seen: so whoever dies in between, the receive is told of once.
    if (what.told != nullptr) what.told->store(make_told(index, tail), std::memory_order_release);
    slot.wr_id = what.wr_id;
    slot.status = what.status;
    slot.opcode = what.opcode;
    slot.vendor_error = static_cast<std::uint32_t>(what.why);
    slot.byte_length = what.byte_length;
    slot.immediate = what.immediate;
    slot.queue_pair = what.queue_pair;
    slot.source_queue_pair = what.source;
    slot.flags = what.flags;
    slot.position = what.position << 1 | std::uint64_t{what.sending};
    slot.solicited = what.solicited || what.status != IBV_WC_SUCCESS ? 1 : 0;
    // Sequentially consistent, as is the load in fire(): either this thread sees the queue armed,
    // or the one that armed it sees the completion.
    slot.turn.store(make_turn(tail, on.me(), full), std::memory_order_seq_cst);
    fire(here, entry, what.solicited || what.status != IBV_WC_SUCCESS);
    return true;
  }
  entry.failed.store(1);
  fire(here, entry, true);
  wake(here, entry.owner.load(), async_number);
  return true;
}

/// The completion at `place`, which its claimer did not live to write, is not there: the receive it
/// was of will be flushed. Under the queue's mutex.
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

/// Takes the next completion of this process's queue; false when there is none yet. A slot whose
/// claimer has died is skipped: what it was to say is lost with it. A slot that no one can have
/// left so fails the queue.
inline bool take(context& here, completion_queue& from, ibv_wc& into,
                 std::uint64_t& position) noexcept {
  fabric& on = *here.fabric;
  for (;;) {
    completion_slot& slot = from.ring[from.head & from.mask];
    const std::uint64_t turn = slot.turn.load(std::memory_order_acquire);
    if (position_of(turn) != from.head || what_of(turn) > full) {
      from.entry->failed.store(1);
      wake(here, on.me(), async_number);
      return false;
    }
    if (what_of(turn) == vacant) return false;
    const bool lost = what_of(turn) != full;
    if (lost) {
      if (on.claimer_lives(turn)) return false;
      forget_told(from, from.head);
    } else {
      into.wr_id = slot.wr_id;
      const std::uint32_t status = slot.status;
      into.status = status > IBV_WC_TM_RNDV_INCOMPLETE ? IBV_WC_GENERAL_ERR
                                                       : static_cast<ibv_wc_status>(status);
      into.opcode = static_cast<ibv_wc_opcode>(slot.opcode & 0xff);
      into.vendor_err = slot.vendor_error;
      into.byte_len = slot.byte_length;
      into.imm_data = slot.immediate;
      into.qp_num = slot.queue_pair;
      into.src_qp = slot.source_queue_pair;
      into.wc_flags = slot.flags;
      into.pkey_index = 0;
      into.slid = 0;
      into.sl = 0;
      into.dlid_path_bits = 0;
      position = slot.position;
    }
    slot.turn.store(make_turn(from.head + from.mask + 1, 0, vacant), std::memory_order_release);
    ++from.head;
    from.entry->head.store(from.head, std::memory_order_release);
    if (!lost) return true;
  }
}

}  // namespace verbena::soft

// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <atomic>
#include <cstdint>

#include <verbena/soft/complete.hpp>
#include <verbena/soft/receive.hpp>
#include <verbena/soft/wake.hpp>

namespace verbena::soft {

/// Takes back what is posted to receive on a queue pair that is in ERR or goes. Under its lock.
class flush {
 public:
  flush(context& here, queue_pair& of) noexcept : here_{here}, pair_{of}, on_{*here.fabric} {}

  /// After the move to ERR: what is still posted to receive completes as flushed.
  void receives() {
    if (pair_.receives_flushed || state_of(*pair_.entry) != IBV_QPS_ERR) return;
    pair_.receives_flushed = true;
    if (!drop_receives(true)) pair_.receives_flushed = false;  // looked at again later
    if (pair_.shared_receives != nullptr) wake(here_, on_.me(), async_number);
  }

  /// Takes back everything posted to the queue pair's own receive queue; false where a peer that
  /// lives still holds one.
  bool drop_receives(bool complete_them) {
    receive_queue& own = pair_.receives;
    const ring_view ring{own.slots, own.mask, own.stride};
    taken_receive& each = pair_.receive;
    while (own.entry != nullptr) {
      take_receive(here_, *own.entry, ring, number(), 0, true, each);
      if (each.slot == nullptr) break;
      if (complete_them) tell_flushed(each.wr_id);
      each.finish();
      move_taken(here_, *own.entry, ring, each);
    }
    receive_queue& from =
        pair_.shared_receives == nullptr ? pair_.receives : pair_.shared_receives->queue;
    return drop_abandoned(from, complete_them);
  }

 private:
  std::uint32_t number() const noexcept { return pair_.native.qp_base.qp_num; }

  void tell_flushed(std::uint64_t wr_id) {
    completion what;
    what.wr_id = wr_id;
    what.status = IBV_WC_WR_FLUSH_ERR;
    what.opcode = IBV_WC_RECV;
    what.queue_pair = number();
    complete_here(here_, *pair_.receive_completions, what);
  }

  /// Receives that a peer took for this queue pair before it died.
  bool drop_abandoned(receive_queue& from, bool complete_them) {
    bool all = true;
    for (std::uint64_t at = 0; at <= from.mask; ++at) {
      receive_slot& slot = from.slot(at);
      const std::uint64_t turn = slot.turn.load(std::memory_order_acquire);
      const std::uint32_t taken_for = slot.queue_pair.load(std::memory_order_acquire);
      if (what_of(turn) != claimed || (taken_for != number() && taken_for != 0)) continue;
      if (on_.claimer_lives_now(turn)) {
        all = all && taken_for != number();
        continue;
      }
      const std::uint64_t wr_id = slot.wr_id;
      const bool came = has_been_told(slot);
      std::uint64_t expected = turn;
      if (!slot.turn.compare_exchange_strong(
              expected, make_turn(position_of(turn) + from.mask + 1, 0, vacant))) {
        all = false;  // taken over, or posted again
        continue;
      }
      if (complete_them && !came) tell_flushed(wr_id);
    }
    return all;
  }

  /// Whether the completion of a receive has come, though its taker has not given it back.
  bool has_been_told(const receive_slot& of) const noexcept {
    if (has_been_seen(on_.shared(), of)) return true;
    const completion_queue& in = *pair_.receive_completions;
    const std::uint64_t word = of.told.load(std::memory_order_acquire);
    const std::uint64_t place = (word & ((std::uint64_t{1} << 48) - 1)) - 1;
    const std::uint64_t turn = in.ring[place & in.mask].turn.load(std::memory_order_acquire);
    return word == make_told(in.index, place) && position_of(turn) == place &&
           what_of(turn) == full;
  }

  context& here_;
  queue_pair& pair_;
  fabric& on_;
};

}  // namespace verbena::soft

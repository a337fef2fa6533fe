// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <algorithm>
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

  /// Takes back what is posted to the queue pair's own receive queue, or what the dead have taken
  /// for it from a shared one; false where a peer that lives still holds some. What is completed is
  /// completed in the order of posting: nothing that was posted after what such a peer holds.
  bool drop_receives(bool complete_them) {
    if (pair_.shared_receives != nullptr)
      return drop_abandoned(pair_.shared_receives->queue, complete_them);
    const receive_queue& own = pair_.receives;
    bool all = true;
    const std::uint64_t slots = own.mask + 1;
    for (std::uint64_t at = own.posted - std::min(own.posted, slots); at != own.posted;) {
      switch (drop(own, at, complete_them)) {
        case dropping::done: ++at; break;
        case dropping::raced: break;
        case dropping::held:
          if (complete_them) return false;
          all = false;
          ++at;
      }
    }
    return all;
  }

 private:
  enum class dropping { done, held, raced };

  dropping drop(const receive_queue& own, std::uint64_t at, bool complete_it) {
    receive_slot& slot = own.slot(at);
    std::uint64_t turn = slot.turn.load(std::memory_order_acquire);
    if (position_of(turn) != at || what_of(turn) == vacant) return dropping::done;
    const bool is_taken = what_of(turn) == claimed;
    const std::uint64_t wr_id = slot.wr_id;
    const bool came = is_taken && has_been_told(slot);
    // One that has come is done with: its taker has only to give it back, which wakes nobody.
    if (is_taken && !came && on_.claimer_lives_now(turn)) return dropping::held;
    if (!slot.turn.compare_exchange_strong(turn, make_turn(at + own.mask + 1, 0, vacant)))
      return dropping::raced;
    if (complete_it && !came) tell_flushed(wr_id);
    return dropping::done;
  }

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
  bool drop_abandoned(const receive_queue& from, bool complete_them) {
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

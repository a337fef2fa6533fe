// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "side.hpp"

/// A sender's work step by step, so that it can be stopped between two of them.
namespace soft_test {

/// Takes the next receive of the queue pair of that number, as a sender does before it writes.
inline verbena::soft::taking take(const side& on, std::uint32_t number,
                                  verbena::soft::taken_receive& into) {
  namespace soft = verbena::soft;
  context& here = context::of(on.native);
  soft::segment& shared = here.fabric->shared();
  const soft::queue_pair_entry& pair = shared.queue_pairs[number % soft::queue_pair_limit];
  soft::receive_queue_entry& queue = shared.receive_queues[pair.receive_queue];
  const std::scoped_lock guard{here.fabric->work_on(0)};
  const soft::ring_view ring = soft::look(*here.fabric, queue.ring, queue.owner);
  return soft::take_receive(here, queue, ring, number, 0, true, into);
}

/// Completes a receive taken from the queue pair of that number.
inline void tell(const side& on, std::uint32_t number, const verbena::soft::taken_receive& taken) {
  namespace soft = verbena::soft;
  context& here = context::of(on.native);
  soft::completion what;
  what.wr_id = taken.wr_id;
  what.opcode = IBV_WC_RECV;
  what.queue_pair = number;
  what.told = &taken.slot->told;
  const auto& pair = here.fabric->shared().queue_pairs[number % soft::queue_pair_limit];
  soft::queue_pair unused;
  soft::complete_there(here, unused, pair.owner, pair.completion_queue, what);
}

/// Claims the place of that completion, and says so in the receive, as one that dies before it has
/// written it.
inline void begin_to_tell(const side& on, std::uint32_t number,
                          const verbena::soft::taken_receive& taken) {
  namespace soft = verbena::soft;
  soft::fabric& fabric = *context::of(on.native).fabric;
  soft::segment& shared = fabric.shared();
  const soft::queue_pair_entry& pair = shared.queue_pairs[number % soft::queue_pair_limit];
  const std::uint32_t index = pair.completion_queue;
  soft::completion_queue_entry& queue = shared.completion_queues[index];
  const std::scoped_lock guard{fabric.work_on(0)};
  const soft::ring_view ring = soft::look(fabric, queue.ring, queue.owner);
  auto* const slots = reinterpret_cast<soft::completion_slot*>(ring.base);
  const std::uint64_t at = queue.tail;
  soft::claims_of(slots, ring.mask)[at & ring.mask] =
      soft::make_turn(at, fabric.me(), soft::claimed);
  taken.slot->told = soft::make_told(index, at);
}

}  // namespace soft_test

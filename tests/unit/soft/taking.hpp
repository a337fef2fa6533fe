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

}  // namespace soft_test

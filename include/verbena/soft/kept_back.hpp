// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cstdint>

#include <verbena/soft/complete.hpp>
#include <verbena/soft/objects.hpp>
#include <verbena/soft/sleep.hpp>

/// Completions that a knob keeps back: they are there, and their queue's owner does not see them.
/// All of it under the queue's lock.
namespace verbena::soft {

/// The position of the first completion that is not there yet.
inline std::uint64_t first_missing(const completion_queue& queue) noexcept {
  std::uint64_t at = queue.head.load(std::memory_order_relaxed);
  while (is_full(queue.ring[at & queue.mask], at)) ++at;
  return at;
}

/// Completions before this position are given, if they are there. What is delayed is delayed
/// together with all that was there when it was first looked for.
inline std::uint64_t end_of_given(context& here, completion_queue& queue) noexcept {
  constexpr std::uint64_t all = ~std::uint64_t{0};
  const knobs& by = here.knobs;
  if (by.faults.load(std::memory_order_relaxed) == 0) return all;
  if (by.faulty_queue != 0 && by.faulty_queue != queue.ordinal) return all;
  if (by.hold_completions != 0) return queue.head.load();
  if (by.delay_completions == 0) return all;
  if (queue.delayed_to <= queue.head.load()) {
    queue.delayed_to = first_missing(queue);
    queue.delayed_until = now_ns() + std::int64_t{by.delay_completions} * 1000;
  }
  return now_ns() < queue.delayed_until ? queue.head.load() : queue.delayed_to;
}

/// Lets the queue's sleeper look again when what is kept back may have to be given.
inline void wake_for_kept(context& here, completion_queue& queue) noexcept {
  if (here.knobs.faults.load(std::memory_order_relaxed) == 0) return;
  const std::uint64_t end = end_of_given(here, queue);
  if (queue.native.channel == nullptr || end >= first_missing(queue)) return;
  constexpr std::int64_t glance = 1'000'000;  // nobody tells when a held one is let go
  const bool held = here.knobs.hold_completions != 0;
  set_timer(channel::of(queue.native.channel), held ? now_ns() + glance : queue.delayed_until);
}

}  // namespace verbena::soft

// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cstddef>
#include <cstdint>

#include <verbena/soft/fabric.hpp>

namespace verbena::soft {

/// A queue's ring as this process may use it.
struct ring_view {
  std::byte* base = nullptr;  ///< null where it is gone
  std::uint64_t mask = 0;
  std::uint64_t stride = 0;
  arena_name in{};
  std::uint64_t seal = 0;
};

inline void seal(ring_place& of, std::uint32_t owner, const arena_name& in, std::uint64_t mask,
                 std::uint32_t stride) noexcept {
  of.arena = in.index;
  of.arena_generation = in.generation;
  of.mask = static_cast<std::uint32_t>(mask);
  of.stride = stride;
  of.seal.store(seal_of(owner, in.index, in.generation, mask, stride), std::memory_order_release);
}

/// The ring of a queue of any process, mapped here. Under a fabric::work_lock.
[[gnu::noinline]] inline ring_view look(fabric& on, const ring_place& of,
                                        std::uint32_t owner) noexcept {
  ring_view seen{nullptr,
                 of.mask.load(std::memory_order_relaxed),
                 of.stride.load(std::memory_order_relaxed),
                 {of.arena.load(std::memory_order_relaxed),
                  of.arena_generation.load(std::memory_order_relaxed)},
                 of.seal.load(std::memory_order_acquire)};
  if (owner != 0 &&
      seen.seal == seal_of(owner, seen.in.index, seen.in.generation, seen.mask, seen.stride)) {
    seen.base = on.reach(seen.in, (seen.mask + 1) * seen.stride);
  }
  return seen;
}

/// The same, of a queue that has mostly been looked at before: `last` says what was seen then. No
/// two rings have one seal, and one that goes loses its seal first.
[[gnu::always_inline]] inline const ring_view& look_again(fabric& on, const ring_place& of,
                                                          std::uint32_t owner,
                                                          ring_view& last) noexcept {
  const bool is_as_before = last.base != nullptr &&
                            of.seal.load(std::memory_order_acquire) == last.seal &&
                            on.is_still_at(last.in, last.base);
  if (!is_as_before) [[unlikely]]
    last = look(on, of, owner);
  return last;
}

}  // namespace verbena::soft

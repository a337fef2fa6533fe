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
};

inline void seal(ring_place& of, std::uint32_t owner, const arena_name& in, std::uint64_t mask,
                 std::uint32_t stride) noexcept {
  of.arena = in.index;
  of.arena_generation = in.generation;
  of.mask = static_cast<std::uint32_t>(mask);
  of.stride = stride;
  of.seal.store(seal_of(owner, in.index, in.generation, mask, stride), std::memory_order_release);
}

/// The ring of a queue of any process, mapped here. Under a visit.
inline ring_view look(fabric& on, const ring_place& of, std::uint32_t owner) noexcept {
  const std::uint64_t seal = of.seal.load(std::memory_order_acquire);
  const arena_name in{of.arena.load(std::memory_order_relaxed),
                      of.arena_generation.load(std::memory_order_relaxed)};
  ring_view seen{nullptr, of.mask.load(std::memory_order_relaxed),
                 of.stride.load(std::memory_order_relaxed)};
  if (owner != 0 && seal == seal_of(owner, in.index, in.generation, seen.mask, seen.stride))
    seen.base = on.reach(in, (seen.mask + 1) * seen.stride);
  return seen;
}

}  // namespace verbena::soft

// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cstdint>

#include <verbena/soft/layout.hpp>

namespace verbena::soft {

/// A copy of a region's entry, complete and consistent; `owner` 0 where there is none. What makes
/// and uses one is inlined, so that it stays in registers.
struct region_view {
  std::uint32_t owner = 0;
  std::uint32_t domain = 0;
  std::uint32_t access = 0;
  std::uint64_t base = 0;
  std::uint64_t length = 0;
  arena_name arena{};
  std::uint64_t offset = 0;  ///< in the arena

  constexpr explicit operator bool() const noexcept { return owner != 0; }
  constexpr bool holds(std::uint64_t address, std::uint64_t bytes) const noexcept {
    return address >= base && bytes <= length && address - base <= length - bytes;
  }
  /// Whether a request of this domain may use these bytes in this way.
  constexpr bool permits(std::uint32_t asking, std::uint64_t address, std::uint64_t bytes,
                         std::uint32_t need) const noexcept {
    return owner != 0 && domain == asking && holds(address, bytes) && (access & need) == need;
  }
};

/// A region of another process as it was last seen, by its key.
struct seen_region {
  std::uint32_t key = 0;
  std::uint32_t generation = 0;
  region_view view;
};

}  // namespace verbena::soft

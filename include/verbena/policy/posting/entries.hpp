// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <tuple>

#include <verbena/memory/piece.hpp>
#include <verbena/verbs/ibverbs.hpp>

namespace verbena::posting {

/// Writes the scatter/gather entries of one request. Unrolled here: g++ keeps a loop at -O2.
template <std::size_t Count>
[[gnu::always_inline]] inline void write_entries(ibv_sge* entry,
                                                 const std::array<piece, Count>& pieces) noexcept {
  std::apply(
      [&](const auto&... each) __attribute__((always_inline)) {
        ((entry->addr = reinterpret_cast<std::uintptr_t>(each.data),
          entry->length = static_cast<std::uint32_t>(each.size),
          entry->lkey = static_cast<std::uint32_t>(each.key), ++entry),
         ...);
      },
      pieces);
}

}  // namespace verbena::posting

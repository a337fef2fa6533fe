// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cstdint>

namespace verbena::soft {

/// A word over the words of a shared entry that stay as its owner wrote them. Each is multiplied
/// by an odd number of its own, so a single word that differs is always noticed, more of them but
/// by a chance of 2^-64. The multiplications do not wait for each other.
template <class... Words>
constexpr std::uint64_t seal_of(Words... words) noexcept {
  std::uint64_t sum = 0x243f'6a88'85a3'08d3;
  std::uint64_t factor = 1;
  ((factor *= 0x9e37'79b9'7f4a'7c15, sum += std::uint64_t{words} * factor), ...);
  return sum;
}

}  // namespace verbena::soft

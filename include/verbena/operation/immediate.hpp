// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <bit>
#include <cstdint>

namespace verbena {

/// The 32 bits of an operation with immediate, in host order.
struct immediate_operand {
  std::uint32_t immediate;
};

/// Immediate data as verbs have it, in network order, and back.
constexpr std::uint32_t swapped_immediate(std::uint32_t value) noexcept {
  return std::endian::native == std::endian::little ? __builtin_bswap32(value) : value;
}

}  // namespace verbena

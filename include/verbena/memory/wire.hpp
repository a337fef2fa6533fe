// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>

/// Bytes in network order at fixed places. Offsets are constants of the format: that they are in
/// range is checked by the caller once, against the format's length.
namespace verbena::wire {

template <std::unsigned_integral T>
constexpr void put(std::span<std::byte> bytes, std::size_t offset, T value) noexcept {
  for (std::size_t i = 0; i < sizeof(T); ++i) {
    bytes[offset + i] = static_cast<std::byte>(value >> (8 * (sizeof(T) - 1 - i)));
  }
}

template <std::unsigned_integral T>
constexpr T get(std::span<const std::byte> bytes, std::size_t offset) noexcept {
  T value = 0;
  for (std::size_t i = 0; i < sizeof(T); ++i) {
    value = static_cast<T>((value << 8) | std::to_integer<T>(bytes[offset + i]));
  }
  return value;
}

}  // namespace verbena::wire

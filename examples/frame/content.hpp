// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <stdexcept>

#include <fmt/format.h>

namespace example {

/// The byte at `offset` of message `number`: both sides know it, and no two messages are alike.
constexpr std::byte content(std::uint64_t number, std::size_t offset) noexcept {
  return static_cast<std::byte>(((number << 32 | offset) + 1) * 0x9e37'79b9'7f4a'7c15 >> 56);
}

inline void fill(std::span<std::byte> message, std::uint64_t number) noexcept {
  for (std::size_t i = 0; i < message.size(); ++i) message[i] = content(number, i);
}

/// Throws unless the message is the one of this number, whole.
inline void check(std::span<const std::byte> message, std::uint64_t number, std::size_t size) {
  if (message.size() != size) {
    throw std::runtime_error{
        fmt::format("message {} has {} bytes, expected were {}", number, message.size(), size)};
  }
  for (std::size_t i = 0; i < size; ++i) {
    if (message[i] == content(number, i)) continue;
    throw std::runtime_error{fmt::format("byte {} of message {} is {:#04x}, expected was {:#04x}",
                                         i, number, std::to_integer<unsigned>(message[i]),
                                         std::to_integer<unsigned>(content(number, i)))};
  }
}

}  // namespace example

// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cstdint>

#include <verbena/operation/operation.hpp>

namespace verbena {

/// What a wr_id holds. The word is written when a request is posted and is all that is believed
/// of its completion:
///   63..40 token | 39..36 operation | 35 apart | 34..32 generation | 31..16 owner | 15..0
///   position
struct work_request_id {
  static constexpr std::uint32_t token_limit = std::uint32_t{1} << 24;
  static constexpr std::uint32_t owner_mask = 0xf'ffff;
  /// Joins the owner of a receive on transport::ud or of a ring: so that it is told apart where
  /// owners are compared anyway, and costs the others nothing.
  static constexpr std::uint32_t apart = 0x8'0000;
  /// What a queue pair or a ring has as its owner.
  static constexpr std::uint32_t own_mask = owner_mask & ~apart;

  std::uint64_t word;

  /// `owner` is a queue pair's place in its completion queue with the place's generation above it.
  static constexpr work_request_id make(operation of, std::uint32_t owner, std::uint32_t position,
                                        std::uint32_t token) noexcept {
    const std::uint64_t what = static_cast<std::uint8_t>(of);
#if defined(__clang__)
    // Last, when the token's register is free for the constant.
    return {(std::uint64_t{token} << 40 | (position & 0xffffU) | std::uint64_t{owner} << 16) |
            what << 36};
#else
    // The operation joins the owner while that is a small number: one instruction less.
    return {(std::uint64_t{token} << 40) | ((owner | what << 20) << 16) | (position & 0xffffU)};
#endif
  }

  constexpr std::uint32_t token() const noexcept { return static_cast<std::uint32_t>(word >> 40); }
  constexpr operation what() const noexcept { return static_cast<operation>((word >> 36) & 0xf); }
  constexpr std::uint32_t owner() const noexcept {
    return static_cast<std::uint32_t>(word >> 16) & owner_mask;
  }
  /// The same, whether or not it is told apart.
  constexpr std::uint32_t queue_pair() const noexcept { return owner() & own_mask; }
  /// Whether it is of this operation and this owner: one comparison.
  constexpr bool is(operation of, std::uint32_t its_owner) const noexcept {
    const std::uint32_t both = static_cast<std::uint32_t>(word >> 16) & 0xff'ffff;
    return both == (its_owner | static_cast<std::uint32_t>(of) << 20);
  }
  constexpr std::uint32_t place() const noexcept { return owner() & 0xffffU; }
  constexpr std::uint16_t position() const noexcept { return static_cast<std::uint16_t>(word); }
};

}  // namespace verbena

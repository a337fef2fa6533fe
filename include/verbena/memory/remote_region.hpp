// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cassert>
#include <cstddef>
#include <cstdint>
#include <span>

#include <verbena/memory/keys.hpp>
#include <verbena/memory/rights.hpp>

namespace verbena {

/// A part of the peer's memory, with what the peer allows in the type. Trivially copyable; valid
/// as long as the peer keeps it registered. Sizes count elements.
template <class T, rights Rights>
class remote_region {
 public:
  using element_type = T;
  static constexpr rights granted = Rights;

  constexpr remote_region(std::uint64_t address, std::size_t count, rkey key) noexcept
      : address_{address}, count_{count}, key_{key} {}

  constexpr std::uint64_t address() const noexcept { return address_; }
  constexpr std::size_t size() const noexcept { return count_; }
  constexpr std::size_t size_bytes() const noexcept { return count_ * sizeof(T); }
  constexpr rkey key() const noexcept { return key_; }

  /// Parts; the bounds are a precondition, as with std::span.
  constexpr remote_region first(std::size_t count) const noexcept { return subspan(0, count); }
  constexpr remote_region subspan(std::size_t offset,
                                  std::size_t count = std::dynamic_extent) const noexcept {
    assert(offset <= count_ && (count == std::dynamic_extent || count <= count_ - offset));
    return {address_ + offset * sizeof(T), count == std::dynamic_extent ? count_ - offset : count,
            key_};
  }

 private:
  std::uint64_t address_;
  std::size_t count_;
  rkey key_;
};

}  // namespace verbena

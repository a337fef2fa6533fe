// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <ranges>
#include <span>
#include <type_traits>

#include <verbena/memory/keys.hpp>
#include <verbena/memory/rights.hpp>

namespace verbena {

/// Memory that is registered nowhere, for sends and writes of at most options::inline_bytes: they
/// take the bytes into the request, so the memory is the user's again as soon as post returns. An
/// object, or the elements of a contiguous range. Refers to the memory.
template <class T, std::size_t Count>
class unregistered {
 public:
  static_assert(std::is_trivially_copyable_v<T>,
                "what is sent has to be trivially copyable, as registered memory has to");
  using element_type = T;
  static constexpr rights granted = rights::local_read;

  constexpr explicit unregistered(const T& object) noexcept
    requires(Count == 1 && !std::ranges::range<T>)
      : elements_{&object, 1} {}
  template <std::ranges::contiguous_range Range>
  constexpr explicit unregistered(const Range& range) noexcept : elements_{std::span{range}} {}

  constexpr const T* data() const noexcept { return elements_.data(); }
  constexpr std::size_t size() const noexcept { return elements_.size(); }
  constexpr std::size_t size_bytes() const noexcept { return elements_.size_bytes(); }
  std::byte* bytes() const noexcept {
    return reinterpret_cast<std::byte*>(const_cast<std::remove_const_t<T>*>(elements_.data()));
  }
  constexpr lkey key() const noexcept { return lkey{0}; }
  constexpr std::uint32_t domain() const noexcept { return 0; }

 private:
  std::span<const T, Count> elements_;
};

template <class T>
  requires(!std::ranges::range<T>)
unregistered(const T&) -> unregistered<T, 1>;
template <std::ranges::contiguous_range Range>
unregistered(const Range&)
    -> unregistered<std::ranges::range_value_t<Range>,
                    decltype(std::span{std::declval<const Range&>()})::extent>;

template <class T>
inline constexpr bool is_unregistered = false;
template <class T, std::size_t Count>
inline constexpr bool is_unregistered<unregistered<T, Count>> = true;

template <class T, std::size_t Count>
constexpr const unregistered<T, Count>& view_of(const unregistered<T, Count>& memory) noexcept {
  return memory;
}

}  // namespace verbena

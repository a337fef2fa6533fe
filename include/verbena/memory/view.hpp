// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <type_traits>

#include <verbena/memory/keys.hpp>
#include <verbena/memory/rights.hpp>

namespace verbena {

/// A part of registered memory: a span with its key and its rights. Trivially copyable; valid as
/// long as the owner it came from. Sizes count elements.
template <class T, rights Rights>
class view {
 public:
  static_assert(std::is_trivially_copyable_v<T>,
                "registered memory holds trivially copyable elements");
  using element_type = T;
  static constexpr rights granted = Rights;

  constexpr view(std::span<T> elements, lkey key, std::uint32_t domain) noexcept
      : elements_{elements}, key_{key}, domain_{domain} {}

  constexpr T* data() const noexcept { return elements_.data(); }
  constexpr std::size_t size() const noexcept { return elements_.size(); }
  constexpr std::size_t size_bytes() const noexcept { return elements_.size_bytes(); }
  constexpr std::span<T> elements() const noexcept { return elements_; }
  constexpr T& operator[](std::size_t index) const noexcept { return elements_[index]; }
  constexpr auto begin() const noexcept { return elements_.begin(); }
  constexpr auto end() const noexcept { return elements_.end(); }

  /// Parts; the bounds are a precondition, as with std::span.
  constexpr view first(std::size_t count) const noexcept {
    return {elements_.first(count), key_, domain_};
  }
  constexpr view last(std::size_t count) const noexcept {
    return {elements_.last(count), key_, domain_};
  }
  constexpr view subspan(std::size_t offset,
                         std::size_t count = std::dynamic_extent) const noexcept {
    return {elements_.subspan(offset, count), key_, domain_};
  }

  /// What one scatter/gather entry is made of.
  std::byte* bytes() const noexcept {
    return reinterpret_cast<std::byte*>(const_cast<std::remove_const_t<T>*>(elements_.data()));
  }
  constexpr lkey key() const noexcept { return key_; }

  /// The number of the protection domain it was registered in.
  constexpr std::uint32_t domain() const noexcept { return domain_; }

 private:
  std::span<T> elements_;
  lkey key_;
  std::uint32_t domain_;
};

}  // namespace verbena

// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <type_traits>
#include <utility>

#include <verbena/memory/unregistered.hpp>
#include <verbena/memory/view.hpp>

namespace verbena {

template <class T>
inline constexpr bool is_view = false;
template <class T, rights Rights>
inline constexpr bool is_view<view<T, Rights>> = true;

/// The view of a view, a buffer or a registration.
template <class T, rights Rights>
constexpr const view<T, Rights>& view_of(const view<T, Rights>& memory) noexcept {
  return memory;
}
template <class Owner>
  requires requires(const Owner& owner) {
    requires is_view<std::remove_cvref_t<decltype(owner.view())>>;
  }
constexpr decltype(auto) view_of(const Owner& owner) noexcept {
  return owner.view();
}

/// What an operation takes as local memory: a view, an owner that has one, or unregistered memory.
template <class T>
concept local_memory = requires(const T& memory) { view_of(memory); };

/// The rights that local memory was registered with.
template <local_memory T>
inline constexpr rights rights_of =
    std::remove_cvref_t<decltype(view_of(std::declval<const T&>()))>::granted;

}  // namespace verbena

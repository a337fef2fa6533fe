// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <concepts>
#include <type_traits>
#include <utility>

#include <verbena/policy/errors.hpp>

namespace verbena::errors {

/// Failing calls tell F, a default-constructible function of the program, and then return as
/// errors::returning does: set-up a result<T>, post its value. F runs on the thread of the call; it
/// may log, count, throw, or never return.
template <class F>
struct handled_by {
  static_assert(std::is_default_constructible_v<F> && std::invocable<F, const error&>,
                "errors::handled_by<F> calls F{}(const vb::error&): F must be "
                "default-constructible and take an error");
  static constexpr bool constructs = false;

  template <class T>
  [[nodiscard]] static result<T> deliver(result<T>&& of) {
    if (!of) [[unlikely]]
      failed(of.error());
    return std::move(of);
  }
  [[gnu::cold]] static void failed(const error& value) { F{}(value); }
};

}  // namespace verbena::errors

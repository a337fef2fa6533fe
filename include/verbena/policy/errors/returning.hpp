// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <utility>

#include <verbena/policy/errors.hpp>

namespace verbena::errors {

/// Set-up calls return result<T>; calls on the hot path return their value and do nothing else.
/// Objects whose making may fail are made by a static `open` instead of a constructor.
struct returning {
  static constexpr bool constructs = false;

  template <class T>
  [[nodiscard]] static result<T> deliver(result<T>&& of) {
    return std::move(of);
  }
  static void failed(const error&) noexcept {}
};

static_assert(errors_policy<returning>);

}  // namespace verbena::errors

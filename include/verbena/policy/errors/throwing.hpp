// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <utility>

#include <verbena/policy/errors.hpp>

namespace verbena::errors {

/// Failing calls throw verbena::failure. "Queue full" is no failure: post returns it.
struct throwing {
  static constexpr bool constructs = true;

  template <class T>
  static T deliver(result<T>&& of) {
    static_assert(VERBENA_EXCEPTIONS || sizeof(T*) == 0,
                  "errors::throwing needs exceptions: with -fno-exceptions name errors::returning");
    if (!of) [[unlikely]]
      raise(std::move(of).error());
    return std::move(of).value();
  }
  static void deliver(result<void>&& of) {
    if (!of) [[unlikely]]
      raise(std::move(of).error());
  }
  [[noreturn]] static void failed(error value) { raise(std::move(value)); }
};

static_assert(errors_policy<throwing> || !VERBENA_EXCEPTIONS);

}  // namespace verbena::errors

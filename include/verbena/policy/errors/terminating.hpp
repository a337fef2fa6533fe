// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cstdio>
#include <cstdlib>
#include <utility>

#include <verbena/policy/errors.hpp>

namespace verbena::errors {

/// Failing calls print one line on stderr and abort: for programs that can not go on anyway, and
/// where exceptions are off. "Queue full" is no failure: post returns it.
struct terminating {
  static constexpr bool constructs = true;

  template <class T>
  static T deliver(result<T>&& of) {
    if (!of) [[unlikely]]
      failed(std::move(of).error());
    return std::move(of).value();
  }
  static void deliver(result<void>&& of) {
    if (!of) [[unlikely]]
      failed(std::move(of).error());
  }
  [[noreturn, gnu::cold]] static void failed(const error& value) {
    std::fprintf(stderr, "verbena: %s\n", value.message().c_str());
    std::abort();
  }
};

static_assert(errors_policy<terminating>);

}  // namespace verbena::errors

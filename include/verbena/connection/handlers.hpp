// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <concepts>
#include <utility>

#include <verbena/connection/completed.hpp>
#include <verbena/connection/failed.hpp>

namespace verbena {

/// Functions that are told of completions, chosen by what they take: completed<receive>,
/// completed<write>, …, failed. Made by on().
template <class... Functions>
struct handlers : Functions... {
  using Functions::operator()...;
};

/// A handler set from functions, each taking one kind of completion. A kind without a function is
/// retired silently; failed must have one, so that no failure goes unseen.
template <class... Functions>
constexpr handlers<Functions...> on(Functions... functions) {
  static_assert(std::invocable<handlers<Functions...>&, failed>,
                "a handler set needs a function for vb::failed: a failure must not go unseen");
  return {std::move(functions)...};
}

}  // namespace verbena

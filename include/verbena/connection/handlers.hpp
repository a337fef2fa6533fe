// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <tuple>
#include <type_traits>
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
/// retired silently; failed must have one, so that no failure goes unseen. A function for failed
/// that is trivially copyable and callable when const may be called as a copy: what it counts lies
/// elsewhere, by reference.
template <class... Functions>
constexpr handlers<Functions...> on(Functions... functions) {
  static_assert(std::invocable<handlers<Functions...>&, failed>,
                "a handler set needs a function for vb::failed: a failure must not go unseen");
  return {std::move(functions)...};
}

/// What of a handler set takes failures: one function where only that does, else the whole.
template <class Handlers>
constexpr Handlers& failure_handler(Handlers& all) noexcept {
  return all;
}
template <class... Functions>
  requires((int{std::invocable<Functions&, failed>} + ...) == 1)
constexpr auto& failure_handler(handlers<Functions...>& all) noexcept {
  constexpr bool takes[]{std::invocable<Functions&, failed>...};
  constexpr auto at = static_cast<std::size_t>(std::ranges::find(takes, true) - takes);
  return static_cast<std::tuple_element_t<at, std::tuple<Functions...>>&>(all);
}

/// How a failure handler is given to a function that is not inlined: by copy where nobody can tell
/// and it fits registers. By reference it lies in memory, on the way that succeeds too.
template <class Handler>
using by_copy_or_reference = std::conditional_t<std::is_trivially_copyable_v<Handler> &&
                                                    sizeof(Handler) <= 2 * sizeof(void*) &&
                                                    std::invocable<const Handler&, failed>,
                                                const Handler, Handler&>;

}  // namespace verbena

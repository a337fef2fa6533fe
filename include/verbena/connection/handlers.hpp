// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <tuple>
#include <type_traits>
#include <utility>

#include <verbena/connection/completion_kinds.hpp>

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
constexpr auto on(Functions... functions) {
  constexpr bool objects = (std::is_class_v<Functions> && ...);
  static_assert(objects, "on() takes function objects: write a lambda that calls the function");
  if constexpr (objects) {
    static_assert((std::invocable<Functions&, failed> || ...),
                  "a handler set needs a function for vb::failed: a failure must not go unseen");
    static_assert((all_kinds::reach<Functions> && ...),
                  "a function of a handler set is never called: it takes vb::failed or "
                  "vb::completed<...>, by value or by const reference");
    static_assert(all_kinds::tell_apart<handlers<Functions...>, Functions...>,
                  "two functions of a handler set take the same kind of completion");
    return handlers<Functions...>{std::move(functions)...};
  }
}

/// Refuses what poll and wait can not tell of completions, in one sentence.
template <class Handlers>
struct usable_handlers {
  using set = std::remove_cvref_t<Handlers>;
  static_assert(
      std::invocable<set&, failed>,
      "poll and wait take a handler set: vb::on(functions...), one of them for vb::failed");
  static_assert(!std::is_const_v<std::remove_reference_t<Handlers>> ||
                    all_kinds::reach_as_const<set>,
                "a const handler set can not call a function that is mutable: make the set or the "
                "function the other");
  static constexpr bool value = true;
};

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

// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cstddef>
#include <tuple>
#include <type_traits>
#include <utility>

#include <verbena/memory/local_memory.hpp>
#include <verbena/memory/rights.hpp>
#include <verbena/memory/unregistered.hpp>

namespace verbena {

/// How an operation holds memory until it is posted: the view of memory with a name is referred
/// to, that of a temporary copied, as std::views::all does it. Copies would be loaded before the
/// first entry is written, and a chain has more fields than there are registers.
template <class Memory>
using held =
    std::conditional_t<std::is_lvalue_reference_v<Memory>,
                       decltype(view_of(std::declval<const Memory&>())),
                       std::remove_cvref_t<decltype(view_of(std::declval<const Memory&>()))>>;

/// Several local pieces for one operation, gathered from or scattered to in the order given. Has
/// the rights that all of them have.
template <class... Held>
class pieces {
 public:
  static constexpr std::size_t count = sizeof...(Held);
  static constexpr rights granted = static_cast<rights>(
      (0xffU & ... & static_cast<unsigned>(rights_of<std::remove_cvref_t<Held>>)));
  static constexpr bool has_unregistered = (is_unregistered<std::remove_cvref_t<Held>> || ...);

  template <class... Memory>
    requires(sizeof...(Memory) == count && (local_memory<std::remove_cvref_t<Memory>> && ...))
  constexpr explicit pieces(Memory&&... memory) noexcept : views_{view_of(memory)...} {
    static_assert(count > 0, "pieces{} without memory: a request has one piece at least");
  }

  template <std::size_t Index>
  [[gnu::always_inline]] constexpr const auto& view() const noexcept {
    return std::get<Index>(views_);
  }

 private:
  std::tuple<Held...> views_;
};

template <class... Memory>
  requires(local_memory<std::remove_cvref_t<Memory>> && ...)
pieces(Memory&&...) -> pieces<held<Memory>...>;

/// The local memory of a request that has none.
struct no_pieces {
  static constexpr std::size_t count = 0;
  static constexpr rights granted{0xff};
  static constexpr bool has_unregistered = false;
};

template <class T>
inline constexpr bool is_pieces = false;
template <class... Held>
inline constexpr bool is_pieces<pieces<Held...>> = true;

/// What an operation is given as its local memory: memory, or pieces of it.
template <class T>
concept local_argument = local_memory<std::remove_cvref_t<T>> || is_pieces<std::remove_cvref_t<T>>;

/// An operation's local memory as pieces.
template <local_argument Local>
constexpr auto as_pieces(Local&& local) noexcept {
  if constexpr (is_pieces<std::remove_cvref_t<Local>>) {
    return local;
  } else {
    return pieces{std::forward<Local>(local)};
  }
}

template <class Local>
using pieces_of = decltype(as_pieces(std::declval<Local>()));

}  // namespace verbena

// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <array>
#include <cstddef>
#include <utility>

#include <verbena/memory/local_memory.hpp>
#include <verbena/memory/piece.hpp>
#include <verbena/memory/rights.hpp>

namespace verbena {

/// Several local pieces for one operation, gathered from or scattered to in the order given. Has
/// the rights that all of them have.
template <std::size_t Count, rights Rights>
struct pieces {
  static constexpr std::size_t count = Count;
  static constexpr rights granted = Rights;

  std::array<piece, Count> entries;

  template <local_memory... Memory>
    requires(sizeof...(Memory) == Count)
  constexpr explicit pieces(const Memory&... memory) noexcept
      : entries{view_of(memory).piece()...} {}
};

/// The rights that all of the given memory has.
template <local_memory... Memory>
inline constexpr rights common_rights =
    static_cast<rights>((0xffU & ... & static_cast<unsigned>(rights_of<Memory>)));

template <local_memory... Memory>
pieces(const Memory&...) -> pieces<sizeof...(Memory), common_rights<Memory...>>;

/// As pieces: what an operation is given as its local memory.
template <std::size_t Count, rights Rights>
constexpr pieces<Count, Rights> as_pieces(const pieces<Count, Rights>& of) noexcept {
  return of;
}
template <local_memory Memory>
constexpr auto as_pieces(const Memory& memory) noexcept {
  return pieces{memory};
}

template <class Local>
using pieces_of = decltype(as_pieces(std::declval<const Local&>()));

}  // namespace verbena

// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <utility>

#include <verbena/operation/atomic_target.hpp>
#include <verbena/operation/operation.hpp>
#include <verbena/verbs/ibverbs.hpp>

namespace verbena::posting {

/// Where the entries of request `index` begin in the array of a chain.
template <class... Requests>
constexpr std::size_t first_piece(std::size_t index) noexcept {
  const std::array<std::size_t, sizeof...(Requests)> counts{Requests::piece_count...};
  std::size_t before = 0;
  for (std::size_t i = 0; i < index; ++i) before += counts[i];
  return before;
}

/// The bytes that a piece's entry says: of an atomic those that it changes.
template <std::size_t Index, class Request>
[[gnu::always_inline]] inline std::uint32_t length_of(const Request& request) noexcept {
  if constexpr (is_atomic(Request::what)) return atomic_size;
  return static_cast<std::uint32_t>(request.template local<Index>().size_bytes());
}

/// Writes one scatter/gather entry. The request is asked for each field on its own: fields loaded
/// together need a register each.
template <std::size_t Index, class Request>
[[gnu::always_inline]] inline void write_entry(ibv_sge& entry, const Request& request) noexcept {
  entry.addr = reinterpret_cast<std::uintptr_t>(request.template local<Index>().data());
  entry.length = length_of<Index>(request);
  entry.lkey = static_cast<std::uint32_t>(request.template local<Index>().key());
}

/// How many entries a chain has.
template <class... Requests>
inline constexpr std::size_t piece_sum = (std::size_t{0} + ... + Requests::piece_count);

/// Writes the entries of one request. Unrolled here: g++ keeps a loop at -O2.
template <class Request>
[[gnu::always_inline]] inline void write_entries(ibv_sge* entries,
                                                 const Request& request) noexcept {
  [&]<std::size_t... Index>(std::index_sequence<Index...>) __attribute__((always_inline)) {
    (write_entry<Index>(entries[Index], request), ...);
  }(std::make_index_sequence<Request::piece_count>{});
}

}  // namespace verbena::posting

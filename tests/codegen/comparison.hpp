// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <type_traits>
#include <vector>

/// One function under measurement: where it begins, and a call of it with fixed arguments that
/// returns what it did: its result, its books, what it gave to the provider.
struct measured {
  const void* entry = nullptr;
  std::function<std::vector<std::uint64_t>()> call;
  /// Calls it so many times with these arguments and nothing around it, each time on the books as
  /// they are before; returns the last result. For who measures time.
  std::function<std::uint64_t(std::uint64_t rounds)> repeat;
};

/// What `measured::repeat` does. Both sides have books of the same size, which are restored whole.
template <class Books, std::size_t Count, class Result, class... Parameters>
[[gnu::noinline]] std::uint64_t repeat(std::uint64_t rounds, const std::array<Books*, Count>& books,
                                       Result (*function)(Parameters...),
                                       std::type_identity_t<Parameters>... arguments) {
  static_assert(sizeof(Books) == 64);
  std::array<Books, Count> before;
  for (std::size_t i = 0; i < Count; ++i) before[i] = *books[i];
  asm volatile("" : "+r"(function));  // what it does is not known here
  std::uint64_t last = 0;
  for (; rounds != 0; --rounds) {
    last = std::bit_cast<std::uint64_t>(function(arguments...));
    for (std::size_t i = 0; i < Count; ++i) *books[i] = before[i];
  }
  return last;
}

/// verbena's function, the twin it must not be worse than, and the usual way for the report.
struct comparison {
  std::string name;
  std::function<void()> prepare;  ///< the same state for each of them
  unsigned calls;                 ///< on the success path
  measured verbena;
  measured twin;
  measured usual;
  double most = 0;  ///< of the usual way's instructions that verbena may take, 0 for any
};

std::vector<comparison> post_comparisons();
std::vector<comparison> built_comparisons();
std::vector<comparison> prepared_comparisons();
std::vector<comparison> datagram_comparisons();
std::vector<comparison> poll_comparisons();

/// What handlers call where the compiler must not look: counted as a call, its body is not.
void opaque(std::uint64_t value);

// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

/// One function under measurement: where it begins, and a call of it with fixed arguments that
/// returns what it did: its result, its books, what it gave to the provider.
struct measured {
  const void* entry = nullptr;
  std::function<std::vector<std::uint64_t>()> call;
};

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

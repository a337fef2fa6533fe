// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

#include <verbena/connection/queue_pair_state.hpp>

namespace verbena {

/// Queue pairs by their numbers, which completions of shared receives tell them by. Adapters give
/// numbers out in a row, so a number's last bits nearly always lead to its place at once.
class queue_pair_table {
 public:
  /// For at most `queue_pairs` at a time.
  explicit queue_pair_table(std::uint32_t queue_pairs)
      : entries_(std::bit_ceil(std::size_t{queue_pairs} * 2)) {}

  void add(std::uint32_t number, queue_pair_state& of) noexcept {
    std::size_t at = number & mask();
    while (entries_[at].of != nullptr) at = (at + 1) & mask();
    entries_[at] = {&of, number};
  }

  /// Those behind it in its row close up, so that they are found without it.
  void remove(std::uint32_t number) noexcept {
    std::size_t at = place_of(number);
    if (entries_[at].of == nullptr) return;
    entries_[at] = {};
    for (at = (at + 1) & mask(); entries_[at].of != nullptr; at = (at + 1) & mask()) {
      const entry moved = entries_[at];
      entries_[at] = {};
      add(moved.number, *moved.of);
    }
  }

  /// Null for a number that nobody has, or nobody any more.
  queue_pair_state* find(std::uint32_t number) const noexcept {
    return entries_[place_of(number)].of;
  }

  void fail(status why) noexcept {
    for (const entry& each : entries_) {
      if (each.of != nullptr) each.of->fail(why);
    }
  }

 private:
  struct entry {
    queue_pair_state* of = nullptr;
    std::uint32_t number = 0;
  };

  std::size_t mask() const noexcept { return entries_.size() - 1; }
  std::size_t place_of(std::uint32_t number) const noexcept {
    std::size_t at = number & mask();
    while (entries_[at].of != nullptr && entries_[at].number != number) at = (at + 1) & mask();
    return at;
  }

  std::vector<entry> entries_;  // at least half of them empty
};

}  // namespace verbena

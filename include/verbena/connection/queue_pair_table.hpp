// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>

#include <verbena/connection/queue_pair_state.hpp>

namespace verbena {

/// Queue pairs by their numbers, which completions of shared receives tell them by. Adapters give
/// numbers out in a row, so a number's last bits nearly always lead to its place at once.
class queue_pair_table {
 public:
  /// For at most `queue_pairs` at a time.
  explicit queue_pair_table(std::uint32_t queue_pairs)
      : mask_{std::bit_ceil(std::size_t{queue_pairs} * 2) - 1},
        entries_{std::make_unique<entry[]>(mask_ + 1)} {}

  void add(std::uint32_t number, queue_pair_state& of) noexcept {
    std::size_t at = number & mask_;
    while (entries_[at].of != nullptr) at = (at + 1) & mask_;
    entries_[at] = {&of, number};
  }

  /// Those behind it in its row close up, so that they are found without it.
  void remove(std::uint32_t number) noexcept {
    std::size_t at = place_of(number);
    if (entries_[at].of == nullptr) return;
    entries_[at] = {};
    for (at = (at + 1) & mask_; entries_[at].of != nullptr; at = (at + 1) & mask_) {
      const entry moved = entries_[at];
      entries_[at] = {};
      add(moved.number, *moved.of);
    }
  }

  /// Null for a number that nobody has, or nobody any more.
  [[gnu::always_inline]] queue_pair_state* find(std::uint32_t number) const noexcept {
    return entries_[place_of(number)].of;
  }

  void fail(status why) noexcept {
    for (std::size_t at = 0; at <= mask_; ++at) {
      if (entries_[at].of != nullptr) entries_[at].of->fail(why);
    }
  }

 private:
  struct entry {
    queue_pair_state* of = nullptr;
    std::uint32_t number = 0;
  };

  [[gnu::always_inline]] std::size_t place_of(std::uint32_t number) const noexcept {
    std::size_t at = number & mask_;
    while (entries_[at].of != nullptr && entries_[at].number != number) at = (at + 1) & mask_;
    return at;
  }

  std::size_t mask_;
  std::unique_ptr<entry[]> entries_;  // at least half of them empty
};

}  // namespace verbena

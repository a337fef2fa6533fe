// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <array>
#include <cstddef>
#include <deque>
#include <optional>

#include "call.hpp"

namespace fabricated {

/// Which calls fail, with what, and how often each was made.
class refusals {
 public:
  /// After `skip` calls that go well the next `times` fail with `error`. What returns an errno
  /// returns it as it is given, sign included; what returns null or -1 sets errno to it, and sets
  /// nothing for 0.
  void add(call of, int error, unsigned times = 1, unsigned skip = 0) {
    planned_[index(of)].push_back({error, times, skip});
  }
  void clear(call of) { planned_[index(of)].clear(); }

  unsigned count(call of) const { return counts_[index(of)]; }

  /// Counts one call and tells what it fails with.
  std::optional<int> next(call of) {
    ++counts_[index(of)];
    auto& planned = planned_[index(of)];
    if (planned.empty()) return {};
    plan& first = planned.front();
    if (first.skip > 0) {
      --first.skip;
      return {};
    }
    const int error = first.error;
    if (--first.times == 0) planned.pop_front();
    return error;
  }

 private:
  struct plan {
    int error;
    unsigned times;
    unsigned skip;
  };
  static std::size_t index(call of) { return static_cast<std::size_t>(of); }

  std::array<std::deque<plan>, call_count> planned_;
  std::array<unsigned, call_count> counts_{};
};

}  // namespace fabricated

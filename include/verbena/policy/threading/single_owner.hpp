// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <verbena/policy/threading.hpp>

namespace verbena::threading {

/// One thread at a time uses a connection and its completion queue: no lock, no atomic.
struct single_owner {
  /// Locks nothing.
  struct mutex {
    static constexpr void lock() noexcept {}
    static constexpr void unlock() noexcept {}
  };
};

static_assert(threading_policy<single_owner>);

}  // namespace verbena::threading

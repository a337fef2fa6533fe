// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <verbena/policy/threading.hpp>
#include <verbena/policy/threading/one_at_a_time.hpp>

namespace verbena::threading {

/// One thread at a time uses a connection and its completion queue: no lock, no atomic, and a
/// thread domain where the provider has one. Builds with assertions end when two threads are found
/// posting at once.
struct single_owner {
  using mutex = one_at_a_time;
  static constexpr bool any_thread = false;
};

static_assert(threading_policy<single_owner>);

}  // namespace verbena::threading

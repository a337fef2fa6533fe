// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <mutex>

#include <verbena/policy/threading.hpp>

namespace verbena::threading {

/// Any thread posts, one at a time polls or waits: the work request's place in the queue, its
/// wr_id and the provider's call are one critical section, so that requests are on the wire in the
/// order of their positions. Connecting, moving and closing are still for one thread alone.
struct shared {
  using mutex = std::mutex;
  static constexpr bool any_thread = true;
};

static_assert(threading_policy<shared>);

}  // namespace verbena::threading

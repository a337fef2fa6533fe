// SPDX-License-Identifier: BSL-1.0
#include <mutex>

#include <verbena/policy/policy_set.hpp>
#include <verbena/policy/threading.hpp>

namespace vb = verbena;

// The smallest threading: any mutex will do.
struct smallest {
  struct mutex {
    void lock() {}
    void unlock() {}
  };
};
static_assert(vb::threading_policy<smallest>);
static_assert(std::is_same_v<vb::policies<smallest>::threading, smallest>);

struct with_std {
  using mutex = std::recursive_mutex;
};
static_assert(vb::threading_policy<with_std>);

struct without_unlock {
  struct mutex {
    void lock() {}
  };
};
static_assert(!vb::threading_policy<without_unlock>);

// The default costs no room.
static_assert(std::is_empty_v<vb::threading::single_owner::mutex>);

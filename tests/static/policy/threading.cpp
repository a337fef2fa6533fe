// SPDX-License-Identifier: BSL-1.0
#include <mutex>

#include <verbena/policy/policy_set.hpp>
#include <verbena/policy/threading.hpp>
#include <verbena/policy/threading/shared.hpp>

namespace vb = verbena;

// The smallest threading: any mutex will do.
struct smallest {
  struct mutex {
    void lock() {}
    void unlock() {}
  };
  static constexpr bool any_thread = true;
};
static_assert(vb::threading_policy<smallest>);
static_assert(std::is_same_v<vb::policies<smallest>::threading, smallest>);

struct with_std {
  using mutex = std::recursive_mutex;
  static constexpr bool any_thread = true;
};
static_assert(vb::threading_policy<with_std>);

struct without_unlock {
  struct mutex {
    void lock() {}
  };
  static constexpr bool any_thread = true;
};
static_assert(!vb::has_mutex<without_unlock> && !vb::threading_policy<without_unlock>);

struct without_shared {
  using mutex = std::mutex;
};
static_assert(!vb::tells_whether_any_thread_posts<without_shared> &&
              !vb::threading_policy<without_shared>);

// The default costs a byte.
static_assert(sizeof(vb::threading::single_owner::mutex) == 1);
static_assert(!vb::threading::single_owner::any_thread && vb::threading::shared::any_thread);

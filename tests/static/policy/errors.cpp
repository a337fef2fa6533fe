// SPDX-License-Identifier: BSL-1.0
#include <optional>

#include <verbena/policy/errors.hpp>
#include <verbena/policy/policy_set.hpp>

namespace vb = verbena;

// The smallest way with errors, which gives what it likes: here an optional.
struct smallest {
  static constexpr bool constructs = false;
  template <class T>
  static std::optional<T> deliver(vb::result<T>&& of) {
    if (!of) return {};
    return std::move(of).value();
  }
  static void failed(const vb::error&) {}
};
static_assert(vb::errors_policy<smallest>);
static_assert(std::is_same_v<vb::policies<smallest>::errors, smallest>);
static_assert(std::is_same_v<vb::delivered<smallest, int>, std::optional<int>>);

struct without_reaction {
  static constexpr bool constructs = false;
  template <class T>
  static T deliver(vb::result<T>&& of);
};
static_assert(!vb::reacts_to_failures<without_reaction> && !vb::errors_policy<without_reaction>);

struct without_delivery {
  static constexpr bool constructs = false;
  static void failed(const vb::error&);
};
static_assert(!vb::delivers_results<without_delivery> && !vb::errors_policy<without_delivery>);

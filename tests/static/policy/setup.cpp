// SPDX-License-Identifier: BSL-1.0
#include <verbena/policy/policy_set.hpp>
#include <verbena/policy/setup.hpp>

namespace vb = verbena;

// The smallest setup.
struct smallest {
  static constexpr bool uses_cm = false;
};
static_assert(vb::setup_policy<smallest>);
static_assert(std::is_same_v<vb::policies<smallest>::setup, smallest>);

struct without_answer {};
static_assert(!vb::setup_policy<without_answer>);

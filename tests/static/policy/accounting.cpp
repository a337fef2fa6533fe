// SPDX-License-Identifier: BSL-1.0
#include <verbena/policy/accounting.hpp>
#include <verbena/policy/policy_set.hpp>

namespace vb = verbena;

// The smallest accounting.
struct smallest {
  static constexpr bool checks = true;
};
static_assert(vb::accounting_policy<smallest>);
static_assert(std::is_same_v<vb::policies<smallest>::accounting, smallest>);
static_assert(!vb::accounting_policy<int>);

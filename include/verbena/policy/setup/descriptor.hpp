// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <verbena/policy/setup.hpp>

namespace verbena::setup {

/// Each end describes itself in bytes, which the program carries to the other end as it likes.
/// Not on iWARP, whose queue pairs are connected by the CM alone.
struct descriptor {
  static constexpr bool uses_cm = false;
};

static_assert(setup_policy<descriptor>);

}  // namespace verbena::setup

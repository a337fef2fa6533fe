// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <verbena/policy/setup.hpp>

namespace verbena::setup {

/// RDMA CM: one end listens on an IP address and port, the other connects to it; the descriptors
/// travel in the CM's private data (rdma_cm(7)).
struct cm {
  static constexpr bool uses_cm = true;
};

static_assert(setup_policy<cm>);

}  // namespace verbena::setup

// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <array>
#include <cstdint>

#include <verbena/soft/cm/identifier.hpp>

namespace verbena::soft::cm {

/// An event with its private data; freed when it is acknowledged.
struct event {
  rdma_cm_event native{};
  identifier* counted = nullptr;  ///< whose destruction waits for it: the listener of a request
  std::int64_t due = 0;           ///< when it may be got
  std::array<std::uint8_t, 256> data{};

  static event& of(rdma_cm_event* native) noexcept { return *reinterpret_cast<event*>(native); }
};

}  // namespace verbena::soft::cm

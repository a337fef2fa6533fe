// SPDX-License-Identifier: BSL-1.0
#pragma once

/// The software device: open_device("soft") or "soft:FABRIC", once this header is included.
#include <verbena/soft/soft_device.hpp>
#include <verbena/verbs/device_list.hpp>

namespace verbena::soft {

/// Makes the device known to open_device before main begins.
inline const bool announced = (verbs::soft_device = soft::open, true);

}  // namespace verbena::soft

// SPDX-License-Identifier: BSL-1.0
#include "frame/device.hpp"

#include <verbena/soft.hpp>

namespace example {

verbena::device open_device(const arguments& given) { return verbena::open_device(given.device); }

}  // namespace example

// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <verbena/connection/device.hpp>

#include "frame/arguments.hpp"

namespace example {

/// The device that the command line asks for; "soft" is the library's own.
verbena::device open_device(const arguments& given);

}  // namespace example

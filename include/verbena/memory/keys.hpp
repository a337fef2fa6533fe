// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cstdint>

namespace verbena {

/// The key a local piece of memory is used with. Often equal to the rkey by chance, never
/// interchangeable with it.
enum class lkey : std::uint32_t {};

/// The key a peer uses a region with.
enum class rkey : std::uint32_t {};

}  // namespace verbena

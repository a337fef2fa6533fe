// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cstddef>
#include <cstdint>

#include <verbena/memory/keys.hpp>

namespace verbena {

/// One local piece of a work request: what a scatter/gather entry is made of, with the domain it
/// was registered in. `size` is in bytes.
struct piece {
  std::byte* data;
  std::size_t size;
  lkey key;
  std::uint32_t domain;
};

}  // namespace verbena

// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cstdint>

namespace verbena {

/// What a work request does. Four bits of a wr_id: at most 16 values.
enum class operation : std::uint8_t {
  receive = 0,
  send = 1,
  read = 2,
  write = 3,
  marker = 15,  ///< the library's own: an empty signaled write that retires what stands before it
};

constexpr const char* to_string(operation of) noexcept {
  switch (of) {
    case operation::receive: return "receive";
    case operation::send: return "send";
    case operation::read: return "read";
    case operation::write: return "write";
    case operation::marker: return "marker";
  }
  return "unknown operation";
}

}  // namespace verbena

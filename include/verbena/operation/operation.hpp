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
  send_with_immediate = 4,
  write_with_immediate = 5,
  compare_and_swap = 6,
  fetch_and_add = 7,
  shared_receive = 13,  ///< the library's own: a receive of a ring
  part = 14,    ///< the library's own: all but the last message of a request longer than one
  marker = 15,  ///< the library's own: an empty signaled write that retires what stands before it
};

constexpr const char* to_string(operation of) noexcept {
  switch (of) {
    case operation::receive: return "receive";
    case operation::send: return "send";
    case operation::read: return "read";
    case operation::write: return "write";
    case operation::send_with_immediate: return "send with immediate";
    case operation::write_with_immediate: return "write with immediate";
    case operation::compare_and_swap: return "compare and swap";
    case operation::fetch_and_add: return "fetch and add";
    case operation::shared_receive: return "shared receive";
    case operation::part: return "part";
    case operation::marker: return "marker";
  }
  return "unknown operation";
}

/// Whether it carries 32 bits that the peer's completion shows.
constexpr bool has_immediate(operation of) noexcept {
  return of == operation::send_with_immediate || of == operation::write_with_immediate;
}

/// Whether it changes one 8-byte object of the peer at a stroke.
constexpr bool is_atomic(operation of) noexcept {
  return of == operation::compare_and_swap || of == operation::fetch_and_add;
}

}  // namespace verbena

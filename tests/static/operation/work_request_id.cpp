// SPDX-License-Identifier: BSL-1.0
#include <array>

#include <verbena/operation/work_request_id.hpp>

namespace vb = verbena;

// Every field comes back whole beside every other at its limit.
constexpr bool round_trip(vb::operation what, std::uint32_t owner, std::uint32_t position,
                          std::uint32_t token) {
  const auto id = vb::work_request_id::make(what, owner, position, token);
  return id.what() == what && id.owner() == owner && id.place() == (owner & 0xffff) &&
         id.position() == static_cast<std::uint16_t>(position) && id.token() == token;
}

constexpr bool every_field() {
  constexpr std::array whats{vb::operation::receive, vb::operation::send, vb::operation::read,
                             vb::operation::write, vb::operation::marker};
  for (const vb::operation what : whats) {
    for (const std::uint32_t owner : {0U, 1U, 0xffffU, 0x1'0000U, 0xf'ffffU}) {
      for (const std::uint32_t position : {0U, 1U, 0x7fffU, 0xffffU, 0x1'0000U, 0xffff'ffffU}) {
        for (const std::uint32_t token : {0U, 1U, 0xff'ffffU}) {
          if (!round_trip(what, owner, position, token)) return false;
        }
      }
    }
  }
  return true;
}
static_assert(every_field());
static_assert(sizeof(vb::work_request_id) == 8);

// A datagram's id is of no queue pair where owners are compared, and leads to its own.
constexpr auto datagram =
    vb::work_request_id::make(vb::operation::receive, 0x7'ffffU | vb::work_request_id::apart, 9, 3);
static_assert(datagram.owner() != 0x7'ffff && datagram.queue_pair() == 0x7'ffff);
static_assert(datagram.place() == 0xffff && datagram.position() == 9 && datagram.token() == 3);

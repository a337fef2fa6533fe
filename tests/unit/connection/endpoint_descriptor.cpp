// SPDX-License-Identifier: BSL-1.0
#include <array>
#include <cstddef>
#include <cstdint>

#include <verbena/connection/endpoint_descriptor.hpp>

#include "catch.hpp"

namespace vb = verbena;

namespace {

// An array of bytes from numbers.
template <class... Numbers>
constexpr std::array<std::byte, sizeof...(Numbers)> of(Numbers... numbers) {
  return {static_cast<std::byte>(numbers)...};
}

constexpr vb::descriptor_bytes golden = [] {
  vb::descriptor_bytes all{};
  const auto put = [&](std::size_t at, const auto& bytes) {
    for (const std::byte each : bytes) all[at++] = each;
  };
  put(0, of(1, 2, 0x56, 0x42, 0, 160, 2, 5));                // header: endpoint, two regions, 4096
  put(8, of(2, 2, 16, 17, 3, 3, 0x12, 0x34));                // RC, Ethernet, depths, GID kinds, LID
  put(16, of(0x00, 0xab, 0xcd, 0xef, 0, 0x98, 0x76, 0x54));  // queue pair, first packet
  put(24, of(0x40, 0, 0, 0, 0, 0, 0, 0));                    // longest message, zero
  put(32, of(0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 192, 0, 2, 1));
  put(48, of(0x20, 1, 0xd, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 9));
  put(64, of(0x12, 0x34, 0x56, 0x78, 0x9a, 0xbc, 0xde, 0xf0, 0, 0, 0, 1, 0, 0, 0, 8,  //
             0xca, 0xfe, 0xba, 0xbe, 0x06, 0, 0, 0));
  put(88, of(0, 0, 0, 0, 0, 0, 0x10, 0, 0, 0, 0, 0, 0, 0, 0, 64, 0, 0, 0, 7, 0x02, 0, 0, 0));
  return all;
}();

}  // namespace

TEST_CASE("FC-29 an endpoint's descriptor is these bytes on every machine") {
  vb::endpoint_descriptor mine;
  mine.transport = IBV_QPT_RC;
  mine.link_layer = IBV_LINK_LAYER_ETHERNET;
  mine.mtu = IBV_MTU_4096;
  mine.reads_answered = 16;
  mine.reads_asked = 17;
  mine.lid = 0x1234;
  mine.number = 0xab'cdef;
  mine.first_packet = 0x98'7654;
  mine.max_message = 1U << 30;
  mine.gids[0].kind = vb::gid_kind::roce_v2;
  mine.gids[0].raw = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 192, 0, 2, 1};
  mine.gids[1].kind = vb::gid_kind::roce_v2;
  mine.gids[1].raw = {0x20, 1, 0xd, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 9};
  mine.regions.add({0x123456789abcdef0, 0x1'0000'0008, vb::rkey{0xcafebabe},
                    vb::rights::remote_read | vb::rights::remote_write});
  mine.regions.add({0x1000, 64, vb::rkey{7}, vb::rights::remote_read});
  CHECK(mine.write() == golden);

  const vb::endpoint_descriptor read = vb::endpoint_descriptor::read(golden).value();
  CHECK(read.write() == golden);
  CHECK(read.reads_answered == 16);
  CHECK(read.reads_asked == 17);
  CHECK(read.lid == 0x1234);
  CHECK(read.number == 0xab'cdef);
  CHECK(read.first_packet == 0x98'7654);
  CHECK(read.max_message == 1U << 30);
  CHECK(read.gids[1].raw[15] == 9);
  CHECK(read.regions.count == 2);
}

TEST_CASE("a datagram endpoint's descriptor has a queue key, and no other") {
  vb::endpoint_descriptor mine = vb::endpoint_descriptor::read(golden).value();
  mine.transport = IBV_QPT_UD;
  mine.queue_key = 0x1234'5678;
  const vb::descriptor_bytes bytes = mine.write();
  CHECK(bytes[28] == std::byte{0x12});
  CHECK(bytes[31] == std::byte{0x78});
  CHECK(vb::endpoint_descriptor::read(bytes).value().queue_key == 0x1234'5678);
  mine.transport = IBV_QPT_RC;
  CHECK(vb::endpoint_descriptor::read(mine.write()).error() == vb::errc::wire_value);
}

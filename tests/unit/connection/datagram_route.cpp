// SPDX-License-Identifier: BSL-1.0
#include <array>
#include <cstddef>
#include <cstdint>
#include <tuple>

#include <verbena/connection/datagram_route.hpp>

#include "catch.hpp"

namespace vb = verbena;

namespace {

using raw = std::array<std::uint8_t, 16>;

constexpr raw first{0x20, 1, 0xd, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1};
constexpr raw second{0xfe, 0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2};

/// 40 bytes of which none is what it would be by chance.
std::array<std::byte, 40> garbage() {
  std::array<std::byte, 40> made{};
  made.fill(std::byte{0x6b});
  return made;
}

std::array<std::byte, 40> six(std::uint8_t next_header) {
  auto made = garbage();
  made[6] = std::byte{next_header};
  for (std::size_t i = 0; i < 16; ++i) {
    made[8 + i] = std::byte{first[i]};
    made[24 + i] = std::byte{second[i]};
  }
  return made;
}

vb::gid_candidate gid(vb::gid_kind kind, const raw& bytes) {
  vb::gid_candidate made;
  made.kind = kind;
  made.raw = bytes;
  return made;
}

}  // namespace

TEST_CASE("a datagram's route: an IPv6 header is RoCE v2, a GRH v1 or InfiniBand") {
  for (const auto& [next, ethernet, kind] :
       {std::tuple{17, true, vb::gid_kind::roce_v2}, std::tuple{0x1b, true, vb::gid_kind::roce_v1},
        std::tuple{0x1b, false, vb::gid_kind::infiniband}}) {
    const auto bytes = six(static_cast<std::uint8_t>(next));
    const auto route = vb::datagram_route::of_grh(bytes, ethernet);
    CHECK(route.kind == kind);
    CHECK(route.sender == first);
    CHECK(route.leads_to(gid(kind, second)));
    CHECK_FALSE(route.leads_to(gid(kind, first)));
    CHECK_FALSE(route.leads_to(gid(vb::gid_kind::none, second)));
  }
}

TEST_CASE("a datagram's route: an IPv4 header is in the second half, whatever the first holds") {
  auto bytes = garbage();
  const std::array<std::uint8_t, 8> addresses{192, 0, 2, 1, 192, 0, 2, 2};
  for (std::size_t i = 0; i < addresses.size(); ++i) bytes[32 + i] = std::byte{addresses[i]};
  const auto route = vb::datagram_route::of_ipv4(bytes);
  CHECK(route.sender == raw{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 192, 0, 2, 1});
  const raw mine{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 192, 0, 2, 2};
  CHECK(route.leads_to(gid(vb::gid_kind::roce_v2, mine)));
  CHECK_FALSE(route.leads_to(gid(vb::gid_kind::roce_v1, mine)));
  CHECK_FALSE(vb::datagram_route::of_grh(bytes, true).leads_to(gid(vb::gid_kind::roce_v2, mine)));
}

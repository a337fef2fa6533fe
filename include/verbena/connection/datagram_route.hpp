// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include <verbena/connection/gid_choice.hpp>

namespace verbena {

/// Where a datagram came from and which GID of this end it was for, as the 40 bytes in front of it
/// tell: those are a GRH, the IPv6 header of RoCE v2, or, in their second half, its IPv4 header
/// with anything in the first (IBA annex A17.4.5.2). Which of them is not marked.
struct datagram_route {
  gid_kind kind = gid_kind::none;
  std::array<std::uint8_t, 16> sender{};
  std::array<std::uint8_t, 16> receiver{};

  /// Whether `mine`, a GID of this end, is what the datagram was for.
  bool leads_to(const gid_candidate& mine) const noexcept {
    return mine.kind == kind && mine.raw == receiver;
  }

  static datagram_route of_grh(std::span<const std::byte> bytes, bool ethernet) noexcept {
    datagram_route made;
    copy(bytes.subspan(8, 16), made.sender.begin());
    copy(bytes.subspan(24, 16), made.receiver.begin());
    // The next header, where it is InfiniBand's transport, marks a GRH.
    const bool grh = std::to_integer<unsigned>(bytes[6]) == 0x1b;
    made.kind = !ethernet ? gid_kind::infiniband : grh ? gid_kind::roce_v1 : gid_kind::roce_v2;
    return made;
  }

  static datagram_route of_ipv4(std::span<const std::byte> bytes) noexcept {
    datagram_route made;
    made.kind = gid_kind::roce_v2;
    made.sender = made.receiver = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 0, 0, 0, 0};
    copy(bytes.subspan(32, 4), made.sender.begin() + 12);
    copy(bytes.subspan(36, 4), made.receiver.begin() + 12);
    return made;
  }

 private:
  template <class Place>
  static void copy(std::span<const std::byte> from, Place to) noexcept {
    std::ranges::transform(from, to,
                           [](std::byte each) { return std::to_integer<std::uint8_t>(each); });
  }
};

}  // namespace verbena

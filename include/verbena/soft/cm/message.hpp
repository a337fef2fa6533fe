// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <type_traits>

#include <verbena/soft/cm/location.hpp>

namespace verbena::soft::cm {

/// What the private data of a message may hold (rdma_connect(3), rdma_accept(3), rdma_reject(3)).
inline constexpr std::size_t request_bytes = 56;
inline constexpr std::size_t response_bytes = 196;
inline constexpr std::size_t refusal_bytes = 148;

/// Reasons of a refusal (ib_cm.h).
enum reason : std::uint16_t {
  no_resources = 3,
  timed_out = 4,
  not_this_fabric = 5,
  nobody_listens = 8,
  consumer = 28,
};

/// What two ends tell each other, one packet each, of one size. It comes from another process: it
/// is copied whole and used only when check() holds.
struct message {
  enum kind : std::uint16_t { request = 1, response, ready, refusal, goodbye };
  static constexpr std::uint32_t right_magic = 0x76624d43;
  static constexpr std::uint16_t right_version = 1;

  std::uint32_t magic = right_magic;
  std::uint16_t version = right_version;
  std::uint16_t what = 0;
  std::uint32_t process = 0;  ///< the sender's place on the fabric
  std::uint32_t queue_pair = 0;
  std::uint32_t sequence = 0;  ///< its first packet's number
  std::uint16_t why = 0;       ///< of a refusal
  std::uint8_t mtu = 0;
  std::uint8_t responder_resources = 0;
  std::uint8_t initiator_depth = 0;
  std::uint8_t flow_control = 0;
  std::uint8_t retry_count = 0;
  std::uint8_t rnr_retry_count = 0;
  std::uint8_t shared_receives = 0;
  std::uint8_t length = 0;  ///< of the data
  std::array<std::uint8_t, 2> unused{};
  location from{};
  location to{};
  std::array<std::uint8_t, response_bytes> data{};

  static constexpr std::size_t most(std::uint16_t what) noexcept {
    return what == request    ? request_bytes
           : what == response ? response_bytes
           : what == refusal  ? refusal_bytes
                              : 0;
  }

  bool check(std::size_t size) const noexcept {
    if (size != sizeof(message) || magic != right_magic || version != right_version ||
        what < request || what > goodbye || length > most(what) || why > 0xff)
      return false;
    if (what != request && what != response) return true;
    if (queue_pair > 0xff'ffff || sequence > 0xff'ffff || mtu < 1 || mtu > 5 || retry_count > 7 ||
        rnr_retry_count > 7)
      return false;
    return what == response || (from.known() && to.known() && from.family == to.family);
  }

  void carry(std::span<const std::byte> bytes) noexcept {
    length = static_cast<std::uint8_t>(bytes.size());
    std::transform(bytes.begin(), bytes.end(), data.begin(),
                   [](std::byte each) { return std::to_integer<std::uint8_t>(each); });
  }
};

static_assert(std::has_unique_object_representations_v<message>, "no padding is sent");

}  // namespace verbena::soft::cm

// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>

#include <verbena/memory/rights.hpp>
#include <verbena/verbs/ibverbs.hpp>

namespace verbena {

/// What to do when a device has less than was asked.
enum class capacity {
  exact,    ///< refuse, naming the attribute, what was asked and what is allowed
  at_most,  ///< take what there is; the endpoint tells what was granted
};

enum class mtu : std::uint8_t {
  bytes_256 = IBV_MTU_256,
  bytes_512 = IBV_MTU_512,
  bytes_1024 = IBV_MTU_1024,
  bytes_2048 = IBV_MTU_2048,
  bytes_4096 = IBV_MTU_4096,
};

/// Bytes of payload in a packet.
constexpr std::uint32_t bytes(mtu of) noexcept { return 128U << static_cast<unsigned>(of); }

/// How an endpoint is made. The defaults suit a request/response program on one fabric.
struct options {
  std::uint32_t send_depth = 128;     ///< send, read and write requests outstanding
  std::uint32_t receive_depth = 128;  ///< receives outstanding
  std::uint32_t send_pieces = 2;      ///< pieces of memory in one send, read or write
  std::uint32_t receive_pieces = 2;   ///< pieces of memory in one receive
  /// Bytes that a send or write can take into the work request, for inlined() and unregistered
  /// memory. As many as asked or what `capacity` says; if nothing is asked, 28 or what there is.
  std::optional<std::uint32_t> inline_bytes{};
  verbena::capacity capacity = verbena::capacity::exact;

  std::uint8_t port = 1;
  std::optional<std::uint32_t> gid_index{};  ///< instead of the best pair; see gid_choice.hpp
  mtu max_mtu = mtu::bytes_4096;             ///< both ends use the least of port, peer and this

  /// Reads and atomics in flight: as the one who asks, and as the one who answers. The device's
  /// and the peer's limits lower them.
  std::uint8_t reads_asked = 16;
  std::uint8_t reads_answered = 16;

  /// What the peer may do to memory of this end, beside what the regions described grant.
  rights peer_may{};

  /// What a datagram must know to be taken, on transport::ud; peers learn it from the descriptor.
  /// With the highest bit set it is for privileged programs (IBA 10.2.5).
  std::uint32_t queue_key = 0x1111'1111;

  /// How long to wait for an acknowledgement before sending again, and how often: a dead peer is
  /// noticed after about timeout x (retries + 1), rounded up to the codes of the adapter.
  std::chrono::nanoseconds ack_timeout = std::chrono::milliseconds{67};
  std::uint8_t retries = 7;  ///< at most 7

  /// How long a peer whose message found no receive shall wait, and how often this end tries; 7
  /// means without end.
  std::chrono::nanoseconds receiver_not_ready_delay = std::chrono::microseconds{640};
  std::uint8_t receiver_not_ready_retries = 7;

  /// The longest close() waits for requests to complete, and then, as destructors do, for what is
  /// left to be flushed.
  std::chrono::nanoseconds close_timeout = std::chrono::seconds{1};
};

}  // namespace verbena

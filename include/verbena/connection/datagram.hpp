// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include <verbena/connection/completed.hpp>
#include <verbena/operation/receive.hpp>

namespace verbena {

/// A receive that succeeded on transport::ud, as a handler gets it: the message without the 40
/// bytes in front of it (ibv_post_recv(3)), and where it came from. Refers to the completion being
/// dispatched: use it inside the handler only.
class datagram : private completed<receive> {
  using base = completed<receive>;

 public:
  using base::base;
  using base::immediate;
  using base::immediate_or;
  using base::retired;
  using base::token;

  connection_id connection() const noexcept {
    return connection_id{work_request_id{native().wr_id}.queue_pair()};
  }

  /// Bytes of the message.
  std::uint32_t size() const noexcept { return base::size() - prefix; }

  /// The message, where its receive was posted with one piece of memory; empty otherwise. The
  /// memory is the user's again.
  std::span<std::byte> bytes() const noexcept {
    if (data() == nullptr) return {};
    return {data() + prefix, size()};
  }

  /// The number of the queue pair that sent it. connection::peer() makes a peer to reply to.
  std::uint32_t sender() const noexcept { return native().src_qp; }

  /// The 40 bytes: the sender's GRH where has_route(), else undefined. Empty where bytes() is.
  std::span<const std::byte> route() const noexcept {
    if (data() == nullptr) return {};
    return {data(), prefix};
  }
  bool has_route() const noexcept { return (native().wc_flags & IBV_WC_GRH) != 0; }
  /// The completion, of which only what ibv_poll_cq(3) says of a received datagram is valid.
  using base::native;

 private:
  static constexpr std::uint32_t prefix = sizeof(ibv_grh);
};

}  // namespace verbena

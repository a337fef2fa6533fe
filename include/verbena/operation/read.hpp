// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cstdint>

#include <verbena/memory/remote_region.hpp>
#include <verbena/operation/request.hpp>

namespace verbena {

/// Reads the front of a remote region into local memory, as many bytes as that holds; valid once
/// the completion has been polled. Writes and sends posted later may overtake it
/// (ibv_post_send(3), IBV_SEND_FENCE).
template <class Local, class Remote, class Signal = signal_by_policy>
class read : public request<verbena::read, Local, Remote, Signal> {
  using base = request<verbena::read, Local, Remote, Signal>;

 public:
  static constexpr operation what = operation::read;

  template <class Memory>
  constexpr read(const Memory& into, const Remote& from) noexcept
      : base{as_pieces(into), from, 0} {}
  constexpr read(Local local, Remote remote, std::uint32_t token) noexcept
      : base{local, remote, token} {}
};

template <class Memory, class T, rights Rights>
read(const Memory&, const remote_region<T, Rights>&)
    -> read<pieces_of<Memory>, remote_region<T, Rights>>;

}  // namespace verbena

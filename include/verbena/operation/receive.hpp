// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cstdint>
#include <utility>

#include <verbena/operation/request.hpp>

namespace verbena {

/// Takes the peer's next message into local memory, which must be large enough for it: on RC a
/// longer message fails both ends (ibv_post_recv(3)). Receives are used in the order posted.
template <class Local, class Remote = no_remote, class Signal = signal_by_policy>
class receive : public request<verbena::receive, Local, Remote, Signal> {
  using base = request<verbena::receive, Local, Remote, Signal>;

 public:
  static constexpr operation what = operation::receive;

  template <local_argument Memory>
  constexpr explicit receive(Memory&& into) noexcept
      : base{as_pieces(std::forward<Memory>(into)), {}, 0} {}
  constexpr receive(Local local, Remote remote, std::uint32_t token) noexcept
      : base{local, remote, token} {}
};

template <local_argument Memory>
receive(Memory&&) -> receive<pieces_of<Memory>>;

}  // namespace verbena

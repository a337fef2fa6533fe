// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cstdint>
#include <utility>

#include <verbena/operation/request.hpp>

namespace verbena {

/// Takes the peer's next message into local memory, which must be large enough for it: on RC a
/// longer message fails both ends, on UC and UD it is lost (ibv_post_recv(3)). A write with
/// immediate takes a receive too, and leaves its memory as it is. Receives are used in the order
/// posted.
template <class Local, class Remote = no_remote, class Options = no_options>
class receive : public request<verbena::receive, Local, Remote, Options> {
  using base = request<verbena::receive, Local, Remote, Options>;

 public:
  using base::base;
  static constexpr operation what = operation::receive;

  template <local_argument Memory>
  constexpr explicit receive(Memory&& into) noexcept
      : base{as_pieces(std::forward<Memory>(into)), {}, {}, 0} {}

  /// Without memory: for an immediate, or a message of no bytes. Not on iWARP.
  constexpr receive() noexcept
    requires(Local::count == 0)
      : base{Local{}, {}, {}, 0} {}
};

receive() -> receive<no_pieces>;

template <local_argument Memory>
receive(Memory&&) -> receive<pieces_of<Memory>>;

}  // namespace verbena

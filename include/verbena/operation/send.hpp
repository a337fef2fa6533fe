// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cstdint>
#include <utility>

#include <verbena/operation/request.hpp>

namespace verbena {

/// Sends local memory to the peer's next posted receive. The memory is the adapter's until the
/// completion; completion means that the peer's adapter has the message (ibv_post_send(3)).
/// Ordered after earlier sends and writes of the connection.
template <class Local, class Remote = no_remote, class Options = no_options>
class send : public request<verbena::send, Local, Remote, Options> {
  using base = request<verbena::send, Local, Remote, Options>;

 public:
  using base::base;
  static constexpr operation what = operation::send;

  template <local_argument Memory>
  constexpr explicit send(Memory&& from) noexcept
      : base{as_pieces(std::forward<Memory>(from)), {}, {}, 0} {}
};

template <local_argument Memory>
send(Memory&&) -> send<pieces_of<Memory>>;

}  // namespace verbena

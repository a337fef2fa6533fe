// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cstdint>
#include <type_traits>
#include <utility>

#include <verbena/memory/remote_region.hpp>
#include <verbena/operation/request.hpp>

namespace verbena {

/// Reads the front of a remote region into local memory, as many bytes as that holds; valid once
/// the completion has been polled. Writes and sends posted later may overtake it
/// (ibv_post_send(3), IBV_SEND_FENCE).
template <class Local, class Remote, class Options = no_options>
class read : public request<verbena::read, Local, Remote, Options> {
  using base = request<verbena::read, Local, Remote, Options>;

 public:
  using base::base;
  static constexpr operation what = operation::read;

  template <local_argument Memory>
  constexpr read(Memory&& into, const std::remove_reference_t<Remote>& from) noexcept
      : base{as_pieces(std::forward<Memory>(into)), from, {}, 0} {}
};

template <local_argument Memory, class T, rights Rights>
read(Memory&&, const remote_region<T, Rights>&)
    -> read<pieces_of<Memory>, const remote_region<T, Rights>&>;
template <local_argument Memory, class T, rights Rights>
read(Memory&&, remote_region<T, Rights>&&) -> read<pieces_of<Memory>, remote_region<T, Rights>>;

}  // namespace verbena

// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cstdint>
#include <type_traits>
#include <utility>

#include <verbena/memory/remote_region.hpp>
#include <verbena/operation/request.hpp>

namespace verbena {

/// Writes local memory to the front of a remote region, without the peer's program noticing. The
/// completion says that the peer's adapter has the data, not that its program can see it: for
/// that, a send after it on the same connection (ibv_post_send(3)).
template <class Local, class Remote, class Options = no_options>
class write : public request<verbena::write, Local, Remote, Options> {
  using base = request<verbena::write, Local, Remote, Options>;

 public:
  using base::base;
  static constexpr operation what = operation::write;

  template <local_argument Memory>
  constexpr write(Memory&& from, const std::remove_reference_t<Remote>& to) noexcept
      : base{as_pieces(std::forward<Memory>(from)), to, {}, 0} {}
};

template <local_argument Memory, class T, rights Rights>
write(Memory&&, const remote_region<T, Rights>&)
    -> write<pieces_of<Memory>, const remote_region<T, Rights>&>;
template <local_argument Memory, class T, rights Rights>
write(Memory&&, remote_region<T, Rights>&&) -> write<pieces_of<Memory>, remote_region<T, Rights>>;

}  // namespace verbena

// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cstdint>
#include <type_traits>
#include <utility>

#include <verbena/memory/remote_region.hpp>
#include <verbena/operation/immediate.hpp>
#include <verbena/operation/request.hpp>

namespace verbena {

/// As write, but the peer's program notices: one of its receives completes with these 32 bits
/// (completed<receive>::immediate()), and then it sees the data. Without memory it only notices.
/// Not on iWARP.
template <class Local, class Remote, class Options = no_options>
class write_with_immediate
    : public request<verbena::write_with_immediate, Local, Remote, Options, immediate_operand> {
  using base = request<verbena::write_with_immediate, Local, Remote, Options, immediate_operand>;

 public:
  using base::base;
  static constexpr operation what = operation::write_with_immediate;

  template <local_argument Memory>
  constexpr write_with_immediate(Memory&& from, const std::remove_reference_t<Remote>& to,
                                 std::uint32_t immediate) noexcept
      : base{as_pieces(std::forward<Memory>(from)), to, {immediate}, 0} {}
  constexpr write_with_immediate(const std::remove_reference_t<Remote>& to,
                                 std::uint32_t immediate) noexcept
    requires(Local::count == 0)
      : base{Local{}, to, {immediate}, 0} {}
};

template <local_argument Memory, class T, rights Rights>
write_with_immediate(Memory&&, const remote_region<T, Rights>&, std::uint32_t)
    -> write_with_immediate<pieces_of<Memory>, const remote_region<T, Rights>&>;
template <local_argument Memory, class T, rights Rights>
write_with_immediate(Memory&&, remote_region<T, Rights>&&, std::uint32_t)
    -> write_with_immediate<pieces_of<Memory>, remote_region<T, Rights>>;
template <class T, rights Rights>
write_with_immediate(const remote_region<T, Rights>&, std::uint32_t)
    -> write_with_immediate<no_pieces, const remote_region<T, Rights>&>;
template <class T, rights Rights>
write_with_immediate(remote_region<T, Rights>&&, std::uint32_t)
    -> write_with_immediate<no_pieces, remote_region<T, Rights>>;

}  // namespace verbena

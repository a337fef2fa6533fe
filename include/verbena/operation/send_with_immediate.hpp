// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cstdint>
#include <utility>

#include <verbena/operation/immediate.hpp>
#include <verbena/operation/request.hpp>

namespace verbena {

/// As send, with 32 bits that the peer finds in its completion (completed<receive>::immediate());
/// without memory those are the message. Not on iWARP.
template <class Local, class Remote = no_remote, class Options = no_options>
class send_with_immediate
    : public request<verbena::send_with_immediate, Local, Remote, Options, immediate_operand> {
  using base = request<verbena::send_with_immediate, Local, Remote, Options, immediate_operand>;

 public:
  using base::base;
  static constexpr operation what = operation::send_with_immediate;

  template <local_argument Memory>
  constexpr send_with_immediate(Memory&& from, std::uint32_t immediate) noexcept
      : base{as_pieces(std::forward<Memory>(from)), {}, {immediate}, 0} {}
  constexpr explicit send_with_immediate(std::uint32_t immediate) noexcept
    requires(Local::count == 0)
      : base{Local{}, {}, {immediate}, 0} {}
};

template <local_argument Memory>
send_with_immediate(Memory&&, std::uint32_t) -> send_with_immediate<pieces_of<Memory>>;
send_with_immediate(std::uint32_t) -> send_with_immediate<no_pieces>;

}  // namespace verbena

// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cstdint>
#include <type_traits>
#include <utility>

#include <verbena/memory/remote_region.hpp>
#include <verbena/operation/atomic_target.hpp>
#include <verbena/operation/request.hpp>

namespace verbena {

/// What compare_and_swap works with.
struct compare_operands {
  std::uint64_t compare;
  std::uint64_t swap;
};

/// Puts `swap` into the first object of a remote region if it is `compare`, in one step, and gives
/// the old value to the first object of the local memory and to the completion, in host order as
/// far as libibverbs lets one know. Atomic against operations of the same adapter; against the
/// peer's processor only where ibv_device_attr::atomic_cap is IBV_ATOMIC_GLOB.
template <class Local, class Remote, class Options = no_options>
class compare_and_swap
    : public request<verbena::compare_and_swap, Local, Remote, Options, compare_operands> {
  using base = request<verbena::compare_and_swap, Local, Remote, Options, compare_operands>;

 public:
  using base::base;
  static constexpr operation what = operation::compare_and_swap;

  template <local_argument Memory>
  constexpr compare_and_swap(Memory&& old, const std::remove_reference_t<Remote>& target,
                             std::uint64_t compare, std::uint64_t swap) noexcept
      : base{as_pieces(std::forward<Memory>(old)), target, {compare, swap}, 0} {}
};

template <local_argument Memory, class T, rights Rights>
compare_and_swap(Memory&&, const remote_region<T, Rights>&, std::uint64_t, std::uint64_t)
    -> compare_and_swap<pieces_of<Memory>, const remote_region<T, Rights>&>;
template <local_argument Memory, class T, rights Rights>
compare_and_swap(Memory&&, remote_region<T, Rights>&&, std::uint64_t, std::uint64_t)
    -> compare_and_swap<pieces_of<Memory>, remote_region<T, Rights>>;

}  // namespace verbena

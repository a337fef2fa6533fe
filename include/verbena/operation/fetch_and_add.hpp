// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cstdint>
#include <type_traits>
#include <utility>

#include <verbena/memory/remote_region.hpp>
#include <verbena/operation/atomic_target.hpp>
#include <verbena/operation/request.hpp>

namespace verbena {

/// What fetch_and_add works with.
struct add_operand {
  std::uint64_t add;
};

/// Adds to the first object of a remote region, modulo 2^64 and in one step, and gives the old
/// value to the first object of the local memory and to the completion, in host order as far as
/// libibverbs lets one know. Atomic as compare_and_swap is.
template <class Local, class Remote, class Options = no_options>
class fetch_and_add : public request<verbena::fetch_and_add, Local, Remote, Options, add_operand> {
  using base = request<verbena::fetch_and_add, Local, Remote, Options, add_operand>;

 public:
  using base::base;
  static constexpr operation what = operation::fetch_and_add;

  template <local_argument Memory>
  constexpr fetch_and_add(Memory&& old, const std::remove_reference_t<Remote>& target,
                          std::uint64_t add) noexcept
      : base{as_pieces(std::forward<Memory>(old)), target, {add}, 0} {}
};

template <local_argument Memory, class T, rights Rights>
fetch_and_add(Memory&&, const remote_region<T, Rights>&, std::uint64_t)
    -> fetch_and_add<pieces_of<Memory>, const remote_region<T, Rights>&>;
template <local_argument Memory, class T, rights Rights>
fetch_and_add(Memory&&, remote_region<T, Rights>&&, std::uint64_t)
    -> fetch_and_add<pieces_of<Memory>, remote_region<T, Rights>>;

}  // namespace verbena

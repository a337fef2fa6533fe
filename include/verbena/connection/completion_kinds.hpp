// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <concepts>

#include <verbena/connection/completed.hpp>
#include <verbena/connection/datagram.hpp>
#include <verbena/connection/failed.hpp>
#include <verbena/connection/message.hpp>
#include <verbena/operation/compare_and_swap.hpp>
#include <verbena/operation/fetch_and_add.hpp>
#include <verbena/operation/read.hpp>
#include <verbena/operation/receive.hpp>
#include <verbena/operation/send.hpp>
#include <verbena/operation/send_with_immediate.hpp>
#include <verbena/operation/write.hpp>
#include <verbena/operation/write_with_immediate.hpp>

namespace verbena {

template <class Kind, class... Functions>
inline constexpr bool taken_by_one = (std::invocable<Functions&, Kind> || ...);

/// What a function of a handler set can be told of.
template <class... Kinds>
struct completion_kinds {
  /// Whether a function is ever called.
  template <class Function>
  static constexpr bool reach = (std::invocable<Function&, Kinds> || ...);

  /// Whether a set of functions takes every kind that one of the functions takes.
  template <class Set, class... Functions>
  static constexpr bool tell_apart =
      ((std::invocable<Set&, Kinds> || !taken_by_one<Kinds, Functions...>) && ...);

  /// Whether a set calls the same functions where it is const.
  template <class Set>
  static constexpr bool reach_as_const =
      ((std::invocable<const Set&, Kinds> || !std::invocable<Set&, Kinds>) && ...);
};

using all_kinds = completion_kinds<failed, completed<receive>, datagram, message, completed<send>,
                                   completed<read>, completed<write>,
                                   completed<send_with_immediate>, completed<write_with_immediate>,
                                   completed<compare_and_swap>, completed<fetch_and_add>>;

}  // namespace verbena

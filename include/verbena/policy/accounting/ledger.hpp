// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <verbena/policy/accounting.hpp>

namespace verbena::accounting {

/// post checks that the queue has room and has not failed, that the memory belongs to the queue
/// pair's domain, and that lengths fit the message limit and the remote region.
struct ledger {
  static constexpr bool checks = true;
};

static_assert(accounting_policy<ledger>);

}  // namespace verbena::accounting

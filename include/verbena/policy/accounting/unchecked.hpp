// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <verbena/policy/accounting.hpp>

namespace verbena::accounting {

/// The caller's word that what ledger checks holds: for code that knows from its own protocol how
/// much is outstanding. Where it does not hold the provider may refuse the request, or the queue
/// pair may fail; debug builds assert.
struct unchecked {
  static constexpr bool checks = false;
};

static_assert(accounting_policy<unchecked>);

}  // namespace verbena::accounting

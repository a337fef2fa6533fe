// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <verbena/operation/option.hpp>
#include <verbena/verbs/ibverbs.hpp>

namespace verbena::posting {

/// The IBV_SEND_* of the options that are constants of a request.
constexpr unsigned send_flags(option asked) noexcept {
  return (has(asked, option::fenced) ? unsigned{IBV_SEND_FENCE} : 0U) |
         (has(asked, option::solicited) ? unsigned{IBV_SEND_SOLICITED} : 0U);
}

}  // namespace verbena::posting

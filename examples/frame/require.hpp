// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <system_error>

#include <verbena/chain/posted.hpp>

namespace example {

/// For posts that find room by the program's own logic: a full queue is then a mistake of ours.
inline void require(verbena::posted result) {
  if (!result) throw std::system_error{result.error(), "a post"};
}

}  // namespace example

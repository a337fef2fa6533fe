// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <deque>

#include <verbena/verbs/ibverbs.hpp>

namespace fabricated {

struct completion_queue;

/// `fd` is an eventfd that counts what stands in `events`.
struct channel : ibv_comp_channel {
  std::deque<completion_queue*> events;
  int users = 0;  ///< completion queues
};

}  // namespace fabricated

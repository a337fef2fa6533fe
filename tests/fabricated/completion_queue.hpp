// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cstddef>
#include <deque>

#include <verbena/verbs/ibverbs.hpp>

namespace fabricated {

struct queue_pair;

enum class arming { none, solicited, any };

struct completion_queue : ibv_cq {
  /// A completion and whose slots are free once it has been polled.
  struct entry {
    ibv_wc completion;
    queue_pair* of;
    bool receive;
    std::size_t done;
  };
  std::deque<entry> entries;
  arming armed = arming::none;
  unsigned armed_count = 0;
  unsigned events_taken = 0;
  unsigned events_acknowledged = 0;
  int users = 0;  ///< queue pairs, once for each direction
};

}  // namespace fabricated

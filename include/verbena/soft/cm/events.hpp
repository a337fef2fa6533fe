// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <fcntl.h>
#include <poll.h>

#include <cerrno>
#include <memory>
#include <mutex>

#include <verbena/soft/cm/ids.hpp>
#include <verbena/soft/cm/progress.hpp>

namespace verbena::soft::cm {

/// Blocks where the descriptor is not O_NONBLOCK, else EAGAIN while there is no event.
inline int get_event(rdma_event_channel* native, rdma_cm_event** got) {
  event_channel& on = event_channel::of(native);
  const bool waits = (::fcntl(native->fd, F_GETFL) & O_NONBLOCK) == 0;
  for (;;) {
    pollfd look{native->fd, POLLIN, 0};
    const int ready = ::poll(&look, 1, waits ? -1 : 0);
    if (ready < 0) return -1;
    if (ready == 0) return minus_one(EAGAIN);
    const std::scoped_lock held{guard};
    const int number = attend(on);
    if (on.has_event()) {
      auto taken = std::move(on.events.front());
      on.events.erase(on.events.begin());
      on.settle();
      ++taken->counted->unacknowledged;
      *got = &taken.release()->native;
      return 0;
    }
    if (number != 0) return minus_one(number);
  }
}

inline int ack_event(rdma_cm_event* native) {
  if (native == nullptr) return minus_one(EINVAL);
  const std::unique_ptr<event> done{&event::of(native)};
  const std::scoped_lock held{guard};
  --done->counted->unacknowledged;
  acknowledged.notify_all();
  return 0;
}

}  // namespace verbena::soft::cm

// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <fcntl.h>
#include <poll.h>

#include <functional>
#include <optional>

#include "side.hpp"

namespace soft_test {

/// A completion channel, of which who uses it sleeps. Outlives the queues on it.
struct sleeper {
  explicit sleeper(const side& where) : on{where} {
    REQUIRE(channel != nullptr);
    REQUIRE(::fcntl(channel->fd, F_SETFL, O_NONBLOCK) == 0);
  }
  ~sleeper() { CHECK(on.calls.destroy_comp_channel(channel) == 0); }
  sleeper(const sleeper&) = delete;
  sleeper& operator=(const sleeper&) = delete;

  /// Sleeps until the channel wakes, and takes the event where there is one; false if it does not.
  bool sleep() const {
    pollfd look{channel->fd, POLLIN, 0};
    if (::poll(&look, 1, 5000) != 1) return false;
    ibv_cq* given = nullptr;
    void* own = nullptr;
    if (on.calls.get_cq_event(channel, &given, &own) == 0) on.calls.ack_cq_events(given, 1);
    return true;
  }

  /// The next completion, slept for; `after_arming` is done once the queue has been armed so often.
  std::optional<ibv_wc> next(
      ibv_cq* queue, int times = 0, const std::function<void()>& after_arming = [] {}) const {
    const auto until = clock::now() + 10s;
    for (int armed = 1; clock::now() < until; ++armed) {
      REQUIRE(ibv_req_notify_cq(queue, 0) == 0);
      if (const auto got = soft_test::next(queue, 0ns)) return got;
      if (armed == times) after_arming();
      if (!sleep()) break;
    }
    return std::nullopt;
  }

  const side& on;
  ibv_comp_channel* channel = on.calls.create_comp_channel(on.native);
};

}  // namespace soft_test

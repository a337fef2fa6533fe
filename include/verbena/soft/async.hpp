// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <fcntl.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include <cerrno>
#include <mutex>

#include <verbena/soft/control.hpp>

/// Asynchronous events: what has happened stands in the segment until it is got.
namespace verbena::soft::control {

/// Makes the descriptor that is readable when there may be an event; errno.
inline int open_async(context& here) {
  here.native.async_fd = ::epoll_create1(EPOLL_CLOEXEC);
  here.async_wake = ::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  const wake_address at{*here.fabric, here.fabric->me(), async_number};
  epoll_event watch{};
  watch.events = EPOLLIN;
  const bool made =
      here.native.async_fd >= 0 && here.async_wake >= 0 &&
      ::bind(here.async_wake, reinterpret_cast<const sockaddr*>(&at.name), at.length) == 0 &&
      ::epoll_ctl(here.native.async_fd, EPOLL_CTL_ADD, here.async_wake, &watch) == 0;
  return made ? 0 : errno;
}

/// Blocks where async_fd is not O_NONBLOCK, else fails with EAGAIN. An event is told once.
inline int get_async_event(ibv_context* native, ibv_async_event* into) {
  context& here = context::of(native);
  const auto get = [&] {
    const std::scoped_lock held{here.mutex};
    for (completion_queue* each : here.queues) {
      std::uint32_t failed = 1;
      if (each->entry->failed.compare_exchange_strong(failed, 2)) {
        ++each->async_events;
        into->element.cq = &each->native;
        into->event_type = IBV_EVENT_CQ_ERR;
        return true;
      }
    }
    const auto tell = [&](queue_pair& of, ibv_event_type what) {
      ++of.async_events;
      into->element.qp = &of.native.qp_base;
      into->event_type = what;
      return true;
    };
    for (auto& slot : here.queue_pairs) {
      queue_pair* const each = slot.load(std::memory_order_acquire);
      if (each == nullptr) continue;
      const std::uint32_t trouble = each->entry->trouble.exchange(0);
      if (trouble == IBV_EVENT_QP_ACCESS_ERR + 1U || trouble == IBV_EVENT_QP_REQ_ERR + 1U)
        return tell(*each, static_cast<ibv_event_type>(trouble - 1));
      // After the move to ERR it takes no more from the shared queue.
      if (each->shared_receives != nullptr && each->entry->state.load() == IBV_QPS_ERR &&
          !each->last_receive_told.exchange(true))
        return tell(*each, IBV_EVENT_QP_LAST_WQE_REACHED);
    }
    for (shared_receive_queue* each : here.shared_receives) {
      if ((each->queue.entry->limit.fetch_and(~limit_reached) & limit_reached) != 0) {
        ++each->async_events;
        into->element.srq = &each->native;
        into->event_type = IBV_EVENT_SRQ_LIMIT_REACHED;
        return true;
      }
    }
    return false;
  };
  for (;;) {
    char nothing[16];
    while (::recv(here.async_wake, nothing, sizeof nothing, 0) >= 0) {
    }
    if (get()) {
      wake(here, here.fabric->me(), async_number);  // there may be more than this one
      return 0;
    }
    if ((::fcntl(native->async_fd, F_GETFL) & O_NONBLOCK) != 0) return minus_one(EAGAIN);
    pollfd look{native->async_fd, POLLIN, 0};
    if (::poll(&look, 1, -1) < 0) return -1;
  }
}

/// As ibv_ack_async_event: destroying waits for it.
inline void ack_async_event(ibv_async_event* of) noexcept {
  switch (of->event_type) {
    case IBV_EVENT_CQ_ERR:
      acknowledge(*of->element.cq, of->element.cq->async_events_completed, 1);
      break;
    case IBV_EVENT_SRQ_LIMIT_REACHED:
      acknowledge(*of->element.srq, of->element.srq->events_completed, 1);
      break;
    default: acknowledge(*of->element.qp, of->element.qp->events_completed, 1); break;
  }
}

}  // namespace verbena::soft::control

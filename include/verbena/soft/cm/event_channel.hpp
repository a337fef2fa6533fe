// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <condition_variable>
#include <cstdint>
#include <ctime>
#include <memory>
#include <mutex>
#include <set>
#include <utility>
#include <vector>

#include <verbena/soft/cm/event.hpp>

namespace verbena::soft::cm {

/// Guards all of this process's ids and channels: nothing here is fast, and ids move from channel
/// to channel. Never held while waiting.
inline std::mutex guard;
inline std::condition_variable acknowledged;

/// Nanoseconds of the monotonic clock.
inline std::int64_t now() noexcept {
  timespec at{};
  ::clock_gettime(CLOCK_MONOTONIC, &at);
  return std::int64_t{at.tv_sec} * 1'000'000'000 + at.tv_nsec;
}

/// What is behind an rdma_event_channel. Its descriptor is an epoll set of the ids' sockets, of a
/// descriptor that is readable while an event waits, and, while there is a deadline, of a timer.
struct event_channel {
  rdma_event_channel native{-1};
  context* here = nullptr;
  int pending = -1;  ///< an eventfd
  int timer = -1;
  std::int64_t timer_at = 0;
  bool is_pending = false;
  std::vector<std::unique_ptr<event>> events;
  std::array<std::unique_ptr<event>, 2> blanks;  ///< for the next one, and for its duplicate
  std::vector<identifier*> ids;
  std::set<std::pair<std::int64_t, identifier*>> deadlines;

  static event_channel& of(rdma_event_channel* native) noexcept {
    return *reinterpret_cast<event_channel*>(native);
  }

  event_channel() = default;
  event_channel(const event_channel&) = delete;
  event_channel& operator=(const event_channel&) = delete;
  ~event_channel() {
    for (const int each : {timer, pending, native.fd}) {
      if (each >= 0) ::close(each);
    }
  }

  /// 0 or an errno.
  int open() noexcept {
    native.fd = ::epoll_create1(EPOLL_CLOEXEC);
    pending = ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (native.fd < 0 || pending < 0) return errno;
    return watch(pending, &pending);
  }

  int watch(int descriptor, void* as) const noexcept {
    epoll_event wanted{};
    wanted.events = EPOLLIN;
    wanted.data.ptr = as;
    return ::epoll_ctl(native.fd, EPOLL_CTL_ADD, descriptor, &wanted) == 0 ? 0 : errno;
  }

  bool has_event() const noexcept { return !events.empty() && events.front()->due <= cm::now(); }

  /// Comes before a call takes or changes what it will have to tell: throws bad_alloc while nothing
  /// is lost.
  void make_room() {
    const std::size_t needed = events.size() + blanks.size();
    if (events.capacity() < needed) events.reserve(2 * needed);
    for (auto& each : blanks) {
      if (!each) each = std::make_unique<event>();
    }
  }
  /// One that make_room() has made.
  std::unique_ptr<event> take_blank() noexcept {
    return std::move(blanks[0] ? blanks[0] : blanks[1]);
  }

  /// The id's next state must come by `at`; 0: it may take its time.
  void expect_by(identifier& of, std::int64_t at) {
    if (at == of.deadline) return;
    if (at != 0) deadlines.emplace(at, &of);
    if (of.deadline != 0) deadlines.erase({of.deadline, &of});
    of.deadline = at;
  }

  /// Takes what made the descriptor wake; settle() sets it again.
  void drain() noexcept {
    std::uint64_t count = 0;
    (void)!::read(pending, &count, sizeof count);
    is_pending = false;
    if (timer >= 0) (void)!::read(timer, &count, sizeof count);
    timer_at = -1;
  }

  /// Lets the descriptor wake for what there is now.
  void settle() noexcept {
    if (here->fabric->is_copy()) return;  // the descriptors are the parent's too
    const bool wanted = has_event();
    if (wanted != is_pending) {
      std::uint64_t count = 1;
      if (wanted) {
        (void)!::write(pending, &count, sizeof count);
      } else {
        (void)!::read(pending, &count, sizeof count);
      }
      is_pending = wanted;
    }
    std::int64_t next = deadlines.empty() ? 0 : deadlines.begin()->first;
    if (!wanted && !events.empty() && (next == 0 || events.front()->due < next))
      next = events.front()->due;
    if (next != timer_at) set_timer(next);
  }

 private:
  void set_timer(std::int64_t at) noexcept {
    timer_at = at;
    if (at == 0) {
      ::close(std::exchange(timer, -1));
      return;
    }
    if (timer < 0) {
      timer = ::timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
      if (timer < 0 || watch(timer, &timer) != 0) return;
    }
    itimerspec when{};
    when.it_value.tv_sec = at / 1'000'000'000;
    when.it_value.tv_nsec = at % 1'000'000'000;
    ::timerfd_settime(timer, TFD_TIMER_ABSTIME, &when, nullptr);
  }
};

}  // namespace verbena::soft::cm

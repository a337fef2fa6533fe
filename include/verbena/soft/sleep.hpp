// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <poll.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <ctime>
#include <mutex>

#include <verbena/soft/objects.hpp>

/// What a channel's descriptor wakes for besides completions: timers of queue pairs that wait to
/// try again, and the end of processes they talk to.
namespace verbena::soft {

inline std::int64_t now_ns() noexcept {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return std::int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

/// Lets the channel wake at `at` (nanoseconds of the monotonic clock) or earlier.
inline void set_timer(channel& of, std::int64_t at) noexcept {
  const std::scoped_lock held{of.timer_lock};
  if (of.timer_at != 0 && of.timer_at <= at) return;
  of.timer_at = at;
  itimerspec when{};
  when.it_value.tv_sec = at / 1'000'000'000;
  when.it_value.tv_nsec = at % 1'000'000'000;
  ::timerfd_settime(of.timer, TFD_TIMER_ABSTIME, &when, nullptr);
}

/// Takes note that the channel's timer has gone off. Then what it was set for is to be looked at.
inline void clear_timer(channel& of) noexcept {
  const std::scoped_lock held{of.timer_lock};
  std::uint64_t expirations = 0;
  (void)!::read(of.timer, &expirations, sizeof expirations);
  of.timer_at = 0;
}

/// Lets the channel wake when a process ends. Under its lock.
inline void watch_process(context& here, channel& of, std::uint32_t owner) {
  if (owner == here.fabric->me() || place_of(owner) >= process_limit) return;
  if (std::any_of(of.watched.begin(), of.watched.end(),
                  [&](const auto& each) { return each.first == owner; }))
    return;
  if (of.watched.size() == of.watched.capacity()) of.watched.reserve(2 * of.watched.size() + 1);
  const process_entry& entry = here.fabric->shared().processes[place_of(owner)];
  const int descriptor =
      static_cast<int>(::syscall(SYS_pidfd_open, static_cast<pid_t>(entry.pid.load()), 0));
  if (descriptor < 0) return;
  epoll_event watch{};
  watch.events = EPOLLIN;
  watch.data.fd = descriptor;
  ::epoll_ctl(of.native.fd, EPOLL_CTL_ADD, descriptor, &watch);
  of.watched.emplace_back(owner, descriptor);
}

/// The same for each process there is: any may send datagrams. Under the channel's lock.
inline void watch_all(context& here, channel& of) {
  for (const process_entry& each : here.fabric->shared().processes)
    watch_process(here, of, each.owner.load());
}

/// Stops watching those that have ended: they would keep the descriptor readable. Under the
/// channel's lock.
inline void forget_ended(channel& of) {
  std::erase_if(of.watched, [&](const auto& each) {
    pollfd look{each.second, POLLIN, 0};
    if (::poll(&look, 1, 0) == 0) return false;
    ::epoll_ctl(of.native.fd, EPOLL_CTL_DEL, each.second, nullptr);
    ::close(each.second);
    return true;
  });
}

}  // namespace verbena::soft

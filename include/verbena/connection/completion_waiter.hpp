// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <poll.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <ctime>
#include <utility>

#include <verbena/connection/stop_signal.hpp>
#include <verbena/verbs/call.hpp>
#include <verbena/verbs/control_table.hpp>

namespace verbena {

/// Why an idle step of a wait ended.
enum class awake : std::uint8_t {
  look_again,  ///< something may have arrived, or nothing is known: poll
  look_aside,  ///< the further descriptor is readable
  timed_out,
  stopped,
  failed,  ///< the system refused to arm or to sleep
};

/// The sleeping side of a completion queue: arming, its events and their acknowledgement, the
/// stop signal. No wake-up is lost because a queue is polled once more between arming and
/// sleeping. Used by one thread; stop() by any.
class completion_waiter {
 public:
  completion_waiter(const verbs::control_table& table, ibv_comp_channel* channel,
                    stop_signal signal) noexcept
      : table_{&table}, channel_{channel}, signal_{std::move(signal)} {}
  /// Of a completion queue that was moved from.
  completion_waiter() = default;
  completion_waiter(const completion_waiter&) = delete;
  completion_waiter& operator=(const completion_waiter&) = delete;
  ~completion_waiter() = default;

  void watch(ibv_cq* queue) noexcept { queue_ = queue; }
  bool armed() const noexcept { return armed_; }

  /// Asks for an event on the next completion. Returns the errno, and leaves it in errno too, as
  /// sleep() does.
  int arm() noexcept {
    const int number =
        queue_ != nullptr ? verbs::returned_errno(ibv_req_notify_cq(queue_, 0)) : EINVAL;
    armed_ = number == 0;
    if (!armed_) errno = number;
    return number;
  }

  /// Makes the current and every later wait end at once, until resume(). Any thread.
  void stop() noexcept {
    stopped_.store(true, std::memory_order_release);
    signal_.stop();
  }
  void resume() noexcept {
    signal_.resume();
    stopped_.store(false, std::memory_order_release);
  }
  bool stopped() const noexcept { return stopped_.load(std::memory_order_acquire); }

  /// A further descriptor that ends a sleep when it is readable, -1 for none.
  void watch_also(int descriptor) noexcept { other_ = descriptor; }

  /// Sleeps until an event of this queue's channel, the stop signal, the further descriptor or
  /// the deadline. Only after arm() and a poll that found nothing.
  awake sleep(std::chrono::steady_clock::time_point deadline) noexcept {
    if (stopped()) return awake::stopped;
    const auto left = deadline - std::chrono::steady_clock::now();
    if (left <= left.zero()) return awake::timed_out;
    std::array<pollfd, 3> watched{pollfd{channel_->fd, POLLIN, 0},
                                  pollfd{stop_descriptor(), POLLIN, 0}, pollfd{other_, POLLIN, 0}};
    const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(left);
    const timespec limit{static_cast<std::time_t>(seconds.count()),
                         static_cast<long>((left - seconds).count())};
    const int ready = ::ppoll(watched.data(), watched.size(), &limit, nullptr);
    if (ready < 0) return errno == EINTR ? awake::look_again : awake::failed;
    if (stopped()) return awake::stopped;
    take_events();
    return watched[2].revents != 0 ? awake::look_aside : awake::look_again;
  }

  /// Takes what the channel holds, also for other queues on it: their waiters learn that they
  /// are no longer armed and count the event, which is acknowledged per queue. Whether there was
  /// one for another queue, whose completions then have no event any more.
  bool take_events() noexcept {
    if (channel_ == nullptr) return false;
    bool others = false;
    ibv_cq* queue = nullptr;
    void* context = nullptr;
    while (table_->get_cq_event(channel_, &queue, &context) == 0) {
      static_cast<completion_waiter*>(context)->count_event();
      others |= queue != queue_;
    }
    return others;
  }

  /// Acknowledges what has been counted; destroying the queue waits for that.
  void acknowledge() noexcept {
    if (unacknowledged_ != 0) table_->ack_cq_events(queue_, unacknowledged_);
    unacknowledged_ = 0;
  }

  /// -1 without a channel.
  int descriptor() const noexcept { return channel_ == nullptr ? -1 : channel_->fd; }
  int stop_descriptor() const noexcept { return signal_.descriptor(); }

 private:
  // Acknowledging takes a mutex, so it is done for many at a time.
  static constexpr unsigned acknowledge_at = 64;

  void count_event() noexcept {
    armed_ = false;
    if (++unacknowledged_ >= acknowledge_at) acknowledge();
  }

  const verbs::control_table* table_ = nullptr;
  ibv_comp_channel* channel_ = nullptr;
  ibv_cq* queue_ = nullptr;
  stop_signal signal_;
  int other_ = -1;
  unsigned unacknowledged_ = 0;
  bool armed_ = false;
  std::atomic<bool> stopped_{false};
};

}  // namespace verbena

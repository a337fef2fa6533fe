// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <chrono>
#include <memory>
#include <utility>

#include <verbena/connection/completion_queue_core.hpp>
#include <verbena/connection/deadline.hpp>
#include <verbena/policy/completion/busy_poll.hpp>
#include <verbena/policy/errors/throwing.hpp>

namespace verbena {

/// The completions of one connection or many: polls, waits, and gives each completion to the
/// handler of its kind. Move-only; connections attached to it keep what they need of it. Used by
/// one thread at a time, but for stop() and resume().
template <completion_policy Completion = completion::busy_poll,
          errors_policy Errors = errors::throwing>
class completion_queue {
 public:
  using core = completion_queue_core<Completion>;
  using clock = typename core::clock;

  /// Makes one. A channel given here may serve several queues of the same thread; without one an
  /// event-driven queue makes its own. Errors: errc::capacity with what the device allows; errno.
  [[nodiscard]] static auto open(const verbs::device& on, completion_queue_options options = {},
                                 const verbs::completion_channel& channel = {}) {
    return Errors::deliver(create(on, options, channel));
  }
  explicit completion_queue(const verbs::device& on, completion_queue_options options = {},
                            const verbs::completion_channel& channel = {})
    requires Errors::constructs
      : completion_queue{Errors::deliver(create(on, options, channel))} {}
  explicit completion_queue(std::shared_ptr<core> shared) noexcept : core_{std::move(shared)} {}

  /// What was moved from answers errc::moved_from.
  completion_queue(completion_queue&& other) noexcept
      : core_{std::exchange(other.core_, core::closed())} {}
  completion_queue& operator=(completion_queue&& other) noexcept {
    core_ = std::exchange(other.core_, core::closed());
    return *this;
  }
  ~completion_queue() = default;

  /// Dispatches one batch of completions to `handle` (see on()). Never blocks. Handlers may post,
  /// may throw (nothing is lost: the rest of the batch comes with the next poll), but may not poll
  /// the same queue, which closing a connection on it does too. An error means that the queue is
  /// lost and its connections are broken.
  template <class Handlers>
  [[gnu::always_inline]] polled poll(Handlers&& handle) {
    return core_->poll(handle);
  }

  /// Waits as the completion policy says until something has been dispatched; false with
  /// timed_out() or stopped() otherwise.
  template <class Handlers>
  polled wait(std::chrono::nanoseconds timeout, Handlers&& handle) {
    return core_->wait(deadline_after(timeout), handle);
  }

  /// For programs with a loop of their own: arms the queue and polls once more. True: something
  /// was there, for this queue or, with a count of 0, for another on its channel; do not sleep.
  /// False: sleep until descriptor() is readable, then call this again.
  template <class Handlers>
  polled prepare_to_sleep(Handlers&& handle)
    requires Completion::uses_channel
  {
    if (core_->native() == nullptr) return {progress{0, errc::moved_from}};
    completion_waiter& waiter = core_->waiter();
    const bool others = waiter.take_events();
    if (!waiter.armed()) {
      if (const int number = waiter.arm(); number != 0) return {progress::system(0, number)};
    }
    const polled found = core_->poll(handle);
    if (!found && !found.error() && others) return polled::elsewhere();
    return found;
  }

  /// Readable when an armed queue has something new: for poll() or epoll.
  int descriptor() const noexcept
    requires Completion::uses_channel
  {
    return core_->waiter().descriptor();
  }

  /// Ends the current wait and every later one at once, until resume(). Any thread.
  void stop() noexcept { core_->waiter().stop(); }
  void resume() noexcept { core_->waiter().resume(); }

  ibv_cq* native_handle() const noexcept { return core_->native(); }
  const std::shared_ptr<core>& shared() const noexcept { return core_; }

 private:
  static result<completion_queue> create(const verbs::device& on, completion_queue_options options,
                                         const verbs::completion_channel& channel) {
    BOOST_OUTCOME_TRY(auto made, core::create(on, options, channel.share()));
    return completion_queue{std::move(made)};
  }

  std::shared_ptr<core> core_;
};

}  // namespace verbena

// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <algorithm>
#include <bit>
#include <cassert>
#include <chrono>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <verbena/chain/polled.hpp>
#include <verbena/connection/completion_waiter.hpp>
#include <verbena/connection/handlers.hpp>
#include <verbena/connection/queue_pair_state.hpp>
#include <verbena/connection/receive_slots.hpp>
#include <verbena/operation/compare_and_swap.hpp>
#include <verbena/operation/fetch_and_add.hpp>
#include <verbena/operation/read.hpp>
#include <verbena/operation/receive.hpp>
#include <verbena/operation/send.hpp>
#include <verbena/operation/send_with_immediate.hpp>
#include <verbena/operation/write.hpp>
#include <verbena/operation/write_with_immediate.hpp>
#include <verbena/policy/completion.hpp>
#include <verbena/verbs/completion_channel.hpp>
#include <verbena/verbs/device.hpp>

namespace verbena {

/// How large a completion queue is.
struct completion_queue_options {
  /// Room for completions: the depths of all queues that are attached, sends and receives, since
  /// on a failure unsignaled requests complete too.
  std::uint32_t entries = 256;
  /// How many connections and receive rings may be attached at a time, at most 65536.
  std::uint32_t connections = 1;
};

/// What a completion queue shares with the connections attached to it: the queue itself, the
/// table of their states, and the waiting. Lives until the last of them is gone.
template <completion_policy Completion>
class completion_queue_core {
  struct token {};  // makes the constructor the library's own though make_shared calls it

 public:
  using clock = std::chrono::steady_clock;

  static result<std::shared_ptr<completion_queue_core>> create(const verbs::device& on,
                                                               completion_queue_options asked,
                                                               verbs::completion_channel channel) {
    BOOST_OUTCOME_TRY(on.usable("making a completion queue on a device"));
    if (channel.native_handle() != nullptr &&
        channel.native_handle()->context != on.native_handle()) {
      return error{errc::mismatch, "the completion channel is of another opened device than " +
                                       on.name() + ", though it may have the same name"};
    }
    if (asked.entries == 0 || asked.entries > static_cast<std::uint32_t>(on.attributes().max_cqe)) {
      return error{errc::capacity, "a completion queue of " + std::to_string(asked.entries) +
                                       " entries; " + on.name() + " allows 1 to " +
                                       std::to_string(on.attributes().max_cqe)};
    }
    if (asked.connections == 0 || asked.connections > 0x1'0000) {
      return error{errc::capacity, "a completion queue for " + std::to_string(asked.connections) +
                                       " connections; 1 to 65536 are possible"};
    }
    if (Completion::uses_channel && channel.native_handle() == nullptr) {
      BOOST_OUTCOME_TRY(channel, verbs::completion_channel::create(on));
    }
    BOOST_OUTCOME_TRY(auto signal, stop_signal::create());
    auto made =
        std::make_shared<completion_queue_core>(token{}, on, asked, channel, std::move(signal));
    errno = 0;
    ibv_cq* native = on.table().create_cq(on.native_handle(), static_cast<int>(asked.entries),
                                          &made->waiter_, channel.native_handle(), 0);
    BOOST_OUTCOME_TRY(on.checked(verbs::null_errno(native), [&] {
      return "cannot create a completion queue of " + std::to_string(asked.entries) +
             " entries on " + on.name();
    }));
    made->queue_.emplace(
        native, on.table(), "completion queue",
        [](const verbs::control_table& table, ibv_cq* held) {
          return verbs::returned_errno(table.destroy_cq(held));
        },
        verbs::object<ibv_cq>::parents{on.keep(), channel.keep()});
    made->waiter_.watch(native);
    made->has_left_ = false;
    return made;
  }

  /// What a completion queue that was moved from leaves behind: polling it takes the way of what
  /// is left over, which is looked at anyway, and ends with errc::moved_from.
  static const std::shared_ptr<completion_queue_core>& closed() {
    static const auto made = std::make_shared<completion_queue_core>(token{});
    return made;
  }
  explicit completion_queue_core(token) noexcept {}

  completion_queue_core(token, const verbs::device& on, completion_queue_options asked,
                        const verbs::completion_channel& channel, stop_signal signal)
      : waiter_{on.table(), channel.native_handle(), std::move(signal)},
        states_{std::make_unique<queue_pair_state[]>(std::bit_ceil(asked.connections))},
        taken_(asked.connections),
        place_mask_{std::bit_ceil(asked.connections) - 1},
        connections_{asked.connections} {
    left_.reserve(Completion::batch);
    for (std::uint32_t i = 0; i < asked.connections; ++i) states_[i].owner = i;
  }
  ~completion_queue_core() {
    if (queue_) waiter_.acknowledge();
  }

  /// Null for what was moved from.
  ibv_cq* native() const noexcept { return queue_ ? queue_->native() : nullptr; }
  completion_waiter& waiter() noexcept { return waiter_; }
  std::uint32_t entries() const noexcept { return static_cast<std::uint32_t>(native()->cqe); }
  std::uint32_t reserved() const noexcept { return reserved_; }
  std::uint32_t connections() const noexcept { return connections_; }

  /// Errors: errc::moved_from, with what is being done; errc::mismatch where it was made on another
  /// device, or by another opening of the same one.
  result<void> usable_on(const verbs::device& device, const char* doing) const {
    if (native() == nullptr) return error{errc::moved_from, doing};
    if (native()->context == device.native_handle()) return success();
    return error{errc::mismatch, "the completion queue is of another opened device than " +
                                     device.name() + ", though it may have the same name"};
  }

  /// A place for a queue pair whose queues hold `depth` requests together. Errors: errc::capacity.
  result<queue_pair_state*> attach(std::uint32_t depth) {
    if (depth > entries() - reserved_) {
      return error{errc::capacity, "a queue pair of " + std::to_string(depth) +
                                       " requests on a completion queue of " +
                                       std::to_string(entries()) + " entries, " +
                                       std::to_string(reserved_) + " of them taken"};
    }
    const auto place = std::find(taken_.begin(), taken_.end(), false);
    if (place == taken_.end()) {
      return error{errc::capacity,
                   "one more connection on a completion queue for " + std::to_string(connections_)};
    }
    *place = true;
    reserved_ += depth;
    return &states_[static_cast<std::size_t>(place - taken_.begin())];
  }

  /// Gives a place back once its queue pair is destroyed. The next generation begins, so that
  /// late completions of this queue pair find nobody.
  void detach(queue_pair_state& place, std::uint32_t depth) noexcept {
    taken_[static_cast<std::size_t>(&place - states_.get())] = false;
    const std::uint32_t next = (place.owner + 0x1'0000U) & work_request_id::own_mask;
    place = queue_pair_state{};
    place.owner = next;
    reserved_ -= depth;
  }

  /// Takes one batch of completions and dispatches each to `handle`. Never blocks. A completion
  /// that was taken is delivered even when the handler of an earlier one throws: by the next poll.
  template <class Handlers>
  [[gnu::always_inline]] polled poll(Handlers&& handle) {
    ibv_wc entries[Completion::batch];
    int count = 0;
    if (has_left_) [[unlikely]] {
      count = take_left(entries);
    } else {
      count = ibv_poll_cq(queue_->native(), Completion::batch, entries);
    }
    if (count < 0) [[unlikely]]
      return fail(verbs::negative_errno(count));
    dispatch(entries, count, handle);
    return polled{static_cast<std::uint32_t>(count)};
  }

  /// As poll, for the completions of one queue pair alone; those of others stay for the next poll.
  template <class Handlers>
  [[gnu::cold, gnu::noinline]] polled poll_only(const queue_pair_state& of, Handlers& handle) {
    const std::size_t kept = left_.size();
    left_.resize(kept + Completion::batch);
    const int count = ibv_poll_cq(queue_->native(), Completion::batch, left_.data() + kept);
    left_.resize(kept + static_cast<std::size_t>(std::max(count, 0)));
    if (count < 0) return fail(verbs::negative_errno(count));
    std::vector<ibv_wc> mine;
    const auto is_mine = [&of](const ibv_wc& entry) {
      const work_request_id id{entry.wr_id};
      return id.queue_pair() == of.owner ||
             (id.what() == operation::shared_receive && entry.qp_num == of.queue_pair->qp_num);
    };
    std::copy_if(left_.begin(), left_.end(), std::back_inserter(mine), is_mine);
    std::erase_if(left_, is_mine);
    has_left_ = !left_.empty();
    dispatch(mine.data(), static_cast<int>(mine.size()), handle);
    return polled{static_cast<std::uint32_t>(mine.size())};
  }

  /// Polls until something has been handled, the deadline passes or stop() is called; or until the
  /// waiter's further descriptor is readable, then without a count and without an error.
  template <class Handlers>
  polled wait(clock::time_point deadline, Handlers&& handle) {
    for (std::uint32_t empty = 0;; ++empty) {
      if (const polled found = poll(handle); found || found.error()) return found;
      switch (Completion::idle(waiter_, empty, deadline)) {
        case awake::look_again: break;
        case awake::look_aside: return polled{};
        case awake::timed_out: return {progress{0, errc::timed_out}};
        case awake::stopped: return {progress{0, errc::stopped}};
        case awake::failed: return {progress::system(0, errno != 0 ? errno : EIO)};
      }
    }
  }

 private:
  template <class Handlers>
  [[gnu::always_inline]] void dispatch(const ibv_wc* entries, int count, Handlers& handle) {
    static_assert(usable_handlers<Handlers>::value);
    if (count == 0) return;  // before g++ computes the end: most polls are empty
    const ibv_wc* const end = entries + count;
#if VERBENA_EXCEPTIONS
    try {
      for (; entries != end; ++entries) dispatch(*entries, handle);
    } catch (...) {
      keep(entries + 1, end);
      throw;
    }
#else
    for (; entries != end; ++entries) dispatch(*entries, handle);
#endif
  }

  template <class Handlers>
  [[gnu::always_inline]] void dispatch(const ibv_wc& entry, Handlers& handle) {
    const work_request_id id{entry.wr_id};
    queue_pair_state& state = states_[id.owner() & place_mask_];
    if (state.owner != id.owner()) {
      if constexpr (std::invocable<Handlers&, message>) {
        if (is_apart<operation::shared_receive>(entry, state)) [[likely]]
          return tell_message(entry, *state.slots, handle);
      }
      if constexpr (std::invocable<Handlers&, datagram>) {
        if (is_apart<operation::receive>(entry, state)) [[likely]] {
          const std::uint32_t retired = state.receives.retire(id.position());
          return handle(datagram{entry, state.receive_at(id.position()), retired});
        }
      }
    }
    if (state.owner != id.owner() || entry.status != IBV_WC_SUCCESS) [[unlikely]] {
      using handler = std::remove_reference_t<decltype(failure_handler(handle))>;
      // Named: as a mere argument of the call g++ would keep all handlers in memory for it.
      by_copy_or_reference<handler> told = failure_handler(handle);
      return tell_failure<handler>(entry, state, told);
    }
    if (id.what() == operation::receive) {
      const std::uint32_t retired = state.receives.retire(id.position());
      if constexpr (std::invocable<Handlers&, completed<receive>>) {
        std::byte* const data = state.receive_at(id.position());
        handle(completed<receive>{entry, data, retired});
      }
      return;
    }
    const std::uint32_t retired = state.sends.retire(id.position());
    (void)(tell<send>(entry, state, retired, handle) ||
           tell<write>(entry, state, retired, handle) ||
           tell<read>(entry, state, retired, handle) ||
           tell<send_with_immediate>(entry, state, retired, handle) ||
           tell<write_with_immediate>(entry, state, retired, handle) ||
           tell<compare_and_swap>(entry, state, retired, handle) ||
           tell<fetch_and_add>(entry, state, retired, handle));
  }

  /// Whether what is told apart has succeeded: a receive on transport::ud, or one of a ring.
  template <operation What>
  [[gnu::always_inline]] static bool is_apart(const ibv_wc& entry,
                                              const queue_pair_state& state) noexcept {
    return work_request_id{entry.wr_id}.is(What, state.owner | work_request_id::apart) &&
           entry.status == IBV_WC_SUCCESS;
  }

  /// The place is posted again also where the handler throws, and where its queue pair is gone.
  template <class Handlers>
  [[gnu::always_inline]] static void tell_message(const ibv_wc& entry, receive_slots& slots,
                                                  Handlers& handle) {
    struct taken {
      taken(receive_slots& of, std::uint32_t slot) noexcept : slots{of}, at{slot} {}
      taken(const taken&) = delete;
      taken& operator=(const taken&) = delete;
      ~taken() { slots.put_back(at); }
      receive_slots& slots;
      std::uint32_t at;
    } const slot{slots, work_request_id{entry.wr_id}.position()};
    if (const queue_pair_state* const of = slots.queue_pairs.find(entry.qp_num)) [[likely]]
      handle(message{entry, slots.memory_at(slot.at), connection_id{of->owner}});
  }

  template <template <class, class, class> class Operation, class Handlers>
  [[gnu::always_inline]] static bool tell(const ibv_wc& entry, const queue_pair_state& state,
                                          std::uint32_t retired, Handlers& handle) {
    if constexpr (std::invocable<Handlers&, completed<Operation>>) {
      const work_request_id id{entry.wr_id};
      const bool its_kind = id.what() == operation_of<Operation>;
      const auto done = [&]() __attribute__((always_inline)) {
        std::byte* data = nullptr;
        if constexpr (is_atomic(operation_of<Operation>)) data = state.result_at(id.position());
        handle(completed<Operation>{entry, data, retired});
      };
      if constexpr (kinds_sent<Handlers> == 1) {
        if (its_kind) [[likely]]  // else g++ puts the only handler aside
          done();
      } else {
        if (its_kind) done();
      }
      return its_kind;
    }
    return false;
  }

  /// How many kinds of what is sent the handlers want to hear of.
  template <class Handlers>
  static constexpr int kinds_sent =
      int{std::invocable<Handlers&, completed<send>>} +
      int{std::invocable<Handlers&, completed<read>>} +
      int{std::invocable<Handlers&, completed<write>>} +
      int{std::invocable<Handlers&, completed<send_with_immediate>>} +
      int{std::invocable<Handlers&, completed<write_with_immediate>>} +
      int{std::invocable<Handlers&, completed<compare_and_swap>>} +
      int{std::invocable<Handlers&, completed<fetch_and_add>>};

  /// What is no success of this owner: a failure, a datagram or message that nobody wants to hear
  /// of, or the completion of a queue pair that is gone.
  template <class Handler>
  [[gnu::cold, gnu::noinline]] static void tell_failure(const ibv_wc& entry,
                                                        queue_pair_state& state,
                                                        by_copy_or_reference<Handler> handle) {
    const work_request_id id{entry.wr_id};
    if (state.owner != id.queue_pair()) return;
    if (id.what() == operation::shared_receive) {
      const auto why = note_message(entry, *state.slots);
      if (why) handle(*why);
      return;
    }
    if (entry.status == IBV_WC_SUCCESS) {
      state.receives.retire(id.position());
      return;
    }
    if (id.what() == operation::part) {
      state.sends.retire(id.position());
      return state.fail_part(static_cast<status>(entry.status));
    }
    const failed request = note_failure(entry, state);
    if (request.what() != operation::marker || request.breaks_connection()) handle(request);
  }

  [[gnu::cold, gnu::noinline]] static failed note_failure(const ibv_wc& entry,
                                                          queue_pair_state& state) noexcept {
    const work_request_id id{entry.wr_id & ~(std::uint64_t{work_request_id::apart} << 16)};
    const bool receives = id.what() == operation::receive;
    (receives ? state.receives : state.sends).retire(id.position());
    auto why = static_cast<status>(entry.status);
    const bool of_part = !receives && state.untold();
    if (of_part) why = state.failure;
    const bool first = of_part || !state.broken();
    if (first) state.fail(why);
    return {id, why, entry.vendor_err, first};
  }

  /// A receive of a ring that nobody is told of, or that has failed: with it its connection has.
  [[gnu::cold, gnu::noinline]] static std::optional<failed> note_message(
      const ibv_wc& entry, receive_slots& slots) noexcept {
    const work_request_id id{entry.wr_id};
    slots.put_back(id.position());
    queue_pair_state* const of = slots.queue_pairs.find(entry.qp_num);
    if (entry.status == IBV_WC_SUCCESS || of == nullptr) return {};
    const auto why = static_cast<status>(entry.status);
    const bool first = !of->broken();
    if (first) of->fail(why);
    return failed{work_request_id::make(operation::receive, of->owner, id.position(), 0), why,
                  entry.vendor_err, first};
  }

  /// The next of what is left, as many as a batch holds.
  [[gnu::cold, gnu::noinline]] int take_left(ibv_wc* into) noexcept {
    if (!queue_) return -EINVAL;
    const auto count = std::min<std::ptrdiff_t>(std::ssize(left_), Completion::batch);
    std::copy_n(left_.begin(), count, into);
    left_.erase(left_.begin(), left_.begin() + count);
    has_left_ = !left_.empty();
    return static_cast<int>(count);
  }

  /// For the next poll, before what is left already.
  [[gnu::cold, gnu::noinline]] void keep(const ibv_wc* first, const ibv_wc* last) {
    left_.insert(left_.begin(), first, last);
    has_left_ = !left_.empty();
  }

  /// A queue that can not be polled is lost, and with it every connection on it.
  [[gnu::cold, gnu::noinline]] polled fail(int number) noexcept {
    if (!queue_) return {progress{0, errc::moved_from}};
    for (std::uint32_t i = 0; i < connections_; ++i) states_[i].fail(status::fatal);
    return {progress::system(0, number)};
  }

  completion_waiter waiter_;
  std::unique_ptr<queue_pair_state[]> states_;
  std::vector<bool> taken_;  ///< which of them a queue pair has
  std::uint32_t place_mask_ = 0;
  std::uint32_t connections_ = 0;
  std::uint32_t reserved_ = 0;
  bool has_left_ = true;  // until there is a queue
  std::vector<ibv_wc> left_;
  // Last: destroyed first, while the waiter its events name still lives.
  std::optional<verbs::object<ibv_cq>> queue_;
};

}  // namespace verbena

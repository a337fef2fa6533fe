// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <chrono>
#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <type_traits>
#include <utility>

#include <verbena/connection/attachment.hpp>
#include <verbena/connection/completion_queue.hpp>
#include <verbena/connection/datagram_session.hpp>
#include <verbena/connection/deadline.hpp>
#include <verbena/connection/endpoint_descriptor.hpp>
#include <verbena/connection/post_on.hpp>
#include <verbena/connection/reach.hpp>
#include <verbena/connection/session.hpp>
#include <verbena/memory/role.hpp>
#include <verbena/policy/policy_set.hpp>

namespace verbena {

template <class Policies>
class basic_listener;
class cm_session;

/// A connected queue pair (RTS): posts every operation its transport carries. Made by connecting
/// an endpoint or by accepting; move-only, and moving it changes nothing for requests in flight.
/// On transport::ud it is connected with nobody, and each send names its peer.
/// One thread at a time uses it and its completion queue, unless the threading policy says else.
template <class Policies>
class basic_connection {
  using errors = typename Policies::errors;
  using clock = std::chrono::steady_clock;

 public:
  using policies = Policies;
  using attachment_type =
      attachment<typename Policies::completion, typename Policies::threading::mutex>;
  using transport = typename Policies::transport;
  using session_type =
      std::conditional_t<Policies::setup::uses_cm, cm_session,
                         std::conditional_t<transport::addressed, datagram_session, no_session>>;
  using queue_type = completion_queue<typename Policies::completion, errors>;
  /// For setup::cm: where connections of this kind are accepted.
  using listener = basic_listener<Policies>;

  basic_connection(std::unique_ptr<attachment_type> here, const region_list& peers,
                   session_type session = {})
      : attachment_{std::move(here)},
        session_{std::move(session)},
        queue_{attachment_->queue()},
        state_{attachment_->state()},
        peers_{peers} {}

  /// Posts one chain, on one doorbell: any number of receives, or of sends, reads and writes, in
  /// the order given. The memory is the adapter's until the completion. The value tells how many
  /// entered; a full queue is would_block(), not an error. Other failures go to the errors policy
  /// first: errc::broken, foreign_domain, message_too_long, outside_region, capacity (a chain
  /// longer than the queue), not_supported (a read into more pieces than the device takes),
  /// moved_from; errno of the provider. Two posts ring two doorbells, which costs throughput and
  /// saves latency on some adapters.
  template <class... Requests>
  [[gnu::always_inline]] posted post(const Requests&... requests) {
    return post_on<Policies>(*state_, mutex(), requests...);
  }

  /// A chain to be posted again and again, of whose work requests a post writes only what changes:
  /// ids and signals. Checked here, but for what changes; of what is refused nothing is made. Needs
  /// posting::list. The memory must be there whenever it is posted. Errors: those of post.
  template <class... Requests>
  [[nodiscard]] auto prepare(const Requests&... requests) {
    return errors::deliver(prepare_on<Policies>(*state_, requests...));
  }
  /// What prepare() gives for operations of these shapes, where it has to be named.
  template <class... Shapes>
  using prepared = verbena::prepared<core_of<Policies>, Shapes...>;

  /// Posts a prepared chain, as post does; tokens and immediates may be given before. Errors also:
  /// errc::other_connection.
  template <class... Shapes>
  [[gnu::always_inline]] posted post(prepared<Shapes...>& chain) {
    return post_on<Policies>(*state_, mutex(), chain);
  }

  /// Waits until everything posted so far, receives too, has completed. Completions go to
  /// `handle`, which may post but not close or destroy this connection; what it misses is lost, so
  /// on a completion queue shared with other connections use completions().wait(). Errors:
  /// errc::timed_out, errc::stopped, errc::disconnected, the status that broke the connection.
  template <class Handlers>
  auto wait(std::chrono::nanoseconds timeout, Handlers&& handle) {
    return errors::deliver(wait_for(timeout, handle));
  }
  /// The same without handlers; on a completion queue of its own only.
  auto wait(std::chrono::nanoseconds timeout) { return errors::deliver(wait_alone(timeout)); }

  /// The queue that the completions of this connection come from; shared or its own.
  queue_type& completions() noexcept { return queue_; }

  /// The peer's region at `index` in its descriptor, as elements of T with what `Roles` need, or
  /// remote_writable when none is named. Errors: errc::no_right with what is granted;
  /// errc::wire_value where T does not fit; errc::capacity for an index beyond those described.
  template <class T, role... Roles>
    requires(!transport::addressed)
  auto peer(std::size_t index = 0) const {
    return errors::deliver(peers_.template at<T, Roles...>(index));
  }

  /// On transport::ud: whom a descriptor, of an endpoint on transport::ud, describes. Costs a call
  /// of the driver: keep it. Errors: errc::wire_* for bytes that are no descriptor, errc::mismatch,
  /// errc::no_usable_gid, moved_from; errno of ibv_create_ah.
  [[nodiscard]] auto peer(std::span<const std::byte> descriptor) const
    requires(transport::addressed)
  {
    return errors::deliver(
        make_peer([&] { return link::described_peer(*attachment_, session_.self, descriptor); }));
  }
  /// On transport::ud: who sent a datagram, in its handler. Its queue key is this end's, as a
  /// datagram does not tell it. Costs as much. Errors: errc::no_usable_gid where the datagram does
  /// not tell where it came from, as one in several pieces of memory; errno of ibv_create_ah.
  [[nodiscard]] auto peer(const datagram& from) const
    requires(transport::addressed)
  {
    return errors::deliver(make_peer([&] {
      return link::sender_of(*attachment_, session_.self, from, attachment_->options().queue_key);
    }));
  }
  /// How many regions the peer has described.
  std::size_t peer_regions() const noexcept { return peers_.count; }

  /// Whether the peer has closed or died, as far as setup::cm can tell; requests outstanding are
  /// then flushed. Never blocks. wait() asks by itself, completions().wait() does not. With
  /// setup::descriptor only a failing request tells.
  bool peer_gone() {
    if (attachment_ == nullptr || !session_.peer_gone()) return false;
    if (!std::exchange(flushed_, true)) (void)attachment_->fail();
    return true;
  }

  /// Readable when peer_gone() has something to look at, for poll() or epoll; -1 for never.
  int peer_descriptor() const noexcept { return session_.descriptor(); }

  /// Lets the requests posted complete (within options::close_timeout), tells the peer, takes what
  /// is left flushed (within as much again), and destroys the queue pair. Again: does nothing. The
  /// destructor does the same without waiting for sends. Errors: errc::incomplete_drain; EDEADLK in
  /// a handler that wait() calls; errno of the verbs.
  auto close() { return errors::deliver(close_now()); }

  /// Tells this connection's completions from those of others on the same queue.
  connection_id id() const noexcept { return connection_id{state_->owner}; }

  /// What the device made of the depths and pieces asked for, at least those; nothing once closed.
  ibv_qp_cap granted() const noexcept {
    return attachment_ ? attachment_->granted() : ibv_qp_cap{};
  }
  /// What can be posted on it; nothing once closed.
  verbena::capabilities capabilities() const {
    return attachment_ ? attachment_->template capabilities<transport>() : verbena::capabilities{};
  }
  ibv_qp* native_handle() const noexcept {
    return attachment_ ? attachment_->native_handle() : nullptr;
  }

 private:
  using mutex_type = typename Policies::threading::mutex;
  mutex_type& mutex() noexcept {
    static mutex_type of_what_is_closed;
    return attachment_ != nullptr ? attachment_->mutex() : of_what_is_closed;
  }

  /// Lets a wait look at the session.
  struct session_watch {
    explicit session_watch(basic_connection& of) noexcept
        : self{of}, waiter{of.attachment_->queue()->waiter()} {
      waiter.watch_also(self.session_.descriptor());
    }
    session_watch(const session_watch&) = delete;
    session_watch& operator=(const session_watch&) = delete;
    ~session_watch() { waiter.watch_also(-1); }
    bool operator()() const { return self.peer_gone(); }

    static constexpr std::chrono::nanoseconds every = session_type::every;
    basic_connection& self;
    completion_waiter& waiter;
  };

  template <class Make>
  result<verbena::peer> make_peer(Make&& make) const {
    if (attachment_ == nullptr) return error{errc::moved_from, "making a peer of a connection"};
    return make();
  }

  /// Whether a failed wait failed for nothing but the peer's end. iWARP flushes by itself when the
  /// stream ends, and may be earlier than the CM's event.
  bool is_disconnected() {
    if constexpr (!Policies::setup::uses_cm) return false;
    const bool iwarp = attachment_->device().is_iwarp();
    if (state_->broken() && state_->failure != status::flushed) {
      // siw fails the requests it finds when the stream ends, others it flushes.
      return iwarp && state_->failure == status::local_operation && peer_gone();
    }
    return peer_gone() || (state_->broken() && iwarp);
  }

  template <class Handlers>
  result<void> wait_for(std::chrono::nanoseconds timeout, Handlers& handle) {
    if (attachment_ == nullptr) return error{errc::moved_from, "waiting on a connection"};
    auto outcome = attachment_->wait(deadline_after(timeout), handle, session_watch{*this});
    // A handler may have moved the connection, which is then another's to look at.
    if (!outcome && attachment_ != nullptr && is_disconnected()) {
      state_->fail(status::flushed);
      return error{errc::disconnected, "the peer of queue pair " +
                                           std::to_string(native_handle()->qp_num) +
                                           " closed it or died"};
    }
    return outcome;
  }

  result<void> wait_alone(std::chrono::nanoseconds timeout) {
    if (attachment_ != nullptr && !attachment_->owns_queue()) {
      return error{std::make_error_code(std::errc::operation_not_permitted),
                   "wait() without handlers on a shared completion queue would lose completions of "
                   "others: use completions().wait()"};
    }
    return wait_for(timeout, ignore);
  }

  result<void> close_now() {
    if (attachment_ == nullptr) return success();
    if (attachment_->waits()) {
      return error{std::make_error_code(std::errc::resource_deadlock_would_occur),
                   "close() in a handler that wait() of the same connection has called"};
    }
    const auto deadline = deadline_after(attachment_->options().close_timeout);
    if (!state_->broken() && !peer_gone()) attachment_->finish_sends(deadline, ignore);
    auto said = session_.disconnect();
    session_ = {};
    auto closed = attachment_->close(deadline_after(attachment_->options().close_timeout), ignore);
    if (!closed && attachment_->native_handle() != nullptr) return closed;
    state_.close();
    attachment_.reset();
    return closed ? std::move(said) : std::move(closed);
  }

  static constexpr auto ignore = on([](const failed&) noexcept {});

  std::unique_ptr<attachment_type> attachment_;
  session_type session_;  // goes before the queue pair, which it has told the peer of
  queue_type queue_;
  state_pointer state_;
  region_list peers_;
  bool flushed_ = false;
};

/// A connection with policies in any order: connection<setup::cm, completion::event_driven>.
template <class... Policies>
using connection = basic_connection<policies<Policies...>>;

}  // namespace verbena

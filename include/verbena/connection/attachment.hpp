// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <algorithm>
#include <bit>
#include <cassert>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>

#include <verbena/connection/capabilities.hpp>
#include <verbena/connection/completion_queue_core.hpp>
#include <verbena/connection/deadline.hpp>
#include <verbena/connection/endpoint_descriptor.hpp>
#include <verbena/connection/fit.hpp>
#include <verbena/connection/options.hpp>
#include <verbena/connection/receive_ring_core.hpp>
#include <verbena/operation/legality.hpp>
#include <verbena/policy/posting/send_ops.hpp>
#include <verbena/verbs/queue_pair.hpp>
#include <verbena/verbs/timers.hpp>

namespace verbena {

/// A queue pair on a completion queue, from INIT to its end: what an endpoint is made of and a
/// connection takes over. Stays where it is while those move.
template <completion_policy Completion, class Mutex>
class attachment {
  struct token {};

 public:
  using core = completion_queue_core<Completion>;
  using ring = receive_ring_core<Completion>;
  using clock = std::chrono::steady_clock;

  /// A queue pair in INIT, which can already take receives, or takes those of `receives`. Without a
  /// `queue` it gets one of its own. Errors: errc::capacity naming the option, what was asked and
  /// allowed; errno of the verbs.
  template <class Transport, class Signaling, class Posting, class Threading>
  static result<std::unique_ptr<attachment>> create(const verbs::protection_domain& domain,
                                                    verbena::options asked,
                                                    std::shared_ptr<core> queue,
                                                    std::shared_ptr<ring> receives = {}) {
    const verbs::device& device = domain.device();
    BOOST_OUTCOME_TRY(device.usable("making an endpoint on a device"));
    if (receives != nullptr) {
      queue = receives->queue();
      asked.receive_depth = 0;
      asked.receive_pieces = 0;
    }
    if (queue != nullptr) {
      BOOST_OUTCOME_TRY(queue->usable_on(device, "making an endpoint on a completion queue"));
    }
    if (device.is_iwarp() && Transport::queue_pair_type != IBV_QPT_RC) {
      return error{errc::not_supported, std::string{"transport::"} +
                                            legality::rules_of(Transport::queue_pair_type).name +
                                            " on " + device.name() +
                                            " (iWARP: transport::rc alone)"};
    }
    const bool own = queue == nullptr;
    BOOST_OUTCOME_TRY(fit::to_device(device, asked, receives != nullptr));
    if (own) {
      BOOST_OUTCOME_TRY(fit::to_completion_queue(device, asked));
    }
    BOOST_OUTCOME_TRY(auto port, device.port(asked.port));
    if (port.state != IBV_PORT_ACTIVE) {
      return error{
          std::make_error_code(std::errc::network_down),
          "port " + std::to_string(asked.port) + " of " + device.name() + " is not active"};
    }
    if (own) {
      const std::uint32_t most = static_cast<std::uint32_t>(device.attributes().max_cqe);
      const std::uint32_t entries =
          std::min(most, std::bit_ceil(asked.send_depth) + std::bit_ceil(asked.receive_depth));
      BOOST_OUTCOME_TRY(auto made, core::create(device, {entries, 1}, {}));
      queue = std::move(made);
    }
    auto made = std::make_unique<attachment>(token{}, domain, asked, std::move(queue), own,
                                             std::move(receives));
    BOOST_OUTCOME_TRY((made->template start<Transport, Signaling, Posting, Threading>(port)));
    return made;
  }

  attachment(token, const verbs::protection_domain& domain, const verbena::options& asked,
             std::shared_ptr<core> queue, bool own, std::shared_ptr<ring> receives)
      : domain_{domain.share()},
        options_{asked},
        queue_{std::move(queue)},
        own_queue_{own},
        ring_{std::move(receives)} {}
  attachment(const attachment&) = delete;
  attachment& operator=(const attachment&) = delete;
  ~attachment() {
    assert(!waits_ && "a handler destroyed the connection whose wait() had called it");
    if (state_ == nullptr) return;
    if (auto closed = close(deadline_after(options_.close_timeout)); !closed) {
      verbs::destroy_failure.load()(closed.error());
    }
  }

  queue_pair_state& state() const noexcept { return *state_; }
  const std::shared_ptr<core>& queue() const noexcept { return queue_; }
  bool owns_queue() const noexcept { return own_queue_; }
  const verbena::options& options() const noexcept { return options_; }
  const ibv_qp_cap& granted() const noexcept { return granted_; }
  const verbs::protection_domain& domain() const noexcept { return domain_; }
  const verbs::device& device() const noexcept { return domain_.device(); }
  const ibv_port_attr& port() const noexcept { return port_; }
  ibv_qp* native_handle() const noexcept { return queue_pair_.native_handle(); }
  Mutex& mutex() noexcept { return mutex_; }
  /// Whether a handler that wait() called is running: nothing may be closed then.
  bool waits() const noexcept { return waits_; }

  /// The largest MTU this end can do.
  ibv_mtu max_mtu() const noexcept {
    return std::min(port_.active_mtu, static_cast<ibv_mtu>(options_.max_mtu));
  }

  /// What the peer may do to this end's memory from now on; only before it is connected.
  template <class Transport>
  result<void> allow(rights more, std::uint16_t partition = 0) {
    allowed_ = allowed_ | more;
    ibv_qp_attr attributes{};
    attributes.qp_state = IBV_QPS_INIT;
    // The marker is a write, if of no bytes, and the peer's adapter refuses writes where the queue
    // pair does not allow them. What can be written is up to the regions.
    attributes.qp_access_flags =
        static_cast<unsigned>(access_flags(allowed_ | rights::remote_write));
    attributes.pkey_index = partition;
    attributes.port_num = options_.port;
    attributes.qkey = options_.queue_key;
    return queue_pair_.modify(attributes, Transport::to_init, "INIT");
  }

  result<void> modify(const ibv_qp_attr& attributes, int mask, const char* step) const {
    return queue_pair_.modify(attributes, mask, step);
  }

  /// How many reads the peers agreed that this end may have in flight: without any, an adapter
  /// takes a read and never does it. How many pieces one fills is max_sge_rd where that differs,
  /// see ibv_query_device(3); drivers that know no difference leave it 0 but for iWARP's, whose
  /// reads name one place (RFC 5040).
  void agree_on_reads(std::uint8_t depth) noexcept {
    const int limit = device().attributes().max_sge_rd;
    std::uint32_t most = granted_.max_send_sge;
    if (limit > 0 || device().is_iwarp()) {
      most = std::min(most, static_cast<std::uint32_t>(std::max(limit, 1)));
    }
    state_->read_pieces = depth == 0 ? std::uint8_t{0} : in_a_byte(most);
    reads_ = depth;
  }

  template <class Transport>
  verbena::capabilities capabilities() const {
    const queue_pair_state& now = *state_;
    const bool reads = Transport::carries(operation::read);
    return {.device = device().name(),
            .transport = legality::rules_of(Transport::queue_pair_type).name,
            .immediates = !now.lacks(feature::immediates),
            .atomics = !now.lacks(feature::atomics),
            .fenced_reads = reads && !now.lacks(feature::beyond_iwarp),
            .empty_receives = !now.lacks(feature::beyond_iwarp),
            .reads = reads_,
            .send_depth = now.sends.capacity,
            .receive_depth = now.receives.capacity,
            .send_pieces = now.send_pieces,
            .receive_pieces = now.receive_pieces,
            .read_pieces = now.read_pieces,
            .inline_bytes = now.inline_limit,
            .max_message = now.max_message};
  }

  /// Makes every request outstanding or posted from now on complete as flushed.
  result<void> fail() {
    BOOST_OUTCOME_TRY(queue_pair_.fail());
    return success();
  }

  /// Waits until what has been posted so far has completed; completions go to `handle`. When the
  /// waiter's further descriptor wakes it, and each `look_aside.every`, `look_aside` is called;
  /// true means that the queue pair has been moved to ERR, so that no more than flushing is left
  /// to wait for. Errors: errc::timed_out with what is outstanding, errc::stopped, the status of
  /// what broke the queue pair, errno.
  template <class Handlers, class LookAside>
  result<void> wait(clock::time_point deadline, Handlers&& handle, LookAside&& look_aside) {
    const waiting inside{*this};
    queue_pair_state& state = *state_;
    std::unique_lock at_once{mutex_};  // where others post meanwhile
    const std::uint32_t sends = state.sends.end();
    const std::uint32_t receives = state.receives.end();
    bool marked = state.unsignaled == 0;
    at_once.unlock();
    bool over = false;
    clock::time_point look_at = clock::now() + look_aside.every;
    while (!(state.sends.retired_before(sends) && state.receives.retired_before(receives))) {
      if (!marked && state.sends.has_room(1)) {
        const auto posted = post_marker();
        // A provider that is fuller than it said has room again when a signaled request completes.
        const bool later = posted.has_error() && posted.error() == std::errc::not_enough_memory &&
                           state.sends.outstanding() > state.unsignaled;
        if (!posted && !later) return posted;
        marked = posted.has_value();
      }
      const auto until = Completion::uses_channel ? deadline : std::min(deadline, look_at);
      const polled found = queue_->wait(until, handle);
      const clock::time_point now = clock::now();
      const bool woken = !found && !found.error();
      if (woken || now >= look_at) {
        look_at = now + look_aside.every;
        if (look_aside() && !std::exchange(over, true)) {
          deadline = std::min(deadline, deadline_after(flush_time()));
        }
      }
      if (!found.error() || (found.timed_out() && now < deadline)) continue;
      return error{found.error(), "waiting for " + std::to_string(state.sends.outstanding()) +
                                      " send and " + std::to_string(state.receives.outstanding()) +
                                      " receive requests"};
    }
    if (state.broken()) return broken_error();
    return success();
  }

  /// Waits until the sends posted so far have completed or the deadline has passed.
  template <class Handlers>
  void finish_sends(clock::time_point deadline, Handlers&& handle) {
    queue_pair_state& state = *state_;
    if (state.unsignaled != 0 && state.sends.has_room(1) && !post_marker()) return;
    while (state.sends.outstanding() != 0 && !state.broken() && clock::now() < deadline) {
      if (!queue_->poll_only(state, handle)) std::this_thread::yield();
    }
  }

  error broken_error() const {
    return {
        make_error_code(state_->failure),
        "the connection of queue pair " + std::to_string(native_handle()->qp_num) + " is broken"};
  }

  /// Moves to ERR, takes the completions of everything outstanding (given to `handle`) until the
  /// deadline, then destroys the queue pair. Errors: errc::incomplete_drain when some were
  /// missing, which does not keep the queue pair from being destroyed; errno of the verbs.
  template <class Handlers>
  result<void> close(clock::time_point deadline, Handlers&& handle) {
    if (state_ == nullptr) return success();
    queue_pair_state& state = *state_;
    result<void> outcome = success();
    if (state.unsignaled != 0 && state.sends.has_room(1)) (void)post_marker();
    if (auto failed = queue_pair_.fail(); !failed) outcome = std::move(failed).error();
    state.fail(status::flushed);
    // Not by wait(), which a stop() would end.
    const bool iwarp = device().is_iwarp();
    const clock::time_point until = iwarp ? deadline_after(flush_time()) : deadline;
    while (state.sends.outstanding() + state.receives.outstanding() != 0) {
      if (const polled found = queue_->poll_only(state, handle); found) continue;
      if (clock::now() >= until) break;
      std::this_thread::sleep_for(std::chrono::microseconds{20});
    }
    if (ring_ != nullptr) take_messages(handle);
    const std::uint32_t missing = state.sends.outstanding() + state.receives.outstanding();
    if (outcome && missing != 0 && !iwarp) {
      outcome = error{errc::incomplete_drain, std::to_string(missing) + " requests of queue pair " +
                                                  std::to_string(native_handle()->qp_num)};
    }
    const std::uint32_t number = native_handle()->qp_num;
    BOOST_OUTCOME_TRY(queue_pair_.close());
    if (ring_ != nullptr) ring_->slots().queue_pairs.remove(number);
    domain_.lingering().remove(state.sends);
    domain_.lingering().remove(state.receives);
    queue_->detach(*std::exchange(state_, nullptr), depth_);
    return outcome;
  }
  result<void> close(clock::time_point deadline) {
    return close(deadline, on([](const failed&) noexcept {}));
  }

 private:
  struct waiting {
    explicit waiting(attachment& of) noexcept : self{of} { self.waits_ = true; }
    waiting(const waiting&) = delete;
    waiting& operator=(const waiting&) = delete;
    ~waiting() { self.waits_ = false; }
    attachment& self;
  };

  template <class Transport, class Signaling, class Posting, class Threading>
  result<void> start(const ibv_port_attr& port) {
    port_ = port;
    ibv_qp_init_attr wanted{};
    wanted.send_cq = queue_->native();
    wanted.recv_cq = queue_->native();
    wanted.qp_type = Transport::queue_pair_type;
    wanted.cap.max_send_wr = options_.send_depth;
    wanted.cap.max_recv_wr = options_.receive_depth;
    wanted.cap.max_send_sge = options_.send_pieces;
    wanted.cap.max_recv_sge = options_.receive_pieces;
    if (ring_ != nullptr) wanted.srq = ring_->slots().native_handle();
    const feature lacking = lacking_features<Transport>(device());
    verbs::thread_domain thread;
    if constexpr (!Threading::any_thread) {
      BOOST_OUTCOME_TRY(thread, verbs::thread_domain::create_if_any(domain_));
    }
    BOOST_OUTCOME_TRY(
        make_queue_pair(wanted, Posting::uses_qp_ex ? send_ops<Transport>(lacking) : 0, thread));
    BOOST_OUTCOME_TRY(fit::to_grant(device(), options_, granted_));
    // Up to rdma-core 44 its ibv_wr_set_sge_list takes all pieces for as long as the first, and
    // its ibv_wr_set_inline_data_list counts none of them.
    if (Posting::uses_qp_ex && device().is_rxe()) granted_.max_send_sge = 1;

    // More may be granted than asked: it is used where the completion queue has room for it.
    const auto most = [](std::uint32_t depth) {
      return std::min(depth, work_queue_positions::depth_limit);
    };
    std::uint32_t sends = most(granted_.max_send_wr);
    // Ignored beside a shared receive queue, see ibv_create_qp(3), whatever is in it.
    if (ring_ != nullptr) granted_.max_recv_wr = granted_.max_recv_sge = 0;
    std::uint32_t receives = most(granted_.max_recv_wr);
    if (sends + receives > queue_->entries() - queue_->reserved()) {
      sends = std::min(sends, options_.send_depth);
      receives = std::min(receives, options_.receive_depth);
    }
    BOOST_OUTCOME_TRY(auto place, queue_->attach(sends + receives));
    state_ = place;
    depth_ = sends + receives;
    const bool has_results =
        (static_cast<unsigned>(lacking) & static_cast<unsigned>(feature::atomics)) == 0;
    const std::uint32_t positions =
        std::bit_ceil(has_results ? std::max(sends, receives) : receives);
    memory_at_ = std::make_unique<std::byte*[]>(std::size_t{positions} * (has_results ? 2 : 1));
    state_->queue_pair = queue_pair_.native_handle();
    state_->memory_at = memory_at_.get();
    state_->memory_mask = static_cast<std::uint16_t>(positions - 1);
    state_->lacking = lacking;
    state_->inline_limit = static_cast<std::uint16_t>(std::min(granted_.max_inline_data, 0xffffU));
    state_->sends.capacity = sends;
    state_->receives.capacity = receives;
    state_->domain = domain_.id();
    state_->max_message = Transport::max_message(port);
    state_->send_pieces = in_a_byte(granted_.max_send_sge);
    state_->receive_pieces = in_a_byte(granted_.max_recv_sge);
    state_->signal_window = Signaling::window(sends);
    if (ring_ != nullptr) ring_->slots().queue_pairs.add(native_handle()->qp_num, *state_);
    domain_.lingering().add(state_->sends);
    domain_.lingering().add(state_->receives);
    return allow<Transport>(options_.peer_may);
  }

  /// What must outlive the queue pair beside its domain.
  std::shared_ptr<const void> kept() const noexcept {
    if (ring_ != nullptr) return ring_;
    return queue_;
  }

  /// Completions of what has come to the ring for this queue pair, which fails: as many as the
  /// queue can hold, as nothing tells how many there are.
  template <class Handlers>
  void take_messages(Handlers&& handle) {
    for (std::uint32_t seen = 0; seen < queue_->entries(); seen += Completion::batch) {
      (void)queue_->poll_only(*state_, handle);
    }
  }

  /// What an adapter can take inline can not be asked: where less is welcome, less is tried until
  /// it takes that.
  result<void> make_queue_pair(const ibv_qp_init_attr& wanted, std::uint64_t send_ops,
                               const verbs::thread_domain& thread) {
    // 28 bytes and their header are no longer than the two pieces of memory that a request has.
    std::uint32_t bytes = options_.inline_bytes.value_or(28);
    const bool exact = options_.inline_bytes && options_.capacity == capacity::exact;
    for (;; bytes /= 2) {
      ibv_qp_init_attr asked = wanted;
      asked.cap.max_inline_data = bytes;
      auto made = verbs::queue_pair::create(domain_, asked, kept(), send_ops, thread);
      const bool too_long = !made && made.error() == std::errc::invalid_argument && bytes != 0;
      if (too_long && !exact) continue;
      if (send_ops != 0 && !made &&
          (made.error() == std::errc::not_supported ||
           made.error() == std::errc::function_not_supported)) {
        return error{errc::not_supported, "posting::builder on " + device().name() +
                                              " (its provider has no ibv_wr_* for all that this "
                                              "transport carries: posting::list works)"};
      }
      BOOST_OUTCOME_TRY(queue_pair_, std::move(made));
      granted_ = asked.cap;
      if (!exact || granted_.max_inline_data >= bytes) return success();
      return error{errc::capacity, "inline_bytes " + std::to_string(bytes) + "; " +
                                       device().name() + " granted " +
                                       std::to_string(granted_.max_inline_data)};
    }
  }

  /// What ibv_wr_* shall build: all that the transport carries and the device has.
  template <class Transport>
  static std::uint64_t send_ops(feature lacking) noexcept {
    const auto lacks = [&](feature one) {
      return (static_cast<unsigned>(lacking) & static_cast<unsigned>(one)) != 0;
    };
    return posting::send_ops_of<Transport> &
           ~((lacks(feature::immediates) ? posting::immediate_ops : 0) |
             (lacks(feature::atomics) ? posting::atomic_ops : 0));
  }

  /// iWARP has no immediates (RFC 5040) and, like its drivers, no atomics; siw refuses receives
  /// without memory, and fails at a read with a fence. What says of itself that it has no atomics
  /// has none.
  template <class Transport>
  static feature lacking_features(const verbs::device& on) noexcept {
    feature found{};
    if (on.is_iwarp()) found = feature::immediates | feature::atomics | feature::beyond_iwarp;
    if (on.attributes().atomic_cap == IBV_ATOMIC_NONE ||
        !Transport::carries(operation::fetch_and_add)) {
      found = found | feature::atomics;
    }
    return found;
  }

  static std::uint8_t in_a_byte(std::uint32_t pieces) noexcept {
    return static_cast<std::uint8_t>(std::min(pieces, 255U));
  }

  /// How long the completions of flushed requests may take to come. siw has made them all when the
  /// transition returns, and never makes those of requests posted after the stream had ended.
  std::chrono::nanoseconds flush_time() const noexcept {
    return device().is_iwarp() ? std::chrono::milliseconds{20} : options_.close_timeout;
  }

  /// An empty signaled write, whose completion retires the unsignaled requests before it.
  [[gnu::cold, gnu::noinline]] result<void> post_marker() {
    queue_pair_state& state = *state_;
    const std::lock_guard guard{mutex_};
    if (!state.sends.has_room(1)) return system_failure(ENOMEM, "cannot post a marker");
    ibv_send_wr work{};
    work.wr_id = work_request_id::make(operation::marker, state.owner, state.sends.posted, 0).word;
    work.opcode = IBV_WR_RDMA_WRITE;
    work.send_flags = IBV_SEND_SIGNALED;
    ibv_send_wr* refused = nullptr;
    const int value = ibv_post_send(state.queue_pair, &work, &refused);
    if (value != 0 || refused != nullptr) {
      return system_failure(verbs::refused_errno(value), "cannot post a marker");
    }
    state.sends.post(1);
    state.unsignaled = 0;
    return success();
  }

  verbs::protection_domain domain_;
  verbena::options options_;
  std::shared_ptr<core> queue_;
  bool own_queue_;
  std::shared_ptr<ring> ring_;
  verbs::queue_pair queue_pair_;
  std::unique_ptr<std::byte*[]> memory_at_;
  queue_pair_state* state_ = nullptr;
  std::uint32_t depth_ = 0;
  ibv_qp_cap granted_{};
  ibv_port_attr port_{};
  rights allowed_{};
  std::uint8_t reads_ = 0;  ///< in flight, as agreed with the peer
  bool waits_ = false;
  Mutex mutex_;
};

}  // namespace verbena

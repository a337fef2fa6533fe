// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <chrono>
#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include <verbena/cm/connection_request.hpp>
#include <verbena/connection/deadline.hpp>
#include <verbena/connection/stop_signal.hpp>

namespace verbena {

/// How a listener listens.
struct listener_options {
  int backlog = 128;   ///< requests that wait to be accepted; more are refused
  options endpoint{};  ///< of the endpoints that accept() makes
};

/// Where peers connect to (setup::cm), in a protection domain. Move-only; one thread at a time,
/// but for stop() and resume(). Connections outlive it.
template <class Policies>
class basic_listener {
  static_assert(Policies::setup::uses_cm,
                "a listener needs setup::cm: setup::descriptor has nothing to listen for");
  using errors = typename Policies::errors;
  using clock = std::chrono::steady_clock;

 public:
  using connection_type = basic_connection<Policies>;
  using request_type = basic_connection_request<Policies>;

  /// Listens at `at`: port 0 lets the system choose, a wildcard means every address; requests that
  /// come through another device than the domain's are rejected. Errors: EADDRINUSE,
  /// EADDRNOTAVAIL; errc::mismatch where the address is another device's; errc::not_supported
  /// where the device has no CM.
  [[nodiscard]] static auto open(const verbs::protection_domain& domain, const address& at,
                                 const listener_options& chosen = {}) {
    return errors::deliver(create(domain, at, chosen));
  }
  basic_listener(const verbs::protection_domain& domain, const verbena::address& at,
                 const listener_options& chosen = {})
    requires errors::constructs
      : basic_listener{errors::deliver(create(domain, at, chosen))} {}

  /// Where it listens, with the port that the system chose.
  const verbena::address& address() const noexcept { return at_; }

  /// The next peer that asks. Errors: errc::timed_out, errc::stopped; errc::wire_* for a peer that
  /// is no verbena or one of another version, which has been rejected; errno.
  [[nodiscard]] auto next(std::chrono::nanoseconds timeout) {
    return errors::deliver(next_by(deadline_after(timeout)));
  }

  /// Takes the next peer and connects an endpoint of its own to it, with up to two regions opened
  /// to the peer. Where the peer may send at once, take next() and post receives first.
  /// Errors: those of next(), of endpoint::open and of connection_request::accept.
  template <class... Regions>
  [[nodiscard]] auto accept(std::chrono::nanoseconds timeout, const Regions&... offered) {
    return errors::deliver(accept_by(deadline_after(timeout), private_data::offer(offered...)));
  }

  /// Ends the current wait and every later one at once, until resume(). Any thread.
  void stop() const noexcept { stop_.stop(); }
  void resume() const noexcept { stop_.resume(); }

  /// Readable when a peer asks: for poll() or epoll.
  int descriptor() const noexcept {
    return native_handle() != nullptr ? id_.channel().descriptor() : -1;
  }
  rdma_cm_id* native_handle() const noexcept { return id_.native_handle(); }

 private:
  basic_listener(const verbs::protection_domain& domain, const listener_options& chosen,
                 verbs::cm_id id, stop_signal stop, const verbena::address& at)
      : domain_{domain.share()},
        options_{chosen},
        id_{std::move(id)},
        stop_{std::move(stop)},
        at_{at} {}

  static result<basic_listener> create(const verbs::protection_domain& domain,
                                       const verbena::address& at, const listener_options& chosen) {
    auto made = listen(domain, at, chosen);
    if (!made) return made.error().within("listening at " + to_string(at));
    return made;
  }
  static result<basic_listener> listen(const verbs::protection_domain& domain,
                                       const verbena::address& at, const listener_options& chosen) {
    BOOST_OUTCOME_TRY(auto channel, verbs::cm_event_channel::create(domain.device()));
    BOOST_OUTCOME_TRY(auto id, verbs::cm_id::create(channel));
    BOOST_OUTCOME_TRY(id.bind(at.native()));
    if (!id.device_name().empty()) {
      BOOST_OUTCOME_TRY(cm::check_device(id, domain.device(), chosen.endpoint.port));
    }
    BOOST_OUTCOME_TRY(id.listen(chosen.backlog));
    BOOST_OUTCOME_TRY(auto bound, verbena::address::of(*id.source()));
    BOOST_OUTCOME_TRY(auto stop, stop_signal::create());
    return basic_listener{domain, chosen, std::move(id), std::move(stop), bound};
  }

  result<request_type> next_by(clock::time_point deadline) {
    if (native_handle() == nullptr) return error{errc::moved_from, "waiting on a listener"};
    for (;;) {
      BOOST_OUTCOME_TRY(auto event, cm::await(id_, deadline, stop_.descriptor(),
                                              "waiting for a peer to ask for a connection",
                                              RDMA_CM_EVENT_CONNECT_REQUEST));
      BOOST_OUTCOME_TRY(auto request, examine(std::move(event)));
      if (request) return std::move(*request);
    }
  }

  /// Nothing where the request came through another device.
  result<std::optional<request_type>> examine(verbs::cm_event event) {
    const verbs::device& device = domain_.device();
    verbs::cm_id id = std::move(event.request);
    if (auto fits = cm::check_device(id, device, options_.endpoint.port); !fits) {
      const std::string why = fits.error().message();
      (void)refusal{std::as_bytes(std::span{why})}.send(id);
      return std::optional<request_type>{};
    }
    BOOST_OUTCOME_TRY(auto from, verbena::address::of(*id.destination()));
    auto peer = private_data::read(event.private_data());
    if (!peer) {
      (void)refusal{}.send(id);
      return peer.error().within("request from " + to_string(from));
    }
    // Of its own, so that another thread can wait for this connection.
    BOOST_OUTCOME_TRY(auto channel, verbs::cm_event_channel::create(device));
    BOOST_OUTCOME_TRY(id.migrate(channel));
    rdma_conn_param wanted{};
    wanted.responder_resources = event.responder_resources;
    wanted.initiator_depth = event.initiator_depth;
    return std::optional{request_type{std::move(id), from, peer.value(), wanted}};
  }

  result<connection_type> accept_by(clock::time_point deadline, const region_list& offered) {
    BOOST_OUTCOME_TRY(auto request, next_by(deadline));
    BOOST_OUTCOME_TRY(auto here,
                      request_type::endpoint_type::create(domain_, options_.endpoint, nullptr));
    return std::move(request).accept_by(deadline, stop_.descriptor(), std::move(here), offered);
  }

  verbs::protection_domain domain_;
  listener_options options_;
  verbs::cm_id id_;
  stop_signal stop_;
  verbena::address at_;
};

}  // namespace verbena

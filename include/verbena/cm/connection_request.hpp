// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <chrono>
#include <cstddef>
#include <span>
#include <string>
#include <utility>

#include <verbena/cm/connect.hpp>
#include <verbena/connection/deadline.hpp>
#include <verbena/connection/endpoint.hpp>

namespace verbena {

/// A peer that asks for a connection, from listener::next(): to be accepted on an endpoint, whose
/// receives may have been posted already, or rejected. Dropping it rejects. Move-only.
template <class Policies>
class basic_connection_request {
  using errors = typename Policies::errors;
  using transport = typename Policies::transport;
  using clock = std::chrono::steady_clock;

 public:
  using endpoint_type = basic_endpoint<Policies>;

  /// Where it comes from.
  const address& peer_address() const noexcept { return from_; }

  /// The regions that the peer opens, before anything is answered; as connection::peer.
  template <class T, role... Roles>
  auto peer(std::size_t index = 0) const {
    return errors::deliver(peer_.regions.template at<T, Roles...>(index));
  }
  std::size_t peer_regions() const noexcept { return peer_.regions.count; }

  /// Connects `here` to the peer and opens up to two regions to it; done when the peer has
  /// answered in turn. On iWARP the peer must be the first to send, and a message that finds no
  /// receive ends the connection: post receives on `here` before. On an error the endpoint is gone
  /// and the peer rejected. Errors: errc::timed_out, errc::mismatch where the endpoint is on
  /// another device, errc::disconnected and errc::rejected where the peer has gone meanwhile,
  /// errc::moved_from, errno.
  template <class... Regions>
  [[nodiscard]] auto accept(endpoint_type&& here, std::chrono::nanoseconds timeout,
                            const Regions&... offered) && {
    const bool made = here.native_handle() != nullptr;
    const int stop = made ? here.attached().queue()->waiter().stop_descriptor() : -1;
    return errors::deliver(std::move(*this).accept_by(
        deadline_after(timeout), stop, std::move(here), private_data::offer(offered...)));
  }

  /// Refuses, with up to 140 bytes for the peer's program. Errors: errno.
  auto reject(std::span<const std::byte> reason = {}) && {
    return errors::deliver(std::move(*this).reject_with(reason));
  }

  // For the listener.
  basic_connection_request(verbs::cm_id id, const address& from, const private_data& peer,
                           const rdma_conn_param& wanted) noexcept
      : id_{std::move(id)}, from_{from}, peer_{peer}, wanted_{wanted} {}

  result<basic_connection<Policies>> accept_by(clock::time_point deadline, int stop,
                                               endpoint_type here, const region_list& offered) && {
    if (here.native_handle() == nullptr)
      return error{errc::moved_from, "accepting with an endpoint"};
    if (id_.native_handle() == nullptr) return error{errc::moved_from, "accepting a request"};
    auto held = std::move(here).release();
    BOOST_OUTCOME_TRY(offered.check(held->domain().id()));
    verbs::cm_id id = std::move(id_);
    if (const auto answered = answer(id, *held, deadline, stop, offered); !answered) {
      error why = cm::reason_of(id, answered.error());
      // A request that was withdrawn has no event: the id has lost its state.
      int mask = 0;
      if (why == std::errc::invalid_argument && !id.attributes(IBV_QPS_INIT, mask)) {
        why = {errc::disconnected, "the peer has given up"};
      }
      return why.within("accepting " + to_string(from_));
    }
    return basic_connection<Policies>{std::move(held), peer_.regions, cm_session{std::move(id)}};
  }

 private:
  using attachment_type = typename endpoint_type::attachment_type;

  result<void> answer(const verbs::cm_id& id, attachment_type& held, clock::time_point deadline,
                      int stop, const region_list& offered) const {
    BOOST_OUTCOME_TRY(cm::check_device(id, held.device(), held.options().port));
    BOOST_OUTCOME_TRY(cm::open_to_peer<transport>(held, id, offered.granted()));
    const private_data::bytes mine = cm::introduction(held, offered);
    rdma_conn_param agreed = cm::parameters(held, mine);
    agreed.responder_resources = std::min(agreed.responder_resources, wanted_.responder_resources);
    agreed.initiator_depth = std::min(agreed.initiator_depth, wanted_.initiator_depth);
    BOOST_OUTCOME_TRY(cm::make_ready(held, id, peer_, agreed));
    BOOST_OUTCOME_TRY(id.accept(agreed));
    BOOST_OUTCOME_TRY(cm::await(id, deadline, stop, "waiting for the peer to be ready",
                                RDMA_CM_EVENT_ESTABLISHED));
    return success();
  }

  result<void> reject_with(std::span<const std::byte> reason) {
    if (id_.native_handle() == nullptr) return error{errc::moved_from, "rejecting a request"};
    const verbs::cm_id id = std::move(id_);
    return refusal{reason}.send(id);
  }

  verbs::cm_id id_;
  address from_;
  private_data peer_;
  rdma_conn_param wanted_;
};

}  // namespace verbena

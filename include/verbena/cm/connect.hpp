// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <chrono>
#include <utility>

#include <verbena/cm/address.hpp>
#include <verbena/cm/await.hpp>
#include <verbena/cm/session.hpp>
#include <verbena/cm/transition.hpp>

namespace verbena::cm {

/// The end of a connection's making: what a basic_connection is made of beside its queue pair.
struct established {
  cm_session session;
  region_list regions;
};

/// The active side's steps, on a new id: from a queue pair in INIT to one in RTS.
template <class Transport, class Attachment>
result<region_list> reach(const verbs::cm_id& id, Attachment& here, const address& to,
                          std::chrono::steady_clock::time_point deadline, int stop,
                          const region_list& offered) {
  using std::chrono::milliseconds;
  // At least one: the kernel refuses to resolve a route in no time, which await() has words for.
  const auto left = [&] {
    const auto time = deadline - std::chrono::steady_clock::now();
    return std::max(std::chrono::ceil<milliseconds>(time), milliseconds{1});
  };
  BOOST_OUTCOME_TRY(id.resolve_address(to.native(), left()));
  BOOST_OUTCOME_TRY(
      await(id, deadline, stop, "resolving the address", RDMA_CM_EVENT_ADDR_RESOLVED));
  BOOST_OUTCOME_TRY(check_device(id, here.device(), here.options().port));
  BOOST_OUTCOME_TRY(id.resolve_route(left()));
  BOOST_OUTCOME_TRY(await(id, deadline, stop, "resolving the route", RDMA_CM_EVENT_ROUTE_RESOLVED));

  BOOST_OUTCOME_TRY(open_to_peer<Transport>(here, id, offered.granted()));
  const private_data::bytes mine = introduction(here, offered);
  rdma_conn_param agreed = parameters(here, mine);
  BOOST_OUTCOME_TRY(id.connect(agreed));
  BOOST_OUTCOME_TRY(auto answer, await(id, deadline, stop, "waiting for the listener's answer",
                                       RDMA_CM_EVENT_CONNECT_RESPONSE, RDMA_CM_EVENT_ESTABLISHED));
  const auto peer = private_data::read(answer.private_data());
  if (!peer) {
    (void)refusal{}.send(id);
    return peer.error();
  }
  agreed.responder_resources = std::min(agreed.responder_resources, answer.responder_resources);
  agreed.initiator_depth = std::min(agreed.initiator_depth, answer.initiator_depth);
  BOOST_OUTCOME_TRY(make_ready(here, id, peer.value(), agreed));
  if (answer.type == RDMA_CM_EVENT_CONNECT_RESPONSE) {
    BOOST_OUTCOME_TRY(id.establish());
  }
  return peer.value().regions;
}

/// The active side by one deadline. The id is destroyed on every failure. `stop`: a descriptor
/// that ends it when readable.
template <class Transport, class Attachment>
result<established> connect(Attachment& here, const address& to,
                            std::chrono::steady_clock::time_point deadline, int stop,
                            const region_list& offered) {
  BOOST_OUTCOME_TRY(auto channel, verbs::cm_event_channel::create(here.device()));
  BOOST_OUTCOME_TRY(auto id, verbs::cm_id::create(channel));
  const auto regions = reach<Transport>(id, here, to, deadline, stop, offered);
  if (!regions) return reason_of(id, regions.error());
  return established{cm_session{std::move(id)}, regions.value()};
}

}  // namespace verbena::cm

// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <random>
#include <string>

#include <verbena/connection/attachment.hpp>
#include <verbena/connection/endpoint_descriptor.hpp>

/// From a described peer to a queue pair that can send: what setup::descriptor does.
namespace verbena::link {

/// A first packet number; random, so that packets of an earlier connection are not taken for ours.
inline std::uint32_t random_packet_number() {
  std::random_device source;
  return source() & 0xff'ffff;
}

/// What this end tells its peer. Errors: errc::not_supported on iWARP; errc::no_usable_gid where
/// the port has no GID, or not the one asked for.
template <class Transport, class Attachment>
result<endpoint_descriptor> describe(const Attachment& here, std::uint32_t first_packet) {
  const verbs::device& device = here.device();
  if (device.is_iwarp()) {
    return error{errc::not_supported, "setup::descriptor on " + device.name() +
                                          " (iWARP: queue pairs are connected by setup::cm alone)"};
  }
  endpoint_descriptor mine;
  mine.transport = static_cast<std::uint8_t>(Transport::queue_pair_type);
  mine.link_layer = here.port().link_layer;
  mine.mtu = static_cast<std::uint8_t>(here.max_mtu());
  mine.reads_answered = here.options().reads_answered;
  mine.reads_asked = here.options().reads_asked;
  mine.lid = here.port().lid;
  mine.number = here.native_handle()->qp_num;
  mine.first_packet = first_packet;
  mine.max_message = Transport::max_message(here.port());
  if (Transport::addressed) mine.queue_key = here.options().queue_key;
  BOOST_OUTCOME_TRY(auto table, device.gids(here.options().port));
  if (const auto wanted = here.options().gid_index) {
    std::erase_if(table, [&](const ibv_gid_entry& each) { return each.gid_index != *wanted; });
    if (table.empty()) {
      return error{errc::no_usable_gid, "gid_index " + std::to_string(*wanted) + " of port " +
                                            std::to_string(here.options().port) + " of " +
                                            device.name() + ", which has " +
                                            std::to_string(here.port().gid_tbl_len) +
                                            " places and nothing in this one"};
    }
  }
  mine.gids = offer_gids(table);
  if (mine.gids[0].kind == gid_kind::none && mine.gids[1].kind == gid_kind::none) {
    return error{errc::no_usable_gid, "port " + std::to_string(here.options().port) + " of " +
                                          device.name() + " has no GID"};
  }
  return mine;
}

/// How to reach the peer. Ethernet needs a GID; InfiniBand goes by LID, and by GID where the
/// subnets differ or the port wants a GRH. Errors: errc::no_usable_gid, errc::mismatch.
template <class Attachment>
result<ibv_ah_attr> address(const Attachment& here, const endpoint_descriptor& mine,
                            const endpoint_descriptor& peer) {
  if (mine.link_layer != peer.link_layer) {
    return error{errc::mismatch, "this end's link layer is " + std::to_string(mine.link_layer) +
                                     ", the peer's " + std::to_string(peer.link_layer)};
  }
  const auto pair = match_gids(mine.gids, peer.gids);
  if (!pair) {
    return error{errc::no_usable_gid, "no GIDs of one kind and family on both ends: here " +
                                          to_string(mine.gids) + "; there " + to_string(peer.gids)};
  }
  ibv_ah_attr to{};
  to.port_num = here.options().port;
  to.dlid = peer.lid;
  const bool ethernet = mine.link_layer == IBV_LINK_LAYER_ETHERNET;
  const bool other_subnet =
      !std::equal(pair->first.raw.begin(), pair->first.raw.begin() + 8, pair->second.raw.begin());
  if (ethernet || other_subnet || (here.port().flags & IBV_QPF_GRH_REQUIRED) != 0) {
    to.is_global = 1;
    to.grh.sgid_index = static_cast<std::uint8_t>(pair->first.index);
    to.grh.hop_limit = 64;
    std::copy(pair->second.raw.begin(), pair->second.raw.end(), to.grh.dgid.raw);
  } else if (peer.lid == 0) {
    return error{errc::mismatch, "the peer has no LID on this InfiniBand subnet"};
  }
  return to;
}

/// Why two ends can not talk to each other, if so. Errors: errc::mismatch.
inline result<void> same_transport(const endpoint_descriptor& mine,
                                   const endpoint_descriptor& peer) {
  if (peer.transport == mine.transport) return success();
  return error{errc::mismatch, "this end's transport is " + std::to_string(mine.transport) +
                                   ", the peer's " + std::to_string(peer.transport)};
}

/// INIT to RTR to RTS for datagrams to and from anybody.
template <class Transport, class Attachment>
result<void> open_to_all(Attachment& here, std::uint32_t first_packet) {
  ibv_qp_attr attributes{};
  attributes.qp_state = IBV_QPS_RTR;
  BOOST_OUTCOME_TRY(here.modify(attributes, Transport::to_receive, "RTR"));
  attributes.qp_state = IBV_QPS_RTS;
  attributes.sq_psn = first_packet;
  return here.modify(attributes, Transport::to_send, "RTS");
}

/// INIT to RTR to RTS towards `peer`: MTU and depths are the least of both ends.
template <class Transport, class Attachment>
result<void> connect(Attachment& here, const endpoint_descriptor& mine,
                     const endpoint_descriptor& peer) {
  BOOST_OUTCOME_TRY(same_transport(mine, peer));
  BOOST_OUTCOME_TRY(auto to, address(here, mine, peer));
  const options& chosen = here.options();
  ibv_qp_attr attributes{};
  attributes.qp_state = IBV_QPS_RTR;
  attributes.ah_attr = to;
  attributes.path_mtu = static_cast<ibv_mtu>(std::min(mine.mtu, peer.mtu));
  attributes.dest_qp_num = peer.number;
  attributes.rq_psn = peer.first_packet;
  attributes.max_dest_rd_atomic = std::min(mine.reads_answered, peer.reads_asked);
  attributes.min_rnr_timer = verbs::rnr_timer_code(chosen.receiver_not_ready_delay);
  BOOST_OUTCOME_TRY(here.modify(attributes, Transport::to_receive, "RTR"));
  attributes.qp_state = IBV_QPS_RTS;
  attributes.sq_psn = mine.first_packet;
  attributes.max_rd_atomic = std::min(mine.reads_asked, peer.reads_answered);
  attributes.retry_cnt = chosen.retries;
  attributes.rnr_retry = chosen.receiver_not_ready_retries;
  attributes.timeout = verbs::ack_timeout_code(chosen.ack_timeout);
  BOOST_OUTCOME_TRY(here.modify(attributes, Transport::to_send, "RTS"));
  here.state().max_message = std::min(mine.max_message, peer.max_message);
  if (Transport::carries(operation::read)) here.agree_on_reads(attributes.max_rd_atomic);
  return success();
}

}  // namespace verbena::link

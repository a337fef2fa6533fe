// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>

#include <verbena/cm/private_data.hpp>
#include <verbena/connection/options.hpp>
#include <verbena/verbs/cm_id.hpp>
#include <verbena/verbs/timers.hpp>

/// A queue pair of ours, moved to where the CM says: the parts that both ends have in common.
namespace verbena::cm {

/// Errors: errc::mismatch where the CM has come to another device or port than the queue pair's.
inline result<void> check_device(const verbs::cm_id& id, const verbs::device& device,
                                 std::uint8_t port) {
  if (id.device_name() == device.name() && (id.port() == port || device.is_iwarp()))
    return success();
  return error{errc::mismatch, "the way leads through " + id.device_name() + " port " +
                                   std::to_string(id.port()) + ", this end is on " + device.name() +
                                   " port " + std::to_string(port)};
}

/// What this end tells the peer.
template <class Attachment>
private_data::bytes introduction(const Attachment& here, const region_list& offered) {
  return private_data{static_cast<std::uint8_t>(here.max_mtu()), offered}.write();
}

/// How this end wants the connection; `introduction` must live until the call that takes it.
template <class Attachment>
rdma_conn_param parameters(const Attachment& here, const private_data::bytes& introduction) {
  const options& chosen = here.options();
  rdma_conn_param wanted{};
  wanted.private_data = introduction.data();
  wanted.private_data_len = static_cast<std::uint8_t>(introduction.size());
  wanted.responder_resources = chosen.reads_answered;
  wanted.initiator_depth = chosen.reads_asked;
  wanted.retry_count = chosen.retries;
  wanted.rnr_retry_count = chosen.receiver_not_ready_retries;
  wanted.qp_num = here.native_handle()->qp_num;
  return wanted;
}

/// INIT again: in the partition of the CM's path, open to what is offered.
template <class Transport, class Attachment>
result<void> open_to_peer(Attachment& here, const verbs::cm_id& id, rights offered) {
  int mask = 0;
  BOOST_OUTCOME_TRY(auto attributes, id.attributes(IBV_QPS_INIT, mask));
  return here.template allow<Transport>(offered, attributes.pkey_index);
}

/// RTR and RTS with `agreed` depths. The CM gives the address; the timers it leaves at 655 ms or
/// guesses are the options'. On iWARP the CM moves the queue pair itself.
template <class Attachment>
result<void> make_ready(Attachment& here, const verbs::cm_id& id, const private_data& peer,
                        const rdma_conn_param& agreed) {
  here.agree_on_reads(agreed.initiator_depth);
  if (here.device().is_iwarp()) return success();
  const options& chosen = here.options();
  int mask = 0;
  BOOST_OUTCOME_TRY(auto receive, id.attributes(IBV_QPS_RTR, mask));
  receive.path_mtu = std::min({receive.path_mtu, here.max_mtu(), static_cast<ibv_mtu>(peer.mtu)});
  receive.max_dest_rd_atomic = agreed.responder_resources;
  receive.min_rnr_timer = verbs::rnr_timer_code(chosen.receiver_not_ready_delay);
  BOOST_OUTCOME_TRY(here.modify(receive, mask, "RTR"));
  mask = 0;
  BOOST_OUTCOME_TRY(auto send, id.attributes(IBV_QPS_RTS, mask));
  send.max_rd_atomic = agreed.initiator_depth;
  send.retry_cnt = chosen.retries;
  send.rnr_retry = chosen.receiver_not_ready_retries;
  send.timeout = verbs::ack_timeout_code(chosen.ack_timeout);
  return here.modify(send, mask, "RTS");
}

}  // namespace verbena::cm

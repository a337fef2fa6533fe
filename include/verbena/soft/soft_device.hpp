// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cstdlib>
#include <memory>
#include <string>
#include <string_view>

#include <verbena/soft/async.hpp>
#include <verbena/soft/builder.hpp>
#include <verbena/soft/cm/table.hpp>
#include <verbena/soft/forked.hpp>
#include <verbena/soft/knob_list.hpp>
#include <verbena/soft/seam_call.hpp>
#include <verbena/soft/shared_receive_control.hpp>
#include <verbena/verbs/device.hpp>

namespace verbena::soft {

inline constexpr verbs::control_table table{
    .close_device = control::close_device,
    .query_device = control::query_device,
    .query_port = control::query_port,
    .query_gid = control::query_gid,
    .alloc_pd = control::alloc_pd,
    .dealloc_pd = control::dealloc_pd,
    .reg_mr = seam_call<control::reg_mr>::call,
    .dereg_mr = control::dereg_mr,
    .create_comp_channel = seam_call<control::create_comp_channel>::call,
    .destroy_comp_channel = control::destroy_comp_channel,
    .create_cq = seam_call<control::create_cq>::call,
    .destroy_cq = control::destroy_cq,
    .get_cq_event = seam_call<control::get_cq_event>::call,
    .ack_cq_events = control::ack_cq_events,
    .create_qp = seam_call<control::create_qp>::call,
    .modify_qp = seam_call<control::modify_qp, failing::by_number>::call,
    .query_qp = seam_call<control::query_qp, failing::by_number>::call,
    .destroy_qp = control::destroy_qp,
    .create_srq = seam_call<control::create_srq>::call,
    .modify_srq = seam_call<control::modify_srq, failing::by_number>::call,
    .query_srq = control::query_srq,
    .destroy_srq = control::destroy_srq,
    .create_ah = control::create_ah,
    .destroy_ah = control::destroy_ah,
    .create_qp_ex = seam_call<builder::create>::call,
    .to_qp_ex = builder::extended,
    .get_async_event = seam_call<control::get_async_event>::call,
    .ack_async_event = control::ack_async_event,
    .allocate = seam_call<control::allocate>::call,
    .release = control::release,
    .why = why,
    .cm = &cm::table,
};

/// Opens "soft", "soft:FABRIC" or "soft:FABRIC,KNOB=VALUE,..."; the knobs are set as the
/// environment variable VERBENA_SOFT says, then as the name does. Errors: EINVAL for a knob or
/// value that is not known, naming it and what is possible; those of fabric::join.
inline result<verbs::device> open(std::string_view asked) {
  auto made = std::make_unique<context>();
  if (const char* list = std::getenv("VERBENA_SOFT"); list != nullptr) {
    BOOST_OUTCOME_TRY(set_knobs(made->knobs, list, "VERBENA_SOFT"));
  }
  const std::size_t comma = asked.find(',');
  const std::string_view name = asked.substr(0, comma);
  if (comma != std::string_view::npos) {
    BOOST_OUTCOME_TRY(set_knobs(made->knobs, asked.substr(comma + 1), name));
  }
  const bool is_named = name.size() > 5;
  BOOST_OUTCOME_TRY(made->fabric,
                    fabric::join(std::string{is_named ? name.substr(5) : std::string_view{}}));
  made->wake_sender = ::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  name.copy(made->device.name, sizeof made->device.name - 1);
  name.copy(made->device.dev_name, sizeof made->device.dev_name - 1);
  const bool iwarp = made->knobs.iwarp != 0;
  made->device.transport_type = iwarp ? IBV_TRANSPORT_IWARP : IBV_TRANSPORT_IB;
  made->device.node_type = iwarp ? IBV_NODE_RNIC : IBV_NODE_CA;
  made->native.device = &made->device;
  made->native.cmd_fd = -1;
  made->native.num_comp_vectors = 1;
  made->native.ops.post_send = soft::post_send;
  made->native.ops.post_recv = soft::post_recv;
  made->native.ops.poll_cq = soft::poll_cq;
  made->native.ops.req_notify_cq = soft::req_notify_cq;
  made->native.ops.post_srq_recv = soft::post_srq_recv;
  pthread_mutex_init(&made->native.mutex, nullptr);
  forked::watch(*made);
  if (const int number = control::open_async(*made); number != 0) {
    control::close_device(&made.release()->native);
    return system_failure(number, "cannot make the descriptors of " + std::string{name});
  }
  return verbs::device::adopt(&made.release()->native, table);
}

}  // namespace verbena::soft

// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <verbena/soft/cm/addresses.hpp>
#include <verbena/soft/cm/events.hpp>
#include <verbena/soft/cm/handshake.hpp>
#include <verbena/soft/seam_call.hpp>
#include <verbena/verbs/control_table.hpp>

namespace verbena::soft {

template <>
struct device_behind<rdma_event_channel> {
  static constexpr int elsewhere = ENODEV;
  static const context& of(rdma_event_channel& object) noexcept {
    return *cm::event_channel::of(&object).here;
  }
};
template <>
struct device_behind<rdma_cm_id> {
  static constexpr int elsewhere = ENOTCONN;
  static const context& of(rdma_cm_id& object) noexcept {
    return *cm::identifier::of(&object).here;
  }
};

}  // namespace verbena::soft

namespace verbena::soft::cm {

inline constexpr verbs::cm_table table{
    .create_event_channel = seam_call<create_event_channel>::call,
    .destroy_event_channel = destroy_event_channel,
    .create_id = seam_call<create_id>::call,
    .destroy_id = destroy_id,
    .migrate_id = seam_call<migrate_id>::call,
    .set_option = seam_call<set_option>::call,
    .bind_addr = seam_call<bind_addr>::call,
    .listen = seam_call<cm::listen>::call,
    .resolve_addr = seam_call<resolve_addr>::call,
    .resolve_route = seam_call<resolve_route>::call,
    .init_qp_attr = seam_call<init_qp_attr>::call,
    .connect = seam_call<cm::connect>::call,
    .establish = seam_call<establish>::call,
    .accept = seam_call<cm::accept>::call,
    .reject = seam_call<reject>::call,
    .disconnect = seam_call<disconnect>::call,
    .get_event = seam_call<get_event>::call,
    .ack_event = ack_event,
};

}  // namespace verbena::soft::cm

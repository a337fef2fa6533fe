// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <verbena/soft/cm/addresses.hpp>
#include <verbena/soft/cm/events.hpp>
#include <verbena/soft/cm/handshake.hpp>
#include <verbena/verbs/control_table.hpp>

namespace verbena::soft::cm {

inline constexpr verbs::cm_table table{
    .create_event_channel = create_event_channel,
    .destroy_event_channel = destroy_event_channel,
    .create_id = create_id,
    .destroy_id = destroy_id,
    .migrate_id = migrate_id,
    .set_option = set_option,
    .bind_addr = bind_addr,
    .listen = cm::listen,
    .resolve_addr = resolve_addr,
    .resolve_route = resolve_route,
    .init_qp_attr = init_qp_attr,
    .connect = cm::connect,
    .establish = establish,
    .accept = cm::accept,
    .reject = reject,
    .disconnect = disconnect,
    .get_event = get_event,
    .ack_event = ack_event,
};

}  // namespace verbena::soft::cm

// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <verbena/verbs/control_table.hpp>

namespace verbena::verbs {

inline constexpr cm_table rdma_core_cm{
    .create_event_channel = [](ibv_context*) { return rdma_create_event_channel(); },
    .destroy_event_channel = rdma_destroy_event_channel,
    .create_id = rdma_create_id,
    .destroy_id = rdma_destroy_id,
    .migrate_id = rdma_migrate_id,
    .set_option = rdma_set_option,
    .bind_addr = rdma_bind_addr,
    .listen = rdma_listen,
    .resolve_addr = rdma_resolve_addr,
    .resolve_route = rdma_resolve_route,
    .init_qp_attr = rdma_init_qp_attr,
    .connect = rdma_connect,
    .establish = rdma_establish,
    .accept = rdma_accept,
    .reject = rdma_reject,
    .disconnect = rdma_disconnect,
    .get_event = rdma_get_cm_event,
    .ack_event = rdma_ack_cm_event,
};

/// rdma-core's functions. Lambdas stand where libibverbs has a macro or an inline function.
inline constexpr control_table rdma_core{
    .close_device = ibv_close_device,
    .query_device = ibv_query_device,
    .query_port =
        [](ibv_context* context, std::uint8_t port, ibv_port_attr* attributes) {
          return ibv_query_port(context, port, attributes);
        },
    .query_gid =
        [](ibv_context* context, std::uint32_t port, std::uint32_t index, ibv_gid_entry* entry) {
          return ibv_query_gid_ex(context, port, index, entry, 0);
        },
    .alloc_pd = ibv_alloc_pd,
    .dealloc_pd = ibv_dealloc_pd,
    .reg_mr =
        [](ibv_pd* domain, void* address, std::size_t length, int access) {
          return ibv_reg_mr(domain, address, length, static_cast<unsigned>(access));
        },
    .dereg_mr = ibv_dereg_mr,
    .create_comp_channel = ibv_create_comp_channel,
    .destroy_comp_channel = ibv_destroy_comp_channel,
    .create_cq = ibv_create_cq,
    .destroy_cq = ibv_destroy_cq,
    .get_cq_event = ibv_get_cq_event,
    .ack_cq_events = ibv_ack_cq_events,
    .create_qp = ibv_create_qp,
    .modify_qp = ibv_modify_qp,
    .query_qp = ibv_query_qp,
    .destroy_qp = ibv_destroy_qp,
    .create_srq = ibv_create_srq,
    .modify_srq = ibv_modify_srq,
    .query_srq = ibv_query_srq,
    .destroy_srq = ibv_destroy_srq,
    .create_ah = ibv_create_ah,
    .destroy_ah = ibv_destroy_ah,
    .create_qp_ex =
        [](ibv_context* context, ibv_qp_init_attr_ex* attributes) {
          return ibv_create_qp_ex(context, attributes);
        },
    .to_qp_ex = ibv_qp_to_qp_ex,
    .alloc_td = [](ibv_context* context,
                   ibv_td_init_attr* attributes) { return ibv_alloc_td(context, attributes); },
    .dealloc_td = [](ibv_td* held) { return ibv_dealloc_td(held); },
    .alloc_parent_domain =
        [](ibv_context* context, ibv_parent_domain_init_attr* attributes) {
          return ibv_alloc_parent_domain(context, attributes);
        },
    .get_async_event = ibv_get_async_event,
    .ack_async_event = ibv_ack_async_event,
    .cm = &rdma_core_cm,
};

}  // namespace verbena::verbs

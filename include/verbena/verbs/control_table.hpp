// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cstddef>
#include <cstdint>

#include <verbena/verbs/rdma_cma.hpp>

namespace verbena::verbs {

/// RDMA CM as a device offers it. Signatures and results are librdmacm's: -1 and errno on
/// failure, null and errno for what returns an object.
struct cm_table {
  rdma_event_channel* (*create_event_channel)();
  void (*destroy_event_channel)(rdma_event_channel*);
  int (*create_id)(rdma_event_channel*, rdma_cm_id**, void* context, rdma_port_space);
  int (*destroy_id)(rdma_cm_id*);
  int (*migrate_id)(rdma_cm_id*, rdma_event_channel*);
  int (*set_option)(rdma_cm_id*, int level, int name, void* value, std::size_t length);
  int (*bind_addr)(rdma_cm_id*, sockaddr*);
  int (*listen)(rdma_cm_id*, int backlog);
  int (*resolve_addr)(rdma_cm_id*, sockaddr* from, sockaddr* to, int milliseconds);
  int (*resolve_route)(rdma_cm_id*, int milliseconds);
  int (*init_qp_attr)(rdma_cm_id*, ibv_qp_attr*, int* mask);
  int (*connect)(rdma_cm_id*, rdma_conn_param*);
  int (*establish)(rdma_cm_id*);
  int (*accept)(rdma_cm_id*, rdma_conn_param*);
  int (*reject)(rdma_cm_id*, const void* data, std::uint8_t length);
  int (*disconnect)(rdma_cm_id*);
  int (*get_event)(rdma_event_channel*, rdma_cm_event**);
  int (*ack_event)(rdma_cm_event*);
};

/// The device seam: every verbs call that is not a data-path call inlined through
/// ibv_context::ops. rdma-core's table is verbs::rdma_core; a software device brings its own,
/// because rdma-core's functions read private parts of the objects they made.
/// Signatures and results are those of the functions of the same name in libibverbs: an errno,
/// or null with errno set; close_device and get_cq_event return -1 and set errno.
struct control_table {
  int (*close_device)(ibv_context*);
  int (*query_device)(ibv_context*, ibv_device_attr*);
  int (*query_port)(ibv_context*, std::uint8_t port, ibv_port_attr*);
  int (*query_gid)(ibv_context*, std::uint32_t port, std::uint32_t index, ibv_gid_entry*);
  ibv_pd* (*alloc_pd)(ibv_context*);
  int (*dealloc_pd)(ibv_pd*);
  ibv_mr* (*reg_mr)(ibv_pd*, void* address, std::size_t length, int access);
  int (*dereg_mr)(ibv_mr*);
  ibv_comp_channel* (*create_comp_channel)(ibv_context*);
  int (*destroy_comp_channel)(ibv_comp_channel*);
  ibv_cq* (*create_cq)(ibv_context*, int entries, void* context, ibv_comp_channel*, int vector);
  int (*destroy_cq)(ibv_cq*);
  int (*get_cq_event)(ibv_comp_channel*, ibv_cq**, void** context);
  void (*ack_cq_events)(ibv_cq*, unsigned int count);
  ibv_qp* (*create_qp)(ibv_pd*, ibv_qp_init_attr*);
  int (*modify_qp)(ibv_qp*, ibv_qp_attr*, int mask);
  int (*query_qp)(ibv_qp*, ibv_qp_attr*, int mask, ibv_qp_init_attr*);
  int (*destroy_qp)(ibv_qp*);
  const cm_table* cm;  ///< null where the device has no RDMA CM
};

}  // namespace verbena::verbs

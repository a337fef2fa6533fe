// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <optional>

#include <verbena/verbs/error.hpp>
#include <verbena/verbs/rdma_cma.hpp>

namespace verbena::verbs {

/// RDMA CM as a device offers it. Signatures and results are librdmacm's: -1 and errno on
/// failure, null and errno for what returns an object. An event channel is told its device, which
/// rdma-core's does not need: a software device finds the addresses of its fabric by it.
struct cm_table {
  rdma_event_channel* (*create_event_channel)(ibv_context*);
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

/// Whole pages of zeroed memory: what a device without memory of its own kind allocates.
inline void* allocate_pages(ibv_context*, std::size_t bytes) {
  void* memory = std::aligned_alloc(static_cast<std::size_t>(::sysconf(_SC_PAGESIZE)), bytes);
  if (memory != nullptr) std::memset(memory, 0, bytes);
  return memory;
}
inline void release_pages(ibv_context*, void* memory, std::size_t) { std::free(memory); }

inline ibv_td* no_thread_domain(ibv_context*, ibv_td_init_attr*) {
  errno = EOPNOTSUPP;
  return nullptr;
}

inline std::optional<error> nothing_to_say(ibv_context*) { return std::nullopt; }

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
  ibv_srq* (*create_srq)(ibv_pd*, ibv_srq_init_attr*) = nullptr;
  int (*modify_srq)(ibv_srq*, ibv_srq_attr*, int mask) = nullptr;
  int (*query_srq)(ibv_srq*, ibv_srq_attr*) = nullptr;
  int (*destroy_srq)(ibv_srq*) = nullptr;
  ibv_ah* (*create_ah)(ibv_pd*, ibv_ah_attr*) = nullptr;
  int (*destroy_ah)(ibv_ah*) = nullptr;
  ibv_qp* (*create_qp_ex)(ibv_context*, ibv_qp_init_attr_ex*) = nullptr;
  ibv_qp_ex* (*to_qp_ex)(ibv_qp*) = nullptr;  ///< null for one made without send_ops_flags
  ibv_td* (*alloc_td)(ibv_context*, ibv_td_init_attr*) = no_thread_domain;
  int (*dealloc_td)(ibv_td*) = nullptr;  ///< as the next, null where there is no thread domain
  ibv_pd* (*alloc_parent_domain)(ibv_context*, ibv_parent_domain_init_attr*) = nullptr;
  int (*get_async_event)(ibv_context*, ibv_async_event*) = nullptr;
  void (*ack_async_event)(ibv_async_event*) = nullptr;
  /// Memory for buffers of this device: `bytes` is a multiple of the page size.
  void* (*allocate)(ibv_context*, std::size_t bytes) = allocate_pages;
  void (*release)(ibv_context*, void*, std::size_t bytes) = release_pages;
  /// What a call of this thread that has just returned null can say beside its errno, once.
  std::optional<error> (*why)(ibv_context*) = nothing_to_say;
  const cm_table* cm = nullptr;  ///< null where the device has no RDMA CM
};

}  // namespace verbena::verbs

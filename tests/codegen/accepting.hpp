// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>

#include <verbena/verbs/device.hpp>

/// A verbs context whose data path takes whatever it is given: what is measured on it is the way
/// to the provider's call and back, nothing of a provider.
namespace accepting {

/// What a polled queue holds each time it is asked; set by who measures.
inline const ibv_wc* completions = nullptr;
inline int completion_count = 0;

inline int post_send(ibv_qp*, ibv_send_wr*, ibv_send_wr**) { return 0; }
inline int post_recv(ibv_qp*, ibv_recv_wr*, ibv_recv_wr**) { return 0; }
inline int post_srq_recv(ibv_srq*, ibv_recv_wr*, ibv_recv_wr**) { return 0; }
inline int poll_cq(ibv_cq*, int, ibv_wc* entries) {
  if (completion_count != 0) {
    std::memcpy(entries, completions, sizeof(ibv_wc) * static_cast<std::size_t>(completion_count));
  }
  return completion_count;
}

struct builder {
  static void start(ibv_qp_ex*) {}
  static int complete(ibv_qp_ex*) { return 0; }
};

struct provider {
  provider() {
    std::snprintf(device.name, sizeof device.name, "accepting");
    context.device = &device;
    accept();
    queue_pair.qp_base.context = &context;
    completion_queue.context = &context;
    shared_receives.context = &context;
    region.context = &context;
    completion_queue.cqe = 1 << 16;
  }
  provider(const provider&) = delete;
  provider& operator=(const provider&) = delete;

  /// Takes back whatever functions were put in place of those that only accept.
  void accept() {
    context.ops.post_send = post_send;
    context.ops.post_recv = post_recv;
    context.ops.post_srq_recv = post_srq_recv;
    context.ops.poll_cq = poll_cq;
    queue_pair.wr_start = builder::start;
    queue_pair.wr_complete = builder::complete;
    queue_pair.wr_send = [](ibv_qp_ex*) {};
    queue_pair.wr_send_imm = [](ibv_qp_ex*, __be32) {};
    queue_pair.wr_rdma_read = [](ibv_qp_ex*, std::uint32_t, std::uint64_t) {};
    queue_pair.wr_rdma_write = [](ibv_qp_ex*, std::uint32_t, std::uint64_t) {};
    queue_pair.wr_rdma_write_imm = [](ibv_qp_ex*, std::uint32_t, std::uint64_t, __be32) {};
    queue_pair.wr_atomic_cmp_swp = [](ibv_qp_ex*, std::uint32_t, std::uint64_t, std::uint64_t,
                                      std::uint64_t) {};
    queue_pair.wr_atomic_fetch_add = [](ibv_qp_ex*, std::uint32_t, std::uint64_t, std::uint64_t) {};
    queue_pair.wr_set_sge = [](ibv_qp_ex*, std::uint32_t, std::uint64_t, std::uint32_t) {};
    queue_pair.wr_set_sge_list = [](ibv_qp_ex*, std::size_t, const ibv_sge*) {};
    queue_pair.wr_set_inline_data = [](ibv_qp_ex*, void*, std::size_t) {};
    queue_pair.wr_set_inline_data_list = [](ibv_qp_ex*, std::size_t, const ibv_data_buf*) {};
  }

  ibv_device device{};
  ibv_context context{};
  ibv_qp_ex queue_pair{};
  ibv_cq completion_queue{};
  ibv_pd domain{};
  ibv_mr region{};
  ibv_srq shared_receives{};
};

inline provider instance;

/// As much of the device seam as a completion queue and a ring of receives are made with.
inline constexpr verbena::verbs::control_table table = [] {
  verbena::verbs::control_table made{};
  made.close_device = [](ibv_context*) { return 0; };
  made.query_device = [](ibv_context*, ibv_device_attr* attributes) {
    *attributes = {};
    attributes->max_cqe = 1 << 16;
    return 0;
  };
  made.create_cq = [](ibv_context*, int, void*, ibv_comp_channel*, int) {
    return &instance.completion_queue;
  };
  made.destroy_cq = [](ibv_cq*) { return 0; };
  made.alloc_pd = [](ibv_context*) { return &instance.domain; };
  made.dealloc_pd = [](ibv_pd*) { return 0; };
  made.reg_mr = [](ibv_pd*, void* memory, std::size_t bytes, int) {
    instance.region.addr = memory;
    instance.region.length = bytes;
    return &instance.region;
  };
  made.dereg_mr = [](ibv_mr*) { return 0; };
  made.create_srq = [](ibv_pd*, ibv_srq_init_attr*) { return &instance.shared_receives; };
  made.destroy_srq = [](ibv_srq*) { return 0; };
  return made;
}();

inline verbena::verbs::device open() {
  return verbena::verbs::device::adopt(&instance.context, table).value();
}

}  // namespace accepting

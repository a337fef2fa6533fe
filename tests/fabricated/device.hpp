// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cstdio>
#include <cstdlib>
#include <string_view>

#include <verbena/verbs/device.hpp>

#include "control.hpp"
#include "machine.hpp"
#include "provider.hpp"

namespace fabricated {

/// A verbs device that exists in this process alone, does what a test tells it and remembers what
/// was done to it. It moves no data and completes nothing by itself.
///
///     fabricated::device adapter;
///     verbena::verbs::device opened = adapter.open();
///     adapter.refuse.add(fabricated::call::reg_mr, ENOMEM);
///
/// It must outlive what is opened on it. When it goes, objects left alive and calls that no
/// correct program makes abort the test.
class device : public machine {
 public:
  explicit device(std::string_view name = "fabricated0",
                  ibv_transport_type transport = IBV_TRANSPORT_IB) {
    native.node_type = transport == IBV_TRANSPORT_IWARP ? IBV_NODE_RNIC : IBV_NODE_CA;
    native.transport_type = transport;
    name.copy(native.name, sizeof native.name - 1);
    attributes.max_mr_size = ~std::uint64_t{0};
    attributes.page_size_cap = 4096;
    attributes.max_qp = 1024;
    attributes.max_qp_wr = 16384;
    attributes.max_sge = 16;
    attributes.max_sge_rd = 16;
    attributes.max_cq = 1024;
    attributes.max_cqe = 1 << 20;
    attributes.max_mr = 1 << 20;
    attributes.max_pd = 1024;
    attributes.max_qp_rd_atom = 16;
    attributes.max_res_rd_atom = 1024;
    attributes.max_qp_init_rd_atom = 16;
    attributes.atomic_cap = IBV_ATOMIC_HCA;
    attributes.max_ah = 1024;
    attributes.max_pkeys = 1;
  }
  ~device() {
    if (is_clean()) return;
    std::fprintf(stderr, "%s: not used as it must be\n", native.name);
    for (const std::string& each : violations()) std::fprintf(stderr, "  %s\n", each.c_str());
    for (std::size_t each = 0; each < kind_count; ++each) {
      if (const int left = live(static_cast<kind>(each)); left != 0) {
        std::fprintf(stderr, "  left alive: %d %s\n", left, name_of(static_cast<kind>(each)));
      }
    }
    std::abort();
  }

  /// Its calls; RDMA CM is added to a copy of a test's own.
  verbena::verbs::control_table table = control::table;

  /// A context as ibv_open_device gives one; close_device frees it.
  ibv_context* open_context() {
    auto* made = new context{};
    made->device = &native;
    made->ops.post_send = provider::post_send;
    made->ops.post_recv = provider::post_recv;
    made->ops.poll_cq = provider::poll_cq;
    made->ops.req_notify_cq = provider::req_notify_cq;
    made->cmd_fd = -1;
    made->async_fd = -1;
    made->num_comp_vectors = 1;
    made->owner = this;
    born(kind::device, made);
    return made;
  }

  verbena::result<verbena::verbs::device> adopt() {
    return verbena::verbs::device::adopt(open_context(), table);
  }
  verbena::verbs::device open() { return adopt().value(); }
};

}  // namespace fabricated

// SPDX-License-Identifier: BSL-1.0
#include <verbena/policy/policy_set.hpp>
#include <verbena/policy/posting.hpp>
#include <verbena/policy/posting/send_ops.hpp>
#include <verbena/policy/transport/uc.hpp>
#include <verbena/policy/transport/ud.hpp>

namespace vb = verbena;

// The smallest posting: a queue that takes everything and does nothing.
struct smallest {
  static constexpr bool uses_qp_ex = false;
  template <class Labels, class... Requests>
  static vb::answer post(ibv_qp* const&, const Labels&, const Requests&...) {
    return {};
  }
};
static_assert(vb::posting_policy<smallest>);
static_assert(std::is_same_v<vb::policies<smallest>::posting, smallest>);

struct without_labels {
  static constexpr bool uses_qp_ex = false;
  template <class... Requests>
  static vb::answer post(ibv_qp*, const vb::sample_request&, const Requests&...);
};
static_assert(!vb::posting_policy<without_labels>);

struct without_answer {
  static constexpr bool uses_qp_ex = false;
  template <class Labels, class... Requests>
  static int post(ibv_qp*, const Labels&, const Requests&...);
};
static_assert(!vb::posting_policy<without_answer>);

struct without_interface {
  template <class Labels, class... Requests>
  static vb::answer post(ibv_qp* const&, const Labels&, const Requests&...);
};
static_assert(!vb::posting_policy<without_interface>);

// What a queue pair is made for is what its transport carries.
static_assert(vb::posting::send_ops_of<vb::transport::rc> ==
              (IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_SEND_WITH_IMM | IBV_QP_EX_WITH_RDMA_READ |
               IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM |
               IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP | IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD));
static_assert(vb::posting::send_ops_of<vb::transport::uc> ==
              (IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_SEND_WITH_IMM | IBV_QP_EX_WITH_RDMA_WRITE |
               IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM));
static_assert(vb::posting::send_ops_of<vb::transport::ud> ==
              (IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_SEND_WITH_IMM));

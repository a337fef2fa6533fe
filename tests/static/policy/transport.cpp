// SPDX-License-Identifier: BSL-1.0
#include <verbena/policy/policy_set.hpp>
#include <verbena/policy/transport.hpp>

namespace vb = verbena;

// The smallest transport: what the concept asks for and nothing else.
struct smallest {
  static constexpr ibv_qp_type queue_pair_type = IBV_QPT_UC;
  static constexpr int to_init = 0;
  static constexpr int to_receive = 0;
  static constexpr int to_send = 0;
  static constexpr bool carries(vb::operation) noexcept { return false; }
};
static_assert(vb::transport_policy<smallest>);
static_assert(std::is_same_v<vb::policies<smallest>::transport, smallest>);

// Each part of the concept is needed.
struct without_type {
  static constexpr int to_init = 0;
  static constexpr int to_receive = 0;
  static constexpr int to_send = 0;
  static constexpr bool carries(vb::operation) noexcept { return false; }
};
static_assert(!vb::names_queue_pair_type<without_type> && !vb::transport_policy<without_type>);

struct without_carries {
  static constexpr ibv_qp_type queue_pair_type = IBV_QPT_UC;
  static constexpr int to_init = 0;
  static constexpr int to_receive = 0;
  static constexpr int to_send = 0;
};
static_assert(!vb::tells_operations_carried<without_carries> &&
              !vb::transport_policy<without_carries>);

struct without_a_mask {
  static constexpr ibv_qp_type queue_pair_type = IBV_QPT_UC;
  static constexpr int to_init = 0;
  static constexpr int to_send = 0;
  static constexpr bool carries(vb::operation) noexcept { return false; }
};
static_assert(!vb::has_transition_masks<without_a_mask> && !vb::transport_policy<without_a_mask>);

// SPDX-License-Identifier: BSL-1.0
#include <verbena/policy/policy_set.hpp>
#include <verbena/policy/transport.hpp>
#include <verbena/policy/transport/rc.hpp>
#include <verbena/policy/transport/uc.hpp>
#include <verbena/policy/transport/ud.hpp>

namespace vb = verbena;

// The smallest transport: what the concept asks for and nothing else.
struct smallest {
  static constexpr ibv_qp_type queue_pair_type = IBV_QPT_UC;
  static constexpr int to_init = 0;
  static constexpr int to_receive = 0;
  static constexpr int to_send = 0;
  static constexpr bool carries(vb::operation) noexcept { return false; }
  static constexpr bool fences(vb::operation) noexcept { return false; }
  static constexpr std::uint32_t max_message(const ibv_port_attr&) noexcept { return 1; }
  static constexpr std::uint32_t receive_prefix = 0;
  static constexpr bool addressed = false;
};
static_assert(vb::transport_policy<smallest>);
static_assert(std::is_same_v<vb::policies<smallest>::transport, smallest>);

// Each part of the concept is needed.
struct without_type : smallest {
 private:
  using smallest::queue_pair_type;
};
static_assert(!vb::names_queue_pair_type<without_type> && !vb::transport_policy<without_type>);

struct without_carries : smallest {
 private:
  using smallest::carries;
};
static_assert(!vb::tells_operations_carried<without_carries> &&
              !vb::transport_policy<without_carries>);

struct without_fences : smallest {
 private:
  using smallest::fences;
};
static_assert(!vb::tells_operations_fenced<without_fences> &&
              !vb::transport_policy<without_fences>);

struct without_a_mask : smallest {
 private:
  using smallest::to_receive;
};
static_assert(!vb::has_transition_masks<without_a_mask> && !vb::transport_policy<without_a_mask>);

struct without_limit : smallest {
 private:
  using smallest::max_message;
};
static_assert(!vb::tells_message_limit<without_limit> && !vb::transport_policy<without_limit>);

struct without_prefix : smallest {
 private:
  using smallest::receive_prefix;
};
static_assert(!vb::tells_receive_prefix<without_prefix> && !vb::transport_policy<without_prefix>);

struct without_addressed : smallest {
 private:
  using smallest::addressed;
};
static_assert(!vb::tells_whether_sends_name_a_peer<without_addressed> &&
              !vb::transport_policy<without_addressed>);

// A datagram is one packet, and has 40 bytes in front of it in a receive (ibv_post_recv(3)).
constexpr ibv_port_attr port(ibv_mtu active) {
  ibv_port_attr made{};
  made.active_mtu = active;
  made.max_msg_sz = 1 << 20;
  return made;
}
static_assert(vb::transport::rc::max_message(port(IBV_MTU_1024)) == 1 << 20);
static_assert(vb::transport::uc::max_message(port(IBV_MTU_1024)) == 1 << 20);
static_assert(vb::transport::ud::max_message(port(IBV_MTU_256)) == 256);
static_assert(vb::transport::ud::max_message(port(IBV_MTU_4096)) == 4096);
static_assert(vb::transport::rc::receive_prefix == 0 && vb::transport::uc::receive_prefix == 0);
static_assert(vb::transport::ud::receive_prefix == 40);

// Whom a send is for is said where there is no connection.
static_assert(!vb::transport::rc::addressed && !vb::transport::uc::addressed);
static_assert(vb::transport::ud::addressed);

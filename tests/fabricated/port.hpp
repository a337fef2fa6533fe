// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <optional>
#include <vector>

#include <verbena/verbs/ibverbs.hpp>

#include "gid.hpp"

namespace fabricated {

/// A port as the device tells of it: active Ethernet with the usual four GIDs, unless changed.
struct port {
  ibv_port_attr attributes = [] {
    ibv_port_attr made{};
    made.state = IBV_PORT_ACTIVE;
    made.max_mtu = IBV_MTU_4096;
    made.active_mtu = IBV_MTU_4096;
    made.max_msg_sz = 1U << 30;
    made.link_layer = IBV_LINK_LAYER_ETHERNET;
    made.flags = IBV_QPF_GRH_REQUIRED;
    return made;
  }();

  /// By index; nothing where the table has a hole.
  std::vector<std::optional<ibv_gid_entry>> gids{
      roce_v1("fe80::200:5eff:fe00:5301"), roce_v2("fe80::200:5eff:fe00:5301"),
      roce_v1("::ffff:192.0.2.1"), roce_v2("::ffff:192.0.2.1")};

  /// Whether a hole is read as an entry of zeroes, or refused with ENODATA.
  bool holes_are_zero = false;
};

}  // namespace fabricated

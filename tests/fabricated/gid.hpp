// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <arpa/inet.h>

#include <cstdlib>
#include <string>

#include <verbena/verbs/ibverbs.hpp>

namespace fabricated {

/// A table entry of an IPv6 address in text, IPv4 as "::ffff:10.0.0.1".
inline ibv_gid_entry gid(const std::string& address, ibv_gid_type type) {
  ibv_gid_entry made{};
  if (::inet_pton(AF_INET6, address.c_str(), made.gid.raw) != 1) std::abort();
  made.gid_type = type;
  made.port_num = 1;
  return made;
}

inline ibv_gid_entry roce_v1(const std::string& address) {
  return gid(address, IBV_GID_TYPE_ROCE_V1);
}
inline ibv_gid_entry roce_v2(const std::string& address) {
  return gid(address, IBV_GID_TYPE_ROCE_V2);
}
inline ibv_gid_entry infiniband(const std::string& address) {
  return gid(address, IBV_GID_TYPE_IB);
}

}  // namespace fabricated

// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cstdint>
#include <string>

#include <verbena/verbs/ibverbs.hpp>

namespace verbena {

/// What may be done with a region, by this side and by the peer. A set: combine with `|`.
enum class rights : std::uint8_t {
  local_read = 0,
  local_write = 1,
  remote_read = 2,
  remote_write = 4,
  remote_atomic = 8,
};

constexpr rights operator|(rights left, rights right) noexcept {
  return static_cast<rights>(static_cast<unsigned>(left) | static_cast<unsigned>(right));
}

/// Whether `have` holds all of `need`.
constexpr bool allows(rights have, rights need) noexcept {
  return (static_cast<unsigned>(have) & static_cast<unsigned>(need)) == static_cast<unsigned>(need);
}

/// The part of `of` that concerns the peer.
constexpr rights remote_part(rights of) noexcept {
  return static_cast<rights>(static_cast<unsigned>(of) &
                             ~static_cast<unsigned>(rights::local_write));
}

/// As ibv_access_flags, for a registration or a queue pair.
constexpr int access_flags(rights of) noexcept {
  return (allows(of, rights::local_write) ? IBV_ACCESS_LOCAL_WRITE : 0) |
         (allows(of, rights::remote_read) ? IBV_ACCESS_REMOTE_READ : 0) |
         (allows(of, rights::remote_write) ? IBV_ACCESS_REMOTE_WRITE : 0) |
         (allows(of, rights::remote_atomic) ? IBV_ACCESS_REMOTE_ATOMIC : 0);
}

/// Words for messages, such as "remote read, remote write".
inline std::string to_string(rights of) {
  std::string text;
  const auto add = [&](rights each, const char* name) {
    if (allows(of, each)) text += (text.empty() ? "" : ", ") + std::string{name};
  };
  add(rights::local_write, "local write");
  add(rights::remote_read, "remote read");
  add(rights::remote_write, "remote write");
  add(rights::remote_atomic, "remote atomic");
  return text.empty() ? "local read" : text;
}

}  // namespace verbena

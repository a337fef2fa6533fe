// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <ifaddrs.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <string>
#include <thread>
#include <vector>

#include <verbena/soft/cm/location.hpp>
#include <verbena/soft/undo.hpp>

/// Addresses and ports of a fabric as names of sockets in the abstract namespace: the kernel keeps
/// them apart and gives them back when their process dies.
namespace verbena::soft::cm {

/// The name of an address and port; all zeros is a wildcard's.
struct socket_name {
  sockaddr_un native{};
  socklen_t length = 0;

  socket_name(const std::string& fabric_path, const location& at) noexcept {
    native.sun_family = AF_UNIX;
    char* out = native.sun_path + 1;
    std::size_t left = sizeof native.sun_path - 1;
    const auto put = [&](const char* format, auto... values) {
      const auto wrote = static_cast<std::size_t>(std::snprintf(out, left, format, values...));
      out += wrote;
      left -= wrote;
    };
    put("%s:", fabric_path.c_str() + fabric_path.rfind('/') + 1);
    const std::size_t count = at.family == AF_INET ? 4 : 16;
    for (std::size_t i = 0; i < count; ++i) put("%02x", at.bytes[i]);
    put("-%x:%x", at.scope, at.port);
    length = static_cast<socklen_t>(out - reinterpret_cast<char*>(&native));
  }

  const sockaddr* address() const noexcept { return reinterpret_cast<const sockaddr*>(&native); }
};

static_assert(sizeof "verbena-4294967295-" + 32 + sizeof ":" + 32 + sizeof "-ffffffff:ffff" <
              sizeof(sockaddr_un::sun_path));

/// The addresses of this host, with `port`.
inline std::vector<location> host_addresses(std::uint16_t family, std::uint16_t port) {
  std::vector<location> found{location::loopback(family, port)};
  ifaddrs* list = nullptr;
  if (::getifaddrs(&list) != 0) return found;
  const undo free_list{[&] { ::freeifaddrs(list); }};
  for (const ifaddrs* each = list; each != nullptr; each = each->ifa_next) {
    if (each->ifa_addr == nullptr || each->ifa_addr->sa_family != family) continue;
    if (auto at = location::of(*each->ifa_addr)) {
      at->port = port;
      found.push_back(*at);
    }
  }
  return found;
}

/// A socket with the name of `at`, or a negative errno.
inline int take_name(const std::string& fabric, const location& at) noexcept {
  const int made = ::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (made < 0) return -errno;
  const socket_name name{fabric, at};
  if (::bind(made, name.address(), name.length) == 0) return made;
  const int number = errno;
  ::close(made);
  return -number;
}

/// The same where a wildcard and an address of this host exclude each other on one port, unless
/// the port is shared. That is looked at, by taking the other's name for a moment, after the own
/// name has been taken: of two that come at once not both get theirs.
inline int take_port(const std::string& fabric, const location& at, bool shared) {
  const auto others = at.is_any() ? host_addresses(at.family, at.port)
                                  : std::vector{location::any(at.family, at.port)};
  const int made = take_name(fabric, at);
  if (made < 0 || shared) return made;
  for (const location& each : others) {
    const int other = take_name(fabric, each);
    if (other >= 0) ::close(other);
    if (other == -EADDRINUSE) {
      ::close(made);
      return other;
    }
  }
  return made;
}

/// The same with the port that `at` asks for, or for port 0 one that is free, which is set. Who is
/// looking whether a port is free holds it for a moment: a port asked for is tried again.
inline int take_some_port(const std::string& fabric, location& at, bool shared) {
  if (at.port != 0) {
    int made = take_port(fabric, at, shared);
    for (int tries = 0; made == -EADDRINUSE && tries < 3; ++tries) {
      std::this_thread::sleep_for(std::chrono::milliseconds{1});
      made = take_port(fabric, at, shared);
    }
    return made;
  }
  constexpr std::uint32_t first = 32768;
  constexpr std::uint32_t count = 28232;  // as ip_local_port_range has it
  std::uint32_t start = 0;
  (void)!::getrandom(&start, sizeof start, GRND_NONBLOCK);
  for (std::uint32_t i = 0; i < count; ++i) {
    location tried = at;
    tried.port = static_cast<std::uint16_t>(first + (start + i) % count);
    const int made = take_port(fabric, tried, shared);
    if (made >= 0) at = tried;
    if (made != -EADDRINUSE) return made;
  }
  return -EADDRNOTAVAIL;
}

/// Whether a process of this user is at the other end.
inline bool same_user(int socket) noexcept {
  ucred peer{};
  socklen_t length = sizeof peer;
  return ::getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &length) == 0 &&
         peer.uid == ::getuid();
}

}  // namespace verbena::soft::cm

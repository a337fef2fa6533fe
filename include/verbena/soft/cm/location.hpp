// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cstdint>
#include <cstring>
#include <optional>

/// RDMA CM on the software device.
namespace verbena::soft::cm {

/// An IP address and a port, as they are compared and told to the peer.
struct location {
  std::uint16_t family = 0;  ///< AF_INET or AF_INET6
  std::uint16_t port = 0;    ///< in host order
  std::uint32_t scope = 0;   ///< of a link-local address
  std::array<std::uint8_t, 16> bytes{};

  bool operator==(const location&) const = default;

  /// Nothing for another family.
  static std::optional<location> of(const sockaddr& from) noexcept {
    location made;
    made.family = from.sa_family;
    if (from.sa_family == AF_INET) {
      sockaddr_in in{};
      std::memcpy(&in, &from, sizeof in);
      made.port = ntohs(in.sin_port);
      std::memcpy(made.bytes.data(), &in.sin_addr, 4);
    } else if (from.sa_family == AF_INET6) {
      sockaddr_in6 in{};
      std::memcpy(&in, &from, sizeof in);
      made.port = ntohs(in.sin6_port);
      std::memcpy(made.bytes.data(), &in.sin6_addr, 16);
      if (IN6_IS_ADDR_LINKLOCAL(&in.sin6_addr)) made.scope = in.sin6_scope_id;
    } else {
      return std::nullopt;
    }
    return made;
  }

  static location any(std::uint16_t family, std::uint16_t port) noexcept {
    return {.family = family, .port = port};
  }

  /// Where one that goes to a wildcard arrives.
  static location loopback(std::uint16_t family, std::uint16_t port) noexcept {
    location made = any(family, port);
    if (family == AF_INET) made.bytes[0] = 127;
    (family == AF_INET ? made.bytes[3] : made.bytes[15]) = 1;
    return made;
  }

  bool known() const noexcept { return family == AF_INET || family == AF_INET6; }
  bool is_any() const noexcept { return bytes == std::array<std::uint8_t, 16>{}; }

  sockaddr_storage native() const noexcept {
    sockaddr_storage made{};
    if (family == AF_INET) {
      auto& in = reinterpret_cast<sockaddr_in&>(made);
      in.sin_family = AF_INET;
      in.sin_port = htons(port);
      std::memcpy(&in.sin_addr, bytes.data(), 4);
    } else {
      auto& in = reinterpret_cast<sockaddr_in6&>(made);
      in.sin6_family = AF_INET6;
      in.sin6_port = htons(port);
      in.sin6_scope_id = scope;
      std::memcpy(&in.sin6_addr, bytes.data(), 16);
    }
    return made;
  }

  /// Whether it is an address of this host: the kernel is asked by binding a socket to it.
  bool is_here() const noexcept {
    if (is_any() || (family == AF_INET && bytes[0] == 127) || same_host(loopback(AF_INET6, 0)))
      return true;
    if (bytes[0] >= (family == AF_INET ? 224 : 255)) return false;  // multicast can be bound to
    const int socket = ::socket(family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (socket < 0) return false;
    location free_port = *this;
    free_port.port = 0;
    const sockaddr_storage at = free_port.native();
    const bool bound = ::bind(socket, reinterpret_cast<const sockaddr*>(&at),
                              family == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6)) == 0;
    ::close(socket);
    return bound;
  }

 private:
  bool same_host(location other) const noexcept {
    other.port = port;
    return *this == other;
  }
};

}  // namespace verbena::soft::cm

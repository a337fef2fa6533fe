// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <arpa/inet.h>
#include <net/if.h>
#include <netinet/in.h>

#include <array>
#include <charconv>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include <verbena/verbs/result.hpp>

namespace verbena {

/// An IPv4 or IPv6 address and a port, in numbers: names are not looked up. A link-local IPv6
/// address needs its interface, "fe80::1%eth0", for the same one may exist on several. Port 0 is
/// for listening: the system then chooses one.
class address {
 public:
  /// Of a literal in the program; raises what parse() reports.
  address(std::string_view host, std::uint16_t port) : address{parse(host, port).value()} {}

  /// Of text from elsewhere. Errors: EINVAL for what is no address, and for a link-local one
  /// without its interface; ENODEV for an interface that does not exist.
  static result<address> parse(std::string_view host, std::uint16_t port) {
    const auto refused = [&](int number, const char* why) {
      return system_failure(number, "\"" + std::string{host} + "\" " + why);
    };
    const std::size_t percent = host.find('%');
    const std::string digits{host.substr(0, percent)};
    const bool is_text = host.find('\0') == host.npos;  // what inet_pton sees ends at a zero
    address made;
    if (percent == host.npos && is_text &&
        ::inet_pton(AF_INET, digits.c_str(), &made.value_.v4.sin_addr) == 1) {
      made.value_.v4.sin_family = AF_INET;
      made.value_.v4.sin_port = htons(port);
      return made;
    }
    made.value_.v6 = {};
    if (!is_text || ::inet_pton(AF_INET6, digits.c_str(), &made.value_.v6.sin6_addr) != 1) {
      return refused(EINVAL, "is neither an IPv4 nor an IPv6 address");
    }
    made.value_.v6.sin6_family = AF_INET6;
    made.value_.v6.sin6_port = htons(port);
    if (percent != host.npos) {
      const std::string zone{host.substr(percent + 1)};
      std::uint32_t& scope = made.value_.v6.sin6_scope_id;
      scope = ::if_nametoindex(zone.c_str());
      const char* end = zone.data() + zone.size();
      const bool is_known = scope != 0 || std::from_chars(zone.data(), end, scope).ptr == end;
      std::array<char, IF_NAMESIZE> name{};
      if (!is_known || ::if_indextoname(scope, name.data()) == nullptr) {
        return refused(ENODEV, "names an interface that does not exist");
      }
    } else if (IN6_IS_ADDR_LINKLOCAL(&made.value_.v6.sin6_addr)) {
      return refused(EINVAL, "is link-local: its interface is needed, as in fe80::1%eth0");
    }
    return made;
  }

  /// Errors: EAFNOSUPPORT for another family, such as AF_IB.
  static result<address> of(const sockaddr& from) {
    address made;
    if (from.sa_family == AF_INET) {
      made.value_.v4 = reinterpret_cast<const sockaddr_in&>(from);
    } else if (from.sa_family == AF_INET6) {
      made.value_.v6 = reinterpret_cast<const sockaddr_in6&>(from);
    } else {
      return system_failure(EAFNOSUPPORT, "an address of family " + std::to_string(from.sa_family));
    }
    return made;
  }

  bool is_ipv4() const noexcept { return value_.any.sa_family == AF_INET; }
  std::uint16_t port() const noexcept {
    return ntohs(is_ipv4() ? value_.v4.sin_port : value_.v6.sin6_port);
  }

  /// Without the port; with the interface where there is one.
  std::string host() const {
    std::array<char, INET6_ADDRSTRLEN> digits{};
    if (is_ipv4()) return ::inet_ntop(AF_INET, &value_.v4.sin_addr, digits.data(), digits.size());
    std::string text = ::inet_ntop(AF_INET6, &value_.v6.sin6_addr, digits.data(), digits.size());
    if (const std::uint32_t scope = value_.v6.sin6_scope_id; scope != 0) {
      std::array<char, IF_NAMESIZE> zone{};
      const bool named = ::if_indextoname(scope, zone.data()) != nullptr;
      text += "%" + (named ? std::string{zone.data()} : std::to_string(scope));
    }
    return text;
  }

  const sockaddr* native() const noexcept { return &value_.any; }

 private:
  address() = default;

  union {
    sockaddr any;
    sockaddr_in v4;
    sockaddr_in6 v6{};
  } value_;
};

/// "10.0.0.1:7471" or "[fe80::1%eth0]:7471".
inline std::string to_string(const address& of) {
  const std::string host = of.is_ipv4() ? of.host() : "[" + of.host() + "]";
  return host + ":" + std::to_string(of.port());
}

}  // namespace verbena

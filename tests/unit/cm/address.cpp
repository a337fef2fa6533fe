// SPDX-License-Identifier: BSL-1.0
// needs exceptions
#include <cstring>
#include <string>

#include <verbena/cm/address.hpp>

#include "catch.hpp"
#include "mentions.hpp"

using verbena::address;

TEST_CASE("FC-39 addresses of both families, with their port") {
  const address four = address::parse("10.0.0.1", 7471).value();
  CHECK(four.is_ipv4());
  CHECK(four.host() == "10.0.0.1");
  CHECK(four.port() == 7471);
  CHECK(to_string(four) == "10.0.0.1:7471");

  const address six{"2001:db8::1", 0};
  CHECK(!six.is_ipv4());
  CHECK(six.port() == 0);
  CHECK(to_string(six) == "[2001:db8::1]:0");
  CHECK(to_string(address{"::", 65535}) == "[::]:65535");
  CHECK(to_string(address{"0.0.0.0", 1}) == "0.0.0.0:1");
}

TEST_CASE("FC-39 the bytes of an address stand in network order once") {
  const address four{"10.0.0.1", 0x1234};
  const auto& native = reinterpret_cast<const sockaddr_in&>(*four.native());
  const unsigned char port[]{0x12, 0x34};
  const unsigned char host[]{10, 0, 0, 1};
  CHECK(native.sin_family == AF_INET);
  CHECK(std::memcmp(&native.sin_port, port, 2) == 0);
  CHECK(std::memcmp(&native.sin_addr, host, 4) == 0);
  CHECK(to_string(address::of(*four.native()).value()) == to_string(four));
  const address six{"2001:db8::1", 7471};
  CHECK(to_string(address::of(*six.native()).value()) == to_string(six));
}

TEST_CASE("FC-39 a link-local address needs its interface") {
  const auto without = address::parse("fe80::1", 7471);
  REQUIRE(!without);
  CHECK(without.error() == std::errc::invalid_argument);
  CHECK(mentions(without.error(), "fe80::1%eth0"));
  CHECK(to_string(address::parse("fe80::1%lo", 7471).value()) == "[fe80::1%lo]:7471");
  const std::string by_number = "fe80::1%" + std::to_string(::if_nametoindex("lo"));
  CHECK(to_string(address::parse(by_number, 7471).value()) == "[fe80::1%lo]:7471");
  for (const char* missing :
       {"fe80::1%none0", "fe80::1%", "fe80::1%4000000", "fe80::1%1x", "fe80::1%0"}) {
    INFO(missing);
    const auto refused = address::parse(missing, 7471);
    REQUIRE(!refused);
    CHECK(refused.error() == std::errc::no_such_device);
    CHECK(mentions(refused.error(), missing));
  }
}

TEST_CASE("what is no address is refused by its text") {
  for (const char* wrong : {"", "localhost", "10.0.0", "10.0.0.256", "10.0.0.1%eth0", "1:2",
                            "[::1]", "10.0.0.1:7471", " 10.0.0.1", "::1%"}) {
    INFO(wrong);
    const auto refused = address::parse(wrong, 7471);
    REQUIRE(!refused);
    CHECK(mentions(refused.error(), std::string{"\""} + wrong + "\""));
  }
  CHECK_THROWS_AS((address{"localhost", 7471}), verbena::failure);
  CHECK(!address::parse(std::string_view{"10.0.0.1\0x", 10}, 7471));
  sockaddr other{};
  other.sa_family = AF_UNIX;
  CHECK(address::of(other).error() == std::errc::address_family_not_supported);
}

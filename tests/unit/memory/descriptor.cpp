// SPDX-License-Identifier: BSL-1.0
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <random>
#include <span>
#include <vector>

#include <verbena/memory/buffer.hpp>
#include <verbena/memory/descriptor.hpp>
#include <verbena/verbs/protection_domain.hpp>

#include "catch.hpp"
#include "fabricated/device.hpp"
#include "mentions.hpp"

namespace vb = verbena;
using bytes = std::vector<std::byte>;

namespace {

bytes of(std::initializer_list<unsigned> values) {
  bytes made;
  for (const unsigned each : values) made.push_back(static_cast<std::byte>(each));
  return made;
}

/// Version 1 as it stands on the wire: never to be changed, a new layout is a new version.
const bytes golden = of({1,    1,    0x56, 0x42, 0,    32,   1,    0,     // header
                         0x12, 0x34, 0x56, 0x78, 0x9a, 0xbc, 0xde, 0xf0,  // address
                         0x00, 0x00, 0x00, 0x01, 0x00, 0x00, 0x00, 0x08,  // length
                         0xca, 0xfe, 0xba, 0xbe, 0x06, 0,    0,    0});   // rkey, rights

template <class T = std::byte, vb::role... Roles>
auto read(std::span<const std::byte> from) {
  return vb::read_region<T, Roles...>(from);
}

vb::errc why(const bytes& from) {
  const auto outcome = read<std::byte, vb::remote_writable>(from);
  if (outcome) return vb::errc{};
  REQUIRE(outcome.error().code().category() == vb::category());
  return static_cast<vb::errc>(outcome.error().code().value());
}

bytes changed(std::size_t at, unsigned value) {
  bytes made = golden;
  made.at(at) = static_cast<std::byte>(value);
  return made;
}

}  // namespace

TEST_CASE("FC-29 a region descriptor is these bytes on every machine") {
  const vb::region_record record{0x123456789abcdef0ULL, 0x100000008ULL, vb::rkey{0xcafebabe},
                                 vb::rights::remote_read | vb::rights::remote_write};
  bytes written(32);
  vb::descriptor_header{vb::descriptor_header::kind::region, 32, 1, 0}.write(written);
  record.write(std::span{written}.last<24>());
  CHECK(written == golden);

  const auto region = read<std::uint64_t, vb::remote_readable, vb::remote_writable>(golden).value();
  CHECK(region.address() == 0x123456789abcdef0ULL);
  CHECK(region.size_bytes() == 0x100000008ULL);
  CHECK(region.key() == vb::rkey{0xcafebabe});
}

TEST_CASE("FC-29 every field comes back whatever its bits") {
  std::mt19937_64 random{29};
  const auto round_trip = [](std::uint64_t address, std::uint64_t length, std::uint32_t key,
                             vb::rights granted) {
    const vb::region_record record{address, length, vb::rkey{key}, granted};
    std::array<std::byte, vb::region_record::wire_size> wire{};
    record.write(wire);
    const auto back = vb::region_record::read(wire).value();
    return back.address == address && back.length == length && back.key == vb::rkey{key} &&
           back.granted == granted;
  };
  for (unsigned granted = 2; granted < 16; granted += 2) {
    const auto set = static_cast<vb::rights>(granted);
    for (int bit = 0; bit < 63; ++bit) {
      CHECK(round_trip(std::uint64_t{1} << bit, 1, 0, set));
      CHECK(round_trip(0, std::uint64_t{1} << bit, ~0U, set));
      CHECK(round_trip(1, 1, 1U << (bit % 32), set));
    }
    CHECK(round_trip(std::uint64_t{1} << 63, 1, 0, set));
  }
  for (int i = 0; i < 10000; ++i) {
    const std::uint64_t address = random() >> 1;
    const std::uint64_t length = (random() >> 1) | 1;
    REQUIRE(
        round_trip(address, length, static_cast<std::uint32_t>(random()), vb::rights::remote_read));
  }
}

TEST_CASE("FC-29 an address above 4 GiB arrives whole") {
  fabricated::device adapter;
  const auto opened = adapter.open();
  const auto domain = vb::verbs::protection_domain::create(opened).value();
  const auto inbox =
      vb::buffer<char, vb::grants_of<vb::remote_writable>>::create(domain, 100).value();
  const auto address = reinterpret_cast<std::uintptr_t>(inbox.data());
  REQUIRE(address > 0xffff'ffffULL);
  const auto region = read<char, vb::remote_writable>(vb::describe_region(inbox)).value();
  CHECK(region.address() == address);
  CHECK(region.size() == 100);
}

TEST_CASE("FC-19 a descriptor carries the rkey, never the lkey") {
  fabricated::device adapter;
  const auto opened = adapter.open();
  const auto domain = vb::verbs::protection_domain::create(opened).value();
  const auto inbox =
      vb::buffer<char, vb::grants_of<vb::remote_writable>>::create(domain, 100).value();
  const auto region = read<char, vb::remote_writable>(vb::describe_region(inbox)).value();
  CHECK(static_cast<std::uint32_t>(region.key()) == inbox.native_handle()->rkey);
}

TEST_CASE("FC-19 what is no longer registered is described as nothing, which no peer takes") {
  fabricated::device adapter;
  const auto opened = adapter.open();
  const auto domain = vb::verbs::protection_domain::create(opened).value();
  auto inbox = vb::buffer<char, vb::grants_of<vb::remote_writable>>::create(domain, 100).value();
  REQUIRE(inbox.close().has_value());
  const auto nothing = read<char, vb::remote_writable>(vb::describe_region(inbox));
  REQUIRE_FALSE(nothing.has_value());
  CHECK(nothing.error() == vb::errc::wire_value);
}

TEST_CASE("FC-17 a descriptor carries what the peer may do and nothing of this end") {
  fabricated::device adapter;
  const auto opened = adapter.open();
  const auto domain = vb::verbs::protection_domain::create(opened).value();
  const auto inbox =
      vb::buffer<char, vb::grants_of<vb::sink, vb::remote_readable>>::create(domain, 100).value();
  const auto wire = vb::describe_region(inbox);
  CHECK(std::to_integer<unsigned>(wire[28]) == IBV_ACCESS_REMOTE_READ / 2);
  CHECK(read<char, vb::remote_readable>(wire).has_value());
}

TEST_CASE("FC-29 a descriptor that is too short or too long is refused at every length") {
  for (std::size_t length = 0; length < golden.size(); ++length) {
    INFO(length << " bytes");
    CHECK(why({golden.begin(), golden.begin() + static_cast<std::ptrdiff_t>(length)}) ==
          vb::errc::wire_length);
  }
  for (const std::size_t more : {1U, 8U, 24U, 4096U}) {
    bytes longer = golden;
    longer.resize(golden.size() + more);
    INFO(longer.size() << " bytes");
    CHECK(why(longer) == vb::errc::wire_length);
  }
}

TEST_CASE("FC-29 a length field that lies is refused") {
  CHECK(why(changed(5, 31)) == vb::errc::wire_length);
  CHECK(why(changed(5, 33)) == vb::errc::wire_length);
  CHECK(why(changed(4, 1)) == vb::errc::wire_length);
}

TEST_CASE("FC-29 each field with a wrong value is refused for what is wrong with it") {
  CHECK(why(golden) == vb::errc{});
  CHECK(why(changed(2, 0x42)) == vb::errc::wire_magic);
  CHECK(why(changed(3, 0x56)) == vb::errc::wire_magic);
  CHECK(why(changed(0, 0)) == vb::errc::wire_version);
  CHECK(why(changed(0, 2)) == vb::errc::wire_version);
  CHECK(why(changed(1, 0)) == vb::errc::wire_value);  // kind
  CHECK(why(changed(1, 2)) == vb::errc::wire_value);
  CHECK(why(changed(6, 2)) == vb::errc::wire_value);   // regions
  CHECK(why(changed(6, 0)) == vb::errc::wire_length);  // none, yet it is as long as with one
  CHECK(why(changed(7, 1)) == vb::errc::wire_value);   // MTU, which a region has none of
  CHECK(why(changed(7, 6)) == vb::errc::wire_value);
  CHECK(why(changed(28, 0)) == vb::errc::wire_value);  // no rights
  CHECK(why(changed(28, 1)) == vb::errc::wire_value);  // a right of the owner alone
  CHECK(why(changed(28, 7)) == vb::errc::wire_value);
  CHECK(why(changed(28, 0x16)) == vb::errc::wire_value);
  for (const std::size_t reserved : {29U, 30U, 31U}) {
    CHECK(why(changed(reserved, 1)) == vb::errc::wire_value);
  }
}

TEST_CASE("FC-29 a version that is not ours is named") {
  const auto outcome = read<std::byte, vb::remote_writable>(changed(0, 9));
  REQUIRE_FALSE(outcome.has_value());
  CHECK(mentions(outcome.error(), "version 9"));
  CHECK(mentions(outcome.error(), "is 1"));
}

TEST_CASE("FC-29 a region of nothing, or one that wraps around, is refused") {
  bytes empty = golden;
  std::fill(empty.begin() + 16, empty.begin() + 24, std::byte{0});
  CHECK(why(empty) == vb::errc::wire_value);
  bytes wrapping = golden;
  std::fill(wrapping.begin() + 16, wrapping.begin() + 24, std::byte{0xff});
  CHECK(why(wrapping) == vb::errc::wire_value);
}

TEST_CASE("FC-26 a peer's region can not be used beyond what it grants") {
  const auto refused = read<std::byte, vb::remote_atomic>(golden);
  REQUIRE_FALSE(refused.has_value());
  CHECK(refused.error() == vb::errc::no_right);
  CHECK(mentions(refused.error(), "remote read, remote write"));
  CHECK(mentions(refused.error(), "remote atomic"));
}

TEST_CASE("FC-26 a peer's region is typed only where size and alignment fit") {
  struct sixteen {
    char each[16];
  };
  CHECK(read<sixteen, vb::remote_readable>(golden).error() == vb::errc::wire_value);
  const auto unaligned = read<std::uint64_t, vb::remote_readable>(changed(15, 0xf4));
  REQUIRE_FALSE(unaligned.has_value());
  CHECK(unaligned.error() == vb::errc::wire_value);
}

TEST_CASE("FC-29 garbage gives a typed error and nothing else") {
  std::mt19937 random{0x29};
  for (int i = 0; i < 100000; ++i) {
    // Half of it begins as a descriptor does, or little would come past the magic.
    bytes some(random() % 80);
    std::generate(some.begin(), some.end(), [&] { return static_cast<std::byte>(random()); });
    if (random() % 2 == 0) {
      std::copy_n(golden.begin(), std::min<std::size_t>(some.size(), random() % 32), some.begin());
    }
    const auto outcome = read<std::byte, vb::remote_readable>(some);
    if (outcome) {
      const auto region = outcome.value();
      REQUIRE(some.size() == 32);
      REQUIRE(region.size() != 0);
      REQUIRE(region.address() + region.size() >= region.address());
      continue;
    }
    const std::error_code code = outcome.error().code();
    REQUIRE(code.category() == vb::category());
    const auto reason = static_cast<vb::errc>(code.value());
    REQUIRE((reason == vb::errc::wire_length || reason == vb::errc::wire_magic ||
             reason == vb::errc::wire_version || reason == vb::errc::wire_value ||
             reason == vb::errc::no_right));
  }
}

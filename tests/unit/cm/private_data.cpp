// SPDX-License-Identifier: BSL-1.0
#include <array>
#include <cstdint>
#include <cstring>
#include <random>
#include <span>
#include <vector>

#include <verbena/cm/private_data.hpp>

#include "catch.hpp"
#include "mentions.hpp"

using verbena::errc;
using verbena::private_data;
using verbena::rights;

namespace {

private_data two_regions() {
  private_data data;
  data.mtu = 3;
  data.regions.add({0x1000, 64, verbena::rkey{7}, rights::remote_read});
  data.regions.add({0x2000, 128, verbena::rkey{8}, rights::remote_write});
  return data;
}

}  // namespace

TEST_CASE("private data comes back as it was written, however much it is padded") {
  const auto bytes = two_regions().write();
  std::vector<std::byte> padded(bytes.begin(), bytes.end());
  for (const std::size_t size : {56U, 64U, 196U, 255U}) {
    padded.resize(size);
    const auto read = private_data::read(padded);
    REQUIRE(read);
    CHECK(read.value().mtu == 3);
    REQUIRE(read.value().regions.count == 2);
    CHECK(read.value().regions.records[0].address == 0x1000);
    CHECK(read.value().regions.records[1].key == verbena::rkey{8});
    CHECK(read.value().regions.granted() == (rights::remote_read | rights::remote_write));
  }
  private_data none;
  none.mtu = 5;
  // What iWARP delivers is as long as what was sent; a shorter one is enough where it says so.
  const auto written = none.write();
  CHECK(private_data::read(std::span{written}.first(8)).value().regions.count == 0);
}

TEST_CASE("FC-29 private data is these bytes on every machine") {
  const std::array<unsigned char, 56> golden{
      1, 3, 0x56, 0x42, 0, 56, 2,    3,                                                       //
      0, 0, 0,    0,    0, 0,  0x10, 0, 0, 0, 0, 0, 0, 0, 0, 64,  0, 0, 0, 7, 0x02, 0, 0, 0,  //
      0, 0, 0,    0,    0, 0,  0x20, 0, 0, 0, 0, 0, 0, 0, 0, 128, 0, 0, 0, 8, 0x04, 0, 0, 0};
  const auto bytes = two_regions().write();
  CHECK(std::memcmp(bytes.data(), golden.data(), golden.size()) == 0);
}

TEST_CASE("private data that is not right is refused by its fault") {
  const auto refused = [](std::size_t at, int value, std::size_t size = 56) {
    auto bytes = two_regions().write();
    bytes[at] = static_cast<std::byte>(value);
    return private_data::read(std::span{bytes}.first(size)).error();
  };
  const auto version = refused(0, 9);
  CHECK(version == errc::wire_version);
  CHECK(mentions(version, "version 9"));
  CHECK(mentions(version, "is 1"));
  CHECK(refused(1, 2) == errc::wire_value);  // an endpoint descriptor
  CHECK(refused(2, 0) == errc::wire_magic);
  CHECK(refused(5, 55) == errc::wire_length);
  CHECK(refused(5, 32) == errc::wire_length);  // of one region, with two
  CHECK(refused(6, 3) == errc::wire_value);
  CHECK(refused(7, 0) == errc::wire_value);
  CHECK(refused(7, 6) == errc::wire_value);
  CHECK(refused(8 + 20, 0) == errc::wire_value);  // no right
  CHECK(refused(0, 1, 55) == errc::wire_length);
  CHECK(refused(0, 1, 7) == errc::wire_length);
  CHECK(refused(0, 1, 0) == errc::wire_length);
}

TEST_CASE("no bytes whatever read beyond what there is") {
  std::mt19937 random{7};
  for (int i = 0; i < 20000; ++i) {
    const auto bytes = two_regions().write();
    std::vector<std::byte> garbled(bytes.begin(), bytes.begin() + static_cast<int>(random() % 57));
    for (unsigned n = random() % 4; n != 0 && !garbled.empty(); --n) {
      garbled[random() % garbled.size()] = static_cast<std::byte>(random());
    }
    if (const auto read = private_data::read(garbled)) {
      CHECK(garbled.size() >= 8 + 24 * read.value().regions.count);
    }
  }
}

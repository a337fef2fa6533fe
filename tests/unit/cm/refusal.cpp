// SPDX-License-Identifier: BSL-1.0
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <verbena/cm/refusal.hpp>

#include "catch.hpp"
#include "mentions.hpp"

using verbena::errc;
using verbena::refusal;

namespace {

verbena::error told(std::string_view reason, std::size_t padding = 0) {
  const refusal said{std::as_bytes(std::span{reason})};
  std::vector<std::byte> bytes(said.bytes.begin(),
                               said.bytes.begin() + static_cast<int>(said.size));
  bytes.resize(bytes.size() + padding);
  return refusal::read(bytes);
}

}  // namespace

TEST_CASE("FC-37 a rejection carries what the program said") {
  CHECK(told("busy") == errc::rejected);
  CHECK(mentions(told("busy"), "\"busy\""));
  CHECK(mentions(told("busy", 100), "\"busy\""));
  CHECK(mentions(told("two\nlines"), "9 bytes"));
  CHECK(told("").message() == verbena::make_error_code(errc::rejected).message());
  CHECK(mentions(told(std::string(200, 'x')), std::string(140, 'x') + "\""));
}

TEST_CASE("a rejection tells the version of the end that rejects") {
  refusal said;
  said.bytes[0] = std::byte{2};
  const auto why = refusal::read(std::span{said.bytes}.first(said.size));
  CHECK(why == errc::wire_version);
  CHECK(mentions(why, "version 2"));
  CHECK(mentions(why, "is 1"));
}

TEST_CASE("a rejection of another program is one") {
  const std::vector<std::byte> strange(148, std::byte{0x5a});
  for (const std::size_t size : {0U, 3U, 8U, 148U}) {
    CHECK(refusal::read(std::span{strange}.first(size)) == errc::rejected);
  }
  refusal lying;
  lying.bytes[5] = std::byte{200};
  CHECK(refusal::read(lying.bytes) == errc::rejected);
  lying.bytes[5] = std::byte{3};
  CHECK(refusal::read(lying.bytes) == errc::rejected);
}

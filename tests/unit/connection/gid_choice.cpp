// SPDX-License-Identifier: BSL-1.0
#include <cstdint>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include <verbena/connection/gid_choice.hpp>

#include "catch.hpp"
#include "fabricated/gid.hpp"
#include "mentions.hpp"

namespace vb = verbena;

using fabricated::infiniband;
using fabricated::roce_v1;
using fabricated::roce_v2;

namespace {

/// A table as a device gives it, with the index of each entry beside it.
std::vector<ibv_gid_entry> table(
    std::vector<std::pair<std::uint32_t, ibv_gid_entry>> const& entries) {
  std::vector<ibv_gid_entry> made;
  for (auto [index, entry] : entries) {
    entry.gid_index = index;
    made.push_back(entry);
  }
  return made;
}

std::uint32_t chosen(const std::vector<ibv_gid_entry>& mine,
                     const std::vector<ibv_gid_entry>& peers) {
  const auto pair = vb::match_gids(vb::offer_gids(mine), vb::offer_gids(peers));
  REQUIRE(pair.has_value());
  return pair->first.index;
}

bool fits(const std::vector<ibv_gid_entry>& mine, const std::vector<ibv_gid_entry>& peers) {
  return vb::match_gids(vb::offer_gids(mine), vb::offer_gids(peers)).has_value();
}

const char* const link_local = "fe80::1";
const char* const ipv4 = "::ffff:10.0.0.1";
const char* const unique_local = "fd00::1";

}  // namespace

TEST_CASE("FC-32 v2 is taken before v1, and routable before link-local") {
  const auto usual = table(
      {{0, roce_v1(link_local)}, {1, roce_v2(link_local)}, {2, roce_v1(ipv4)}, {3, roce_v2(ipv4)}});
  CHECK(chosen(usual, usual) == 3);
  const auto backwards = table(
      {{0, roce_v2(ipv4)}, {1, roce_v1(ipv4)}, {2, roce_v2(link_local)}, {3, roce_v1(link_local)}});
  CHECK(chosen(backwards, backwards) == 0);
}

TEST_CASE("FC-32 v2 on the link alone is taken before v1 that is routable") {
  const auto ends = table({{0, roce_v1(unique_local)}, {1, roce_v2(link_local)}});
  CHECK(chosen(ends, ends) == 1);
}

TEST_CASE("FC-32 the index is the place in the device's table, holes or not") {
  const auto sparse = table({{6, roce_v1(ipv4)}, {9, roce_v2(ipv4)}});
  CHECK(chosen(sparse, sparse) == 9);
}

TEST_CASE("FC-32 the family is one that both ends have") {
  const auto both = table({{0, roce_v2(ipv4)}, {1, roce_v2(unique_local)}});
  const auto only_v4 = table({{5, roce_v2(ipv4)}});
  const auto only_v6 = table({{7, roce_v2(unique_local)}});
  CHECK(chosen(both, only_v4) == 0);
  CHECK(chosen(both, only_v6) == 1);
  CHECK(chosen(only_v6, both) == 7);
  CHECK(chosen(only_v6, only_v6) == 7);
  CHECK_FALSE(fits(only_v4, only_v6));
}

TEST_CASE("FC-32 ends without a kind in common do not fit") {
  CHECK_FALSE(fits(table({{0, roce_v1(ipv4)}}), table({{0, roce_v2(ipv4)}})));
  CHECK_FALSE(fits(table({{0, infiniband(link_local)}}), table({{0, roce_v1(link_local)}})));
  CHECK(fits(table({{0, infiniband(link_local)}}), table({{0, infiniband("fe80::2")}})));
  CHECK_FALSE(fits({}, table({{0, roce_v2(ipv4)}})));
  CHECK_FALSE(fits({}, {}));
}

TEST_CASE("FC-32 a routable IPv6 pair is taken before a link-local IPv4 one") {
  const auto ends = table({{0, roce_v2("::ffff:169.254.3.4")}, {1, roce_v2(unique_local)}});
  CHECK(chosen(ends, ends) == 1);
}

TEST_CASE("FC-32 link-local is link-local in both families, to the bit") {
  const auto routable = [](const char* address) {
    return vb::gid_candidate::of(roce_v2(address)).is_routable();
  };
  CHECK_FALSE(routable("fe80::1"));
  CHECK_FALSE(routable("febf::1"));
  CHECK(routable("fec0::1"));
  CHECK(routable("fd00::1"));
  CHECK(routable("fe00::1"));
  CHECK_FALSE(routable("::ffff:169.254.0.1"));
  CHECK(routable("::ffff:169.253.0.1"));
  CHECK(routable("::ffff:10.0.0.1"));
  CHECK(vb::gid_candidate::of(roce_v2("::ffff:10.0.0.1")).is_ipv4());
  CHECK_FALSE(vb::gid_candidate::of(roce_v2("::10.0.0.1")).is_ipv4());
}

TEST_CASE("FC-32 among equals the first in the table is taken") {
  const auto twins = table({{2, roce_v2("::ffff:10.0.0.1")}, {3, roce_v2("::ffff:10.0.0.2")}});
  CHECK(chosen(twins, twins) == 2);
}

TEST_CASE("FC-32 both ends come to the same pair whatever their tables hold") {
  std::mt19937 random{32};
  const char* const addresses[] = {"fe80::1",         "fe80::2", "::ffff:10.0.0.1",
                                   "::ffff:10.0.0.2", "fd00::1", "::ffff:169.254.1.1",
                                   "2001:db8::1"};
  const auto some = [&] {
    std::vector<std::pair<std::uint32_t, ibv_gid_entry>> entries;
    for (std::uint32_t at = 0; at < random() % 7; ++at) {
      const auto type = static_cast<ibv_gid_type>(random() % 3);
      entries.emplace_back(at * 3, fabricated::gid(addresses[random() % 7], type));
    }
    return vb::offer_gids(table(entries));
  };
  int matched = 0;
  for (int i = 0; i < 20000; ++i) {
    const vb::gid_offer mine = some();
    const vb::gid_offer peers = some();
    const auto here = vb::match_gids(mine, peers);
    const auto there = vb::match_gids(peers, mine);
    REQUIRE(here.has_value() == there.has_value());
    if (!here) continue;
    ++matched;
    REQUIRE(here->first.raw == there->second.raw);
    REQUIRE(here->second.raw == there->first.raw);
    REQUIRE(here->first.kind == here->second.kind);
    REQUIRE(here->first.is_ipv4() == here->second.is_ipv4());
    REQUIRE(here->first.kind != vb::gid_kind::none);
  }
  CHECK(matched > 1000);
}

TEST_CASE("an index that no address vector can hold is not offered") {
  // grh.sgid_index has 8 bits.
  CHECK(vb::offer_gids(table({{256, roce_v2(ipv4)}}))[0].kind == vb::gid_kind::none);
  CHECK(vb::offer_gids(table({{255, roce_v2(ipv4)}}))[0].index == 255);
  CHECK(vb::offer_gids(table({{300, roce_v2(ipv4)}, {4, roce_v1(ipv4)}}))[0].index == 4);
}

TEST_CASE("offers have words for messages") {
  const auto offer = vb::offer_gids(table({{0, roce_v2(ipv4)}, {1, roce_v1(link_local)}}));
  CHECK(to_string(offer) == "::ffff:10.0.0.1 (RoCE v2), fe80::1 (RoCE v1)");
  CHECK(to_string(vb::gid_offer{}) == "none");
}

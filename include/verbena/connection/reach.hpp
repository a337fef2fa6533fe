// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <verbena/connection/datagram.hpp>
#include <verbena/connection/datagram_route.hpp>
#include <verbena/connection/link.hpp>
#include <verbena/connection/peer.hpp>

/// From what is known of a peer to one that datagrams can be sent to.
namespace verbena::link {

/// The peer that a descriptor describes. Errors: errc::wire_*, errc::mismatch, errc::no_usable_gid,
/// errno of ibv_create_ah.
template <class Attachment>
result<peer> described_peer(const Attachment& here, const endpoint_descriptor& mine,
                            std::span<const std::byte> bytes) {
  BOOST_OUTCOME_TRY(auto there, endpoint_descriptor::read(bytes));
  BOOST_OUTCOME_TRY(same_transport(mine, there));
  BOOST_OUTCOME_TRY(auto to, address(here, mine, there));
  BOOST_OUTCOME_TRY(auto way, verbs::address_handle::create(here.domain(), to));
  return peer{std::move(way), there.number, there.queue_key,
              std::min(mine.max_message, there.max_message), here.domain().id()};
}

/// The way back of a datagram and the GID of this end it begins at. First the GIDs that this end
/// has described are looked at, then all. Errors: errc::no_usable_gid.
template <class Attachment>
result<std::pair<datagram_route, std::uint32_t>> way_back(const Attachment& here,
                                                          const endpoint_descriptor& mine,
                                                          const datagram& from) {
  const bool ethernet = mine.link_layer == IBV_LINK_LAYER_ETHERNET;
  const std::array routes{datagram_route::of_grh(from.route(), ethernet),
                          datagram_route::of_ipv4(from.route())};
  const auto among =
      [&](const auto& gids) -> std::optional<std::pair<datagram_route, std::uint32_t>> {
    for (const gid_candidate& each : gids) {
      for (const datagram_route& route : routes) {
        if (route.leads_to(each)) return std::pair{route, each.index};
      }
    }
    return std::nullopt;
  };
  if (const auto found = among(mine.gids)) return *found;
  BOOST_OUTCOME_TRY(auto table, here.device().gids(here.options().port));
  std::vector<gid_candidate> all(table.size());
  std::ranges::transform(table, all.begin(), gid_candidate::of);
  if (const auto found = among(all)) return *found;
  return error{errc::no_usable_gid, "a datagram of queue pair " + std::to_string(from.sender()) +
                                        " was for none of the GIDs of port " +
                                        std::to_string(here.options().port) + " of " +
                                        here.device().name()};
}

/// Whom a datagram came from. Errors: errc::no_usable_gid where it does not tell, errno of
/// ibv_create_ah.
template <class Attachment>
result<peer> sender_of(const Attachment& here, const endpoint_descriptor& mine,
                       const datagram& from, std::uint32_t queue_key) {
  const ibv_wc& entry = from.native();
  ibv_ah_attr to{};
  to.port_num = here.options().port;
  to.dlid = entry.slid;
  to.sl = entry.sl;
  to.src_path_bits = entry.dlid_path_bits;
  if (from.has_route()) {
    if (from.route().empty()) {
      return error{errc::no_usable_gid,
                   "a datagram in several pieces of memory, or none, does not tell its sender"};
    }
    BOOST_OUTCOME_TRY(auto back, way_back(here, mine, from));
    to.is_global = 1;
    to.grh.sgid_index = static_cast<std::uint8_t>(back.second);
    to.grh.hop_limit = 64;
    std::ranges::copy(back.first.sender, to.grh.dgid.raw);
  } else if (mine.link_layer == IBV_LINK_LAYER_ETHERNET) {
    return error{errc::no_usable_gid, "a datagram without a GRH does not tell its sender"};
  }
  BOOST_OUTCOME_TRY(auto way, verbs::address_handle::create(here.domain(), to));
  return peer{std::move(way), from.sender(), queue_key, mine.max_message, here.domain().id()};
}

}  // namespace verbena::link

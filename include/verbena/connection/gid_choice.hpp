// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <arpa/inet.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include <verbena/verbs/ibverbs.hpp>

namespace verbena {

enum class gid_kind : std::uint8_t { none = 0, infiniband = 1, roce_v1 = 2, roce_v2 = 3 };

/// A GID that a queue pair can be reached by. `index` is its place in the local table; it means
/// nothing to the peer.
struct gid_candidate {
  gid_kind kind = gid_kind::none;
  std::array<std::uint8_t, 16> raw{};
  std::uint32_t index = 0;

  static gid_candidate of(const ibv_gid_entry& entry) noexcept {
    gid_candidate made;
    made.kind = static_cast<gid_kind>(entry.gid_type + 1);
    std::copy(std::begin(entry.gid.raw), std::end(entry.gid.raw), made.raw.begin());
    made.index = entry.gid_index;
    return made;
  }

  /// ::ffff:a.b.c.d, which is how RoCE carries an IPv4 address.
  bool is_ipv4() const noexcept {
    constexpr std::array<std::uint8_t, 12> prefix{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
    return std::equal(prefix.begin(), prefix.end(), raw.begin());
  }
  /// Whether other links can reach it: neither fe80::/10 nor 169.254/16.
  bool is_routable() const noexcept {
    if (is_ipv4()) return !(raw[12] == 169 && raw[13] == 254);
    return !(raw[0] == 0xfe && (raw[1] & 0xc0) == 0x80);
  }

  /// Higher is better: RoCE v2 over v1, then routable over link-local.
  int rank() const noexcept { return static_cast<int>(kind) * 2 + int{is_routable()}; }

  std::string text() const {
    std::array<char, INET6_ADDRSTRLEN> name{};
    ::inet_ntop(AF_INET6, raw.data(), name.data(), name.size());
    constexpr std::array kinds{"none", "InfiniBand", "RoCE v1", "RoCE v2"};
    return std::string{name.data()} + " (" + kinds[static_cast<std::size_t>(kind) % kinds.size()] +
           ")";
  }
};

/// What an end offers: its best IPv4 and its best other GID, for the peer may have one family
/// only. Entries that are equally good are taken in table order. An index beyond 255 is left out:
/// an address vector has 8 bits for it (ibv_global_route).
using gid_offer = std::array<gid_candidate, 2>;

inline gid_offer offer_gids(std::span<const ibv_gid_entry> table) noexcept {
  gid_offer offer;
  for (const ibv_gid_entry& entry : table) {
    if (entry.gid_index > std::numeric_limits<decltype(ibv_global_route::sgid_index)>::max())
      continue;
    const gid_candidate candidate = gid_candidate::of(entry);
    gid_candidate& best = offer[candidate.is_ipv4() ? 0 : 1];
    if (best.kind == gid_kind::none || candidate.rank() > best.rank()) best = candidate;
  }
  return offer;
}

/// The pair of GIDs both ends will use: same kind and family, the best by the worse of the two
/// ranks, IPv4 first among equals. Both ends come to the same pair. Nothing where none fits.
inline std::optional<std::pair<gid_candidate, gid_candidate>> match_gids(
    const gid_offer& mine, const gid_offer& peers) noexcept {
  std::optional<std::pair<gid_candidate, gid_candidate>> best;
  const auto worse = [](const auto& pair) {
    return std::min(pair.first.rank(), pair.second.rank());
  };
  for (std::size_t i = 0; i < mine.size(); ++i) {
    const std::pair pair{mine[i], peers[i]};
    if (pair.first.kind == gid_kind::none || pair.first.kind != pair.second.kind) continue;
    if (!best || worse(pair) > worse(*best)) best = pair;
  }
  return best;
}

/// For messages.
inline std::string to_string(const gid_offer& offer) {
  std::string text;
  for (const gid_candidate& each : offer) {
    if (each.kind != gid_kind::none) text += (text.empty() ? "" : ", ") + each.text();
  }
  return text.empty() ? "none" : text;
}

}  // namespace verbena

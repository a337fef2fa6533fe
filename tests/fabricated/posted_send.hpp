// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cstddef>
#include <vector>

#include <verbena/verbs/ibverbs.hpp>

namespace fabricated {

/// A send request as the provider took it: `request` without its pointers, `pieces` instead of
/// its list, and the bytes themselves where they were inline.
struct posted_send {
  ibv_send_wr request;
  std::vector<ibv_sge> pieces;
  std::vector<std::byte> inlined;

  explicit posted_send(const ibv_send_wr& from)
      : request{from}, pieces{from.sg_list, from.sg_list + from.num_sge} {
    request.next = nullptr;
    request.sg_list = nullptr;
    if ((from.send_flags & IBV_SEND_INLINE) == 0) return;
    for (const ibv_sge& each : pieces) {
      const auto* first = reinterpret_cast<const std::byte*>(each.addr);
      inlined.insert(inlined.end(), first, first + each.length);
    }
  }

  bool is_signaled() const { return (request.send_flags & IBV_SEND_SIGNALED) != 0; }

  std::uint64_t length() const {
    std::uint64_t total = 0;
    for (const ibv_sge& each : pieces) total += each.length;
    return total;
  }
};

}  // namespace fabricated

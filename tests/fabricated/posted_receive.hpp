// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cstdint>
#include <vector>

#include <verbena/verbs/ibverbs.hpp>

namespace fabricated {

/// A receive request as the provider took it.
struct posted_receive {
  std::uint64_t id;
  std::vector<ibv_sge> pieces;

  explicit posted_receive(const ibv_recv_wr& from)
      : id{from.wr_id}, pieces{from.sg_list, from.sg_list + from.num_sge} {}
};

}  // namespace fabricated

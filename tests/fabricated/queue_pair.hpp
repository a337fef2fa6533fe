// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include <verbena/verbs/ibverbs.hpp>

#include "posted_receive.hpp"
#include "posted_send.hpp"
#include "transition.hpp"

namespace fabricated {

/// A request that ibv_wr_* is told piece by piece.
struct built_send {
  ibv_send_wr work{};
  std::vector<ibv_sge> pieces;
  std::vector<std::byte> inlined;
  unsigned setters = 0;
};

/// A queue pair with all that was ever posted to it. Of each direction the first `completed` have
/// their completion, and the slots of the first `polled` are free.
struct queue_pair : ibv_qp_ex {
  ibv_qp_init_attr asked{};
  ibv_qp_cap granted{};
  ibv_qp_attr attributes{};
  std::vector<transition> transitions;

  template <class Request>
  struct queue {
    std::vector<Request> posted;
    std::size_t completed = 0;
    std::size_t polled = 0;
    std::size_t limit = 0;  ///< slots the provider really has

    bool is_full() const { return posted.size() - polled >= limit; }
  };
  queue<posted_send> sends;
  queue<posted_receive> receives;

  std::uint64_t send_ops = 0;  ///< that ibv_wr_* builds; none where the pair has no ibv_qp_ex
  bool building = false;
  std::vector<built_send> built;
};

}  // namespace fabricated

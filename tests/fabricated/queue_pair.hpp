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

/// A queue pair with all that was ever posted to it. Of each direction the first `completed` have
/// their completion, and the slots of the first `polled` are free.
struct queue_pair : ibv_qp {
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
};

}  // namespace fabricated

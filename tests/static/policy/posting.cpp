// SPDX-License-Identifier: BSL-1.0
#include <verbena/policy/policy_set.hpp>
#include <verbena/policy/posting.hpp>

namespace vb = verbena;

// The smallest posting: a queue that takes everything and does nothing.
struct smallest {
  template <std::size_t Requests, std::size_t Pieces>
  struct chain {
    explicit chain(ibv_qp*) {}
    template <std::size_t Index, std::size_t FirstPiece, class Request>
    void add(const Request&, std::uint64_t, bool) {}
    int submit(ibv_qp*) { return 0; }
    bool complete(int) { return true; }
    vb::accepted entered(int) { return {0, 0}; }
  };
};
static_assert(vb::posting_policy<smallest>);
static_assert(std::is_same_v<vb::policies<smallest>::posting, smallest>);

struct without_submit {
  template <std::size_t Requests, std::size_t Pieces>
  struct chain {
    explicit chain(ibv_qp*) {}
  };
};
static_assert(!vb::posting_policy<without_submit>);

// SPDX-License-Identifier: BSL-1.0
#include <verbena/policy/policy_set.hpp>
#include <verbena/policy/posting.hpp>

namespace vb = verbena;

// The smallest posting: a queue that takes everything and does nothing.
struct smallest {
  template <class Labels, class... Requests>
  static vb::answer post(ibv_qp* const&, const Labels&, const Requests&...) {
    return {};
  }
};
static_assert(vb::posting_policy<smallest>);
static_assert(std::is_same_v<vb::policies<smallest>::posting, smallest>);

struct without_labels {
  template <class... Requests>
  static vb::answer post(ibv_qp*, const vb::sample_request&, const Requests&...);
};
static_assert(!vb::posting_policy<without_labels>);

struct without_answer {
  template <class Labels, class... Requests>
  static int post(ibv_qp*, const Labels&, const Requests&...);
};
static_assert(!vb::posting_policy<without_answer>);

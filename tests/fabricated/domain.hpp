// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <verbena/verbs/ibverbs.hpp>

namespace fabricated {

struct thread_domain : ibv_td {
  int users = 0;  ///< parent domains
};

/// A protection domain, or a parent domain of one.
struct domain : ibv_pd {
  int users = 0;           ///< memory regions, queue pairs and parent domains
  domain* base = nullptr;  ///< of a parent domain
  thread_domain* thread = nullptr;

  const ibv_pd* protects() const { return base != nullptr ? base : this; }
};

}  // namespace fabricated

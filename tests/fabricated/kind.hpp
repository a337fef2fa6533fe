// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cstddef>

namespace fabricated {

/// The kinds of objects, parents before children.
enum class kind : std::size_t {
  device,
  domain,
  thread_domain,
  parent_domain,
  region,
  channel,
  completion_queue,
  queue_pair
};

inline constexpr std::size_t kind_count = static_cast<std::size_t>(kind::queue_pair) + 1;

constexpr const char* name_of(kind of) noexcept {
  switch (of) {
    case kind::device: return "device";
    case kind::domain: return "protection domain";
    case kind::thread_domain: return "thread domain";
    case kind::parent_domain: return "parent domain";
    case kind::region: return "memory region";
    case kind::channel: return "completion channel";
    case kind::completion_queue: return "completion queue";
    case kind::queue_pair: return "queue pair";
  }
  return "unknown object";
}

}  // namespace fabricated

// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <concepts>

#include <verbena/memory/rights.hpp>

namespace verbena {

/// What memory is for. The access flags follow: remote write and atomics need local write
/// (ibv_reg_mr(3)), a source needs nothing and may be read-only memory.
template <class Role>
concept role = requires {
  { Role::grants } -> std::convertible_to<rights>;
};

/// Sent or written from.
struct source {
  static constexpr rights grants = rights::local_read;
};

/// Received or read into. On iWARP the sink of a read is a target the peer writes to, so there
/// the registration adds remote write; nowhere else.
struct sink {
  static constexpr rights grants = rights::local_write;
};

/// The peer may read it; this side may send from it.
struct remote_readable {
  static constexpr rights grants = rights::remote_read;
};

/// The peer may write it; this side may receive or read into it.
struct remote_writable {
  static constexpr rights grants = rights::local_write | rights::remote_write;
};

/// The peer may use atomics on it.
struct remote_atomic {
  static constexpr rights grants = rights::local_write | rights::remote_atomic;
};

/// The rights of several roles together.
template <role... Roles>
inline constexpr rights grants_of = (rights::local_read | ... | Roles::grants);

}  // namespace verbena

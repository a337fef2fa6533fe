// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <verbena/memory/buffer.hpp>
#include <verbena/memory/remote_region.hpp>
#include <verbena/memory/role.hpp>
#include <verbena/verbs/protection_domain.hpp>

namespace fabricated {

using scratch = verbena::buffer<char, verbena::grants_of<verbena::sink>>;

/// Memory to post with.
inline scratch memory(const verbena::verbs::protection_domain& domain, std::size_t size = 4096) {
  return scratch::create(domain, size).value();
}

/// A peer's region that grants everything, at an address that no test reads.
using anywhere = verbena::remote_region<
    char,
    verbena::remote_part(verbena::grants_of<verbena::remote_readable, verbena::remote_writable>)>;

inline anywhere peer_region(std::size_t size = 1U << 30) {
  return {0x7000'0000'0000, size, verbena::rkey{0x9999}};
}

}  // namespace fabricated

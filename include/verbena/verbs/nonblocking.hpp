// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <fcntl.h>

#include <cerrno>
#include <string>

#include <verbena/verbs/result.hpp>

namespace verbena::verbs {

/// Makes reads of a channel's descriptor return when nothing is there. Errors: errno of fcntl(2).
inline result<void> make_nonblocking(int descriptor, const char* of) {
  const int flags = ::fcntl(descriptor, F_GETFL);
  if (flags < 0 || ::fcntl(descriptor, F_SETFL, flags | O_NONBLOCK) < 0) {
    return system_failure(errno, std::string{"cannot make the "} + of + " non-blocking");
  }
  return success();
}

}  // namespace verbena::verbs

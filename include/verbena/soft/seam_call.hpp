// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cerrno>
#include <new>
#include <type_traits>

#include <verbena/soft/refusal.hpp>
#include <verbena/verbs/failure.hpp>

namespace verbena::soft {

/// A function as the device seam has it: whoever calls it there knows of no exceptions. Without
/// memory left it fails as its namesake does: null or `Failed`, and errno is ENOMEM. Where
/// exceptions are off, the program ends then, as the standard library has it.
template <auto Call, int Failed = -1>
struct seam_call;

template <class Result, class... Arguments, Result (*Call)(Arguments...), int Failed>
struct seam_call<Call, Failed> {
  static Result call(Arguments... with) {
#if VERBENA_EXCEPTIONS
    try {
      return Call(with...);
    } catch (const std::bad_alloc&) {
      last_refusal.reset();
      errno = ENOMEM;
      if constexpr (std::is_pointer_v<Result>)
        return nullptr;
      else
        return Failed;
    }
#else
    return Call(with...);
#endif
  }
};

}  // namespace verbena::soft

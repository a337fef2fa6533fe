// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cerrno>
#include <new>
#include <type_traits>

#include <verbena/soft/objects.hpp>
#include <verbena/soft/refusal.hpp>
#include <verbena/verbs/failure.hpp>

namespace verbena::soft {

/// The device that an object of a call belongs to, and what a call of a forked process fails with.
template <class Native>
struct device_behind {
  static constexpr int elsewhere = ENODEV;
  static const context& of(const Native& object) noexcept { return context::of(object.context); }
};
template <>
struct device_behind<ibv_context> {
  static constexpr int elsewhere = ENODEV;
  static const context& of(const ibv_context& object) noexcept { return context::of(&object); }
};

/// How a function of the seam fails that returns an int.
enum class failing { by_minus_one, by_number };

/// A function as the device seam has it: whoever calls it there knows of no exceptions. It fails as
/// its namesake does, with ENOMEM without memory left (where exceptions are off, the program ends
/// then, as the standard library has it), and in a process that has forked from the device's,
/// which may do nothing but free its copies.
template <auto Call, failing How = failing::by_minus_one>
struct seam_call;

template <class Result, class First, class... Rest, Result (*Call)(First*, Rest...), failing How>
struct seam_call<Call, How> {
  static Result call(First* first, Rest... rest) {
    if (first != nullptr && device_behind<First>::of(*first).fabric->is_copy())
      return fail(device_behind<First>::elsewhere);
#if VERBENA_EXCEPTIONS
    try {
      return Call(first, rest...);
    } catch (const std::bad_alloc&) {
      return fail(ENOMEM);
    }
#else
    return Call(first, rest...);
#endif
  }

 private:
  static Result fail(int number) noexcept {
    last_refusal.reset();
    errno = number;
    if constexpr (std::is_pointer_v<Result>)
      return nullptr;
    else
      return How == failing::by_number ? number : -1;
  }
};

}  // namespace verbena::soft

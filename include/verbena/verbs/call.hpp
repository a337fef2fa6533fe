// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cerrno>
#include <string>

#include <verbena/verbs/result.hpp>

/// The verbs report failure in four ways; each adapter here turns one of them into a positive
/// errno, 0 meaning success. None of them throws.
namespace verbena::verbs {

/// Calls that return the errno (ibv_query_device, ibv_modify_qp, ibv_destroy_*). The manual pages
/// promise a positive number; some providers return negative ones, and old paths return -1 with
/// errno set, which is why -1 is read from errno when that is set.
inline int returned_errno(int value) noexcept {
  if (value == 0) return 0;
  if (value == -1 && errno != 0) return errno;
  return value < 0 ? -value : value;
}

/// A post that was refused: as returned_errno, but errno was not cleared before the call and tells
/// nothing of it. A provider that refused a request may return 0 (siw).
inline int refused_errno(int value) noexcept {
  if (value == 0) return EINVAL;
  return value < 0 ? -value : value;
}

/// Calls that return -1 and set errno (librdmacm, ibv_get_cq_event, ibv_close_device). Some of
/// librdmacm's set nothing on a bad argument.
inline int minus_one_errno(int value) noexcept {
  if (value >= 0) return 0;
  return errno != 0 ? errno : EINVAL;
}

/// Calls that return an object, or null and set errno (ibv_create_*, ibv_alloc_pd, ibv_reg_mr).
/// Providers that fail without setting it are taken to be out of memory.
inline int null_errno(const void* object) noexcept {
  if (object != nullptr) return 0;
  return errno != 0 ? errno : ENOMEM;
}

/// ibv_poll_cq and calls like it: a count, or a negative number that may or may not be an errno.
inline int negative_errno(int value) noexcept {
  if (value >= 0) return 0;
  return value == -1 ? EIO : -value;
}

/// `what` with its error when `number` is an errno, success when it is 0.
template <class Describe>
result<void> checked(int number, Describe&& what) {
  if (number == 0) return success();
  return system_failure(number, what());
}

}  // namespace verbena::verbs

// SPDX-License-Identifier: BSL-1.0
#include <cerrno>
#include <string>

#include <verbena/verbs/call.hpp>

#include "catch.hpp"
#include "mentions.hpp"

namespace verbs = verbena::verbs;

TEST_CASE("a returned errno is read with either sign") {
  errno = 0;
  CHECK(verbs::returned_errno(0) == 0);
  CHECK(verbs::returned_errno(EINVAL) == EINVAL);
  CHECK(verbs::returned_errno(-EINVAL) == EINVAL);
}

TEST_CASE("a returned -1 is read from errno where that is set") {
  errno = ENOSPC;
  CHECK(verbs::returned_errno(-1) == ENOSPC);
  errno = 0;
  CHECK(verbs::returned_errno(-1) == EPERM);
}

TEST_CASE("a call that fails without setting errno has an errno all the same") {
  errno = 0;
  CHECK(verbs::minus_one_errno(0) == 0);
  CHECK(verbs::minus_one_errno(-1) == EINVAL);
  int object = 0;
  CHECK(verbs::null_errno(&object) == 0);
  CHECK(verbs::null_errno(nullptr) == ENOMEM);
  errno = EAGAIN;
  CHECK(verbs::minus_one_errno(-1) == EAGAIN);
  CHECK(verbs::minus_one_errno(7) == 0);
  CHECK(verbs::null_errno(nullptr) == EAGAIN);
  CHECK(verbs::null_errno(&object) == 0);
}

TEST_CASE("a negative poll is an error whatever its number") {
  CHECK(verbs::negative_errno(0) == 0);
  CHECK(verbs::negative_errno(16) == 0);
  CHECK(verbs::negative_errno(-1) == EIO);
  CHECK(verbs::negative_errno(-ENODEV) == ENODEV);
}

TEST_CASE("a checked call describes itself only when it failed") {
  int described = 0;
  const auto describe = [&] {
    ++described;
    return std::string{"cannot do it"};
  };
  CHECK(verbs::checked(0, describe).has_value());
  CHECK(described == 0);
  const auto failed = verbs::checked(ENODEV, describe);
  REQUIRE_FALSE(failed.has_value());
  CHECK(failed.error() == std::errc::no_such_device);
  CHECK(mentions(failed.error(), "cannot do it: "));
}

TEST_CASE("a refused post is read without errno") {
  errno = ENOSPC;
  CHECK(verbs::refused_errno(-1) == EPERM);
  CHECK(verbs::refused_errno(-ENOMEM) == ENOMEM);
  CHECK(verbs::refused_errno(ENOMEM) == ENOMEM);
  CHECK(verbs::refused_errno(0) == EINVAL);
}

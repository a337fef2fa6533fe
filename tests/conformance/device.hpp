// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cstdlib>
#include <optional>
#include <string>
#include <utility>

#include <verbena/verbena.hpp>

#include "catch.hpp"

/// Why the rest of the test case that runs was skipped; empty where it was not.
inline std::string skipped_for;

/// Leaves the test case; CTest counts it as skipped unless something in it has failed.
#define VERBENA_SKIP(reason) \
  do {                       \
    skipped_for = (reason);  \
    return;                  \
  } while (false)

/// The device that VERBENA_DEVICE names. Where there is none: why not.
struct device_under_test {
  std::optional<verbena::device> device;
  std::string missing;

  device_under_test() {
    auto opened = verbena::verbs::open({});
    if (!opened) {
      missing = opened.error().message();
      return;
    }
    device = verbena::device::create(std::move(opened).value()).value();
  }
};

/// `name` becomes the device under test, or the test is skipped; one that is named and can not be
/// opened is a failure.
#define VERBENA_DEVICE_OR_SKIP(name)                                          \
  device_under_test name##_asked;                                             \
  if (!name##_asked.device) {                                                 \
    if (std::getenv("VERBENA_DEVICE") != nullptr) FAIL(name##_asked.missing); \
    VERBENA_SKIP(name##_asked.missing);                                       \
  }                                                                           \
  verbena::device& name = *name##_asked.device

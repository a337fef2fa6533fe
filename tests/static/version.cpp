// SPDX-License-Identifier: BSL-1.0
#include <verbena/version.hpp>

// The preprocessor can compare versions, so a user can ask for one with #if.
#if VERBENA_VERSION_MAJOR < 0 || VERBENA_VERSION_MINOR < 0 || VERBENA_VERSION_PATCH < 0
#error "the version is made of numbers"
#endif

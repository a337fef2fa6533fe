// SPDX-License-Identifier: BSL-1.0
#include <every_header.hpp>

int version_in_second_unit();

int version_in_second_unit() { return VERBENA_VERSION_MAJOR; }

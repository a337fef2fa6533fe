// SPDX-License-Identifier: BSL-1.0
#include <every_header.hpp>

int version_in_second_unit();

int main() { return version_in_second_unit() == VERBENA_VERSION_MAJOR ? 0 : 1; }

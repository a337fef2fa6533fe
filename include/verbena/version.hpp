// SPDX-License-Identifier: BSL-1.0
#pragma once

// The build reads the version from these three lines; nothing else states it.
#define VERBENA_VERSION_MAJOR 0
#define VERBENA_VERSION_MINOR 1
#define VERBENA_VERSION_PATCH 0

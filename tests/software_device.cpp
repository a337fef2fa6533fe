// SPDX-License-Identifier: BSL-1.0
// Makes the software device known to a test program, whose other files need not compile it again.
#include <verbena/soft.hpp>

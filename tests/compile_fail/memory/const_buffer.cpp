// SPDX-License-Identifier: BSL-1.0
// expect: a buffer is filled by its program: name the role source instead of const
#include <verbena/verbena.hpp>

namespace vb = verbena;

#ifdef FIXED
using table = vb::buffer<int, vb::grants_of<vb::source>>;
#else
using table = vb::buffer<const int, vb::grants_of<vb::source>>;
#endif
static_assert(sizeof(table) != 0);

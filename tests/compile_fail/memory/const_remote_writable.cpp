// SPDX-License-Identifier: BSL-1.0
// expect: const memory can only be a source or remote_readable: this role writes to it
#include <verbena/verbena.hpp>

namespace vb = verbena;

#ifdef FIXED
using table = vb::registration<const int, vb::grants_of<vb::remote_readable>>;
#else
using table = vb::registration<const int, vb::grants_of<vb::remote_writable>>;
#endif
static_assert(sizeof(table) != 0);

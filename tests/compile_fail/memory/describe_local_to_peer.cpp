// SPDX-License-Identifier: BSL-1.0
// expect: only memory with a remote role can be described: remote_readable, remote_writable or
// remote_atomic
#include <verbena/verbena.hpp>

namespace vb = verbena;

#ifdef FIXED
using memory = vb::buffer<char, vb::grants_of<vb::remote_readable>>;
#else
using memory = vb::buffer<char, vb::grants_of<vb::sink>>;
#endif
auto use(vb::endpoint<>& here, const memory& mine) { return here.describe(mine); }

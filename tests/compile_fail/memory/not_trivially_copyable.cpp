// SPDX-License-Identifier: BSL-1.0
// expect: registered memory holds trivially copyable elements
#include <string>

#include <verbena/verbena.hpp>

namespace vb = verbena;

#ifdef FIXED
using memory = vb::buffer<char, vb::grants_of<vb::sink>>;
#else
using memory = vb::buffer<std::string, vb::grants_of<vb::sink>>;
#endif
static_assert(sizeof(memory) != 0);

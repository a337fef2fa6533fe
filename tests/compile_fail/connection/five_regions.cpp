// SPDX-License-Identifier: BSL-1.0
// expect: a descriptor carries at most four regions
#include <verbena/verbena.hpp>

namespace vb = verbena;

auto use(vb::endpoint<>& here, const vb::buffer<char, vb::grants_of<vb::remote_readable>>& a) {
#ifdef FIXED
  return here.describe(a, a, a, a);
#else
  return here.describe(a, a, a, a, a);
#endif
}

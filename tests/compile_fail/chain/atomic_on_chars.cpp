// SPDX-License-Identifier: BSL-1.0
// expect: an atomic changes one object of 8 bytes and gives the old one to local memory of one
// piece
#include <verbena/verbena.hpp>

namespace vb = verbena;

#ifdef FIXED
using object = std::uint64_t;
#else
using object = char;
#endif

void use(vb::connection<>& link, const vb::buffer<object, vb::grants_of<vb::sink>>& old,
         vb::remote_region<object, vb::rights::remote_atomic> target) {
  (void)link.post(vb::fetch_and_add(old, target, 1));
}

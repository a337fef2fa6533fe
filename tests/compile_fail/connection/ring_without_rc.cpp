// SPDX-License-Identifier: BSL-1.0
// expect: a receive_ring serves transport::rc
#include <verbena/verbena.hpp>

namespace vb = verbena;

#ifdef FIXED
using transport = vb::transport::rc;
#else
using transport = vb::transport::uc;
#endif

auto use(const vb::device& device, const vb::receive_ring<>& ring) {
  return vb::endpoint<transport>::open(device, ring);
}

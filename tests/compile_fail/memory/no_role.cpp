// SPDX-License-Identifier: BSL-1.0
// expect: say what the memory is for: source, sink, remote_readable
#include <verbena/verbena.hpp>

namespace vb = verbena;

auto use(const vb::device& device) {
#ifdef FIXED
  return device.allocate<vb::sink>(4096);
#else
  return device.allocate<>(4096);
#endif
}

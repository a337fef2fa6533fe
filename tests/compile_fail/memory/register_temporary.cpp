// SPDX-License-Identifier: BSL-1.0
// expect: the memory would be gone at once: give it a name
#include <vector>

#include <verbena/verbena.hpp>

namespace vb = verbena;

auto use(vb::device& device) {
#ifdef FIXED
  static std::vector<char> memory(8);
  return device.register_memory<vb::source>(memory);
#else
  return device.register_memory<vb::source>(std::vector<char>(8));
#endif
}

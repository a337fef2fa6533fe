// SPDX-License-Identifier: BSL-1.0
// expect: on() takes function objects: write a lambda that calls the function
#include <verbena/verbena.hpp>

namespace vb = verbena;

void note(vb::failed);

#ifdef FIXED
auto use() {
  return vb::on([](vb::failed f) { note(f); });
}
#else
auto use() { return vb::on(note); }
#endif

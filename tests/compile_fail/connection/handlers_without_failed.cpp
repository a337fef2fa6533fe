// SPDX-License-Identifier: BSL-1.0
// expect: a handler set needs a function for vb::failed: a failure must not go unseen
#include <verbena/verbena.hpp>

namespace vb = verbena;

auto use() {
#ifdef FIXED
  return vb::on([](vb::completed<vb::send>) {}, [](vb::failed) {});
#else
  return vb::on([](vb::completed<vb::send>) {});
#endif
}

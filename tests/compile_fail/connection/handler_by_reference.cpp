// SPDX-License-Identifier: BSL-1.0
// expect: a function of a handler set is never called: it takes vb::failed or vb::completed<...>,
// by value or by const reference
#include <verbena/verbena.hpp>

namespace vb = verbena;

#ifdef FIXED
auto use() {
  return vb::on([](const vb::completed<vb::send>&) {}, [](vb::failed) {});
}
#else
auto use() {
  return vb::on([](vb::completed<vb::send>&) {}, [](vb::failed) {});
}
#endif

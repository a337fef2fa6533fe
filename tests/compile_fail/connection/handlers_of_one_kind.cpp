// SPDX-License-Identifier: BSL-1.0
// expect: two functions of a handler set take the same kind of completion
#include <verbena/verbena.hpp>

namespace vb = verbena;

#ifdef FIXED
auto use() {
  return vb::on([](vb::completed<vb::send>) {}, [](vb::completed<vb::read>) {}, [](vb::failed) {});
}
#else
auto use() {
  return vb::on([](vb::completed<vb::send>) {}, [](vb::completed<vb::send>) {}, [](vb::failed) {});
}
#endif

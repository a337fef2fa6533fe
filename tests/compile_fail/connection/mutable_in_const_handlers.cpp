// SPDX-License-Identifier: BSL-1.0
// expect: a const handler set can not call a function that is mutable: make the set or the function
// the other
#include <verbena/verbena.hpp>

namespace vb = verbena;

#ifdef FIXED
void use(vb::completion_queue<>& queue) {
  auto handle = vb::on([n = 0](vb::completed<vb::send>) mutable { ++n; }, [](vb::failed) {});
  (void)queue.poll(handle);
}
#else
void use(vb::completion_queue<>& queue) {
  const auto handle = vb::on([n = 0](vb::completed<vb::send>) mutable { ++n; }, [](vb::failed) {});
  (void)queue.poll(handle);
}
#endif

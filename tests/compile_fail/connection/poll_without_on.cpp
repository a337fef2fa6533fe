// SPDX-License-Identifier: BSL-1.0
// expect: poll and wait take a handler set: vb::on(functions...), one of them for vb::failed
#include <verbena/verbena.hpp>

namespace vb = verbena;

#ifdef FIXED
void use(vb::completion_queue<>& queue) {
  (void)queue.poll(vb::on([](vb::failed) {}));
}
#else
void use(vb::completion_queue<>& queue) {
  (void)queue.poll([](vb::completed<vb::send>) {});
}
#endif

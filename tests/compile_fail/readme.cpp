// SPDX-License-Identifier: BSL-1.0
// clang-format off: the sentence is one line
// expect: WRITE needs a remote region with the right remote_write: its owner must give it the role remote_writable
// clang-format on
#include <chrono>

#include <verbena/verbena.hpp>

namespace vb = verbena;

// What README.md says does not compile; tests/readme compares the two.
void use(vb::connection<>& link, const vb::registration<const char, vb::rights::local_read>& text) {
#ifndef FIXED
  auto shown = link.peer<char, vb::remote_readable>();
  if (link.post(vb::write(text, shown))) link.wait(std::chrono::seconds{1});
#else
  auto shown = link.peer<char, vb::remote_writable>();
  if (link.post(vb::write(text, shown))) link.wait(std::chrono::seconds{1});
#endif
}

// SPDX-License-Identifier: BSL-1.0
// expect: lkey
#include <verbena/verbena.hpp>

namespace vb = verbena;

// FC-19: the two keys are often equal by chance and must not be taken for each other.
vb::piece use(const vb::registration<char, vb::grants_of<vb::remote_writable>>& mine) {
  vb::piece made = mine.view().piece();
#ifdef FIXED
  made.key = mine.view().piece().key;
#else
  made.key = mine.remote_key();
#endif
  return made;
}

// SPDX-License-Identifier: BSL-1.0
// expect: rkey
#include <verbena/verbena.hpp>

namespace vb = verbena;

// FC-19: only an rkey enters what a peer is told.
vb::region_record use(const vb::registration<char, vb::grants_of<vb::remote_writable>>& mine) {
  vb::region_record made = vb::region_record::of(mine);
#ifdef FIXED
  made.key = mine.remote_key();
#else
  made.key = mine.view().key();
#endif
  return made;
}

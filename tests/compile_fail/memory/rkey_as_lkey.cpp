// SPDX-License-Identifier: BSL-1.0
// expect: lkey
#include <verbena/verbena.hpp>

namespace vb = verbena;

// FC-19: the two keys are often equal by chance and must not be taken for each other.
vb::view<char, vb::rights{}> use(
    std::span<char> memory,
    const vb::registration<char, vb::grants_of<vb::remote_writable>>& mine) {
#ifdef FIXED
  return {memory, mine.view().key(), 0};
#else
  return {memory, mine.remote_key(), 0};
#endif
}

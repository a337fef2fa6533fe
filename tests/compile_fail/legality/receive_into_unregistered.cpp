// SPDX-License-Identifier: BSL-1.0
// expect: inlined() and unregistered memory are for sends and writes
#include <verbena/verbena.hpp>

namespace vb = verbena;

void use(vb::connection<>& link, std::uint64_t number) {
#ifdef FIXED
  (void)link.post(vb::send(vb::unregistered{number}));
#else
  (void)link.post(vb::receive(vb::unregistered{number}));
#endif
}

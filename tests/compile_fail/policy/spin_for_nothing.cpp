// SPDX-License-Identifier: BSL-1.0
// expect: spin_then_wait<0> is event_driven: name that
#include <verbena/verbena.hpp>

namespace vb = verbena;

#ifdef FIXED
void use(vb::connection<vb::completion::spin_then_wait<1>>&) {}
#else
void use(vb::connection<vb::completion::spin_then_wait<0>>&) {}
#endif

// SPDX-License-Identifier: BSL-1.0
// expect: a listener needs setup::cm: setup::descriptor has nothing to listen for
#include <verbena/verbena.hpp>

namespace vb = verbena;

#ifndef FIXED
using plain = vb::connection<>;
#else
using plain = vb::connection<vb::setup::cm>;
#endif

void use(const vb::device& device) { (void)plain::listener::open(device, {"192.0.2.1", 0}); }

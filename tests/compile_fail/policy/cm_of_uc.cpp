// SPDX-License-Identifier: BSL-1.0
// expect: setup::cm connects transport::rc alone: with another transport name setup::descriptor
#include <verbena/verbena.hpp>

namespace vb = verbena;

#ifdef FIXED
using link_type = vb::connection<vb::transport::uc>;
#else
using link_type = vb::connection<vb::transport::uc, vb::setup::cm>;
#endif
static_assert(sizeof(link_type) != 0);

// SPDX-License-Identifier: BSL-1.0
#pragma once

/// The one place that includes libibverbs. Some of its functions are macros (ibv_reg_mr,
/// ibv_query_port, ibv_get_device_list), which is why no other header may name them and why the
/// device seam wraps them in rdma_core.hpp.
#include <infiniband/verbs.h>

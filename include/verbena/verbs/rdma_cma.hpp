// SPDX-License-Identifier: BSL-1.0
#pragma once

/// The one place that includes librdmacm.
#include <rdma/rdma_cma.h>

#include <verbena/verbs/ibverbs.hpp>

// SPDX-License-Identifier: BSL-1.0
#if __has_include(<verbena/verbena.hpp>)
#include <verbena/verbena.hpp>
#endif
#include <infiniband/verbs.h>
#include <rdma/rdma_cma.h>

#include <boost/hana/version.hpp>

#include <verbena/version.hpp>

// Each library the package promises to link is called.
int main() {
  int devices = 0;
  if (ibv_device** list = ibv_get_device_list(&devices)) ibv_free_device_list(list);
  if (rdma_event_channel* channel = rdma_create_event_channel())
    rdma_destroy_event_channel(channel);
  return VERBENA_VERSION_MAJOR >= 0 ? 0 : 1;
}

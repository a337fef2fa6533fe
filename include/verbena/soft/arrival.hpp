// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <atomic>
#include <cstdint>

#include <verbena/soft/complete.hpp>

namespace verbena::soft {

/// What came for a receive.
struct arrival {
  ibv_wc_opcode opcode = IBV_WC_RECV;
  std::uint32_t bytes = 0;
  std::uint32_t immediate = 0;
  std::uint32_t source = 0;
  std::uint32_t flags = 0;
  bool solicited = false;
  cause why = cause::unsaid;
};

/// Completes a receive of queue pair `number` on completion queue `queue`; `told` is where the
/// receive says that, for whoever finds it claimed by the dead.
inline void tell_receive(context& here, std::uint32_t queue, std::uint32_t number,
                         std::uint64_t wr_id, ibv_wc_status status, const arrival& of,
                         std::atomic<std::uint64_t>* told = nullptr) {
  completion what;
  what.wr_id = wr_id;
  what.status = status;
  what.opcode = of.opcode;
  what.byte_length = of.bytes;
  what.immediate = of.immediate;
  what.queue_pair = number;
  what.source = of.source;
  what.flags = of.flags;
  what.solicited = of.solicited;
  what.why = of.why;
  what.told = told;
  complete(here, queue, what);
}

}  // namespace verbena::soft

// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <algorithm>
#include <array>

#include <verbena/memory/rights.hpp>
#include <verbena/operation/operation.hpp>
#include <verbena/verbs/ibverbs.hpp>

/// What works on what (ibv_post_send(3), ibv_post_recv(3), IBA 9.2.3), stated once: the transport
/// policies, the constraints of post, docs/legality.md and the tests are made from these tables.
namespace verbena::legality {

/// Transports, as a set.
enum carriers : unsigned { rc = 1, uc = 2, ud = 4 };

/// What is fixed about an operation, whatever the connection.
struct operation_rules {
  operation what;
  unsigned carriers;         ///< the transports that carry it
  bool solicited = false;    ///< whether it can ask for the peer's solicited event
  bool inlined = false;      ///< whether its data can travel in the work request
  bool divided = false;      ///< whether it can be several messages
  bool fills_local = false;  ///< whether it writes to its local memory
  rights remote{};           ///< what it needs of the peer's region
};

inline constexpr std::array operations{
    operation_rules{.what = operation::receive, .carriers = rc | uc | ud, .fills_local = true},
    operation_rules{
        .what = operation::send, .carriers = rc | uc | ud, .solicited = true, .inlined = true},
    operation_rules{.what = operation::send_with_immediate,
                    .carriers = rc | uc | ud,
                    .solicited = true,
                    .inlined = true},
    operation_rules{.what = operation::read,
                    .carriers = rc,
                    .divided = true,
                    .fills_local = true,
                    .remote = rights::remote_read},
    operation_rules{.what = operation::write,
                    .carriers = rc | uc,
                    .inlined = true,
                    .divided = true,
                    .remote = rights::remote_write},
    operation_rules{.what = operation::write_with_immediate,
                    .carriers = rc | uc,
                    .solicited = true,
                    .inlined = true,
                    .divided = true,
                    .remote = rights::remote_write},
    operation_rules{.what = operation::compare_and_swap,
                    .carriers = rc,
                    .fills_local = true,
                    .remote = rights::remote_atomic},
    operation_rules{.what = operation::fetch_and_add,
                    .carriers = rc,
                    .fills_local = true,
                    .remote = rights::remote_atomic},
};

/// What is fixed about a transport.
struct transport_rules {
  ibv_qp_type type;
  carriers as;
  const char* name;
  bool fence;             ///< whether a request can wait for earlier reads and atomics
  bool addressed;         ///< whether each send names its peer, as there is no connection
  unsigned prefix_bytes;  ///< in front of a message in its receive: the GRH
};

inline constexpr std::array transports{
    transport_rules{IBV_QPT_RC, rc, "rc", true, false, 0},
    transport_rules{IBV_QPT_UC, uc, "uc", false, false, 0},
    transport_rules{IBV_QPT_UD, ud, "ud", false, true, sizeof(ibv_grh)},
};

/// The row of an operation; not of the library's own marker, which no program posts.
constexpr const operation_rules& rules_of(operation of) noexcept {
  return *std::ranges::find(operations, of, &operation_rules::what);
}
/// The row of RC, UC or UD.
constexpr const transport_rules& rules_of(ibv_qp_type of) noexcept {
  return *std::ranges::find(transports, of, &transport_rules::type);
}

constexpr bool carries(ibv_qp_type transport, operation of) noexcept {
  return (rules_of(of).carriers & rules_of(transport).as) != 0;
}
/// Fences are for what goes to the send queue.
constexpr bool fences(ibv_qp_type transport, operation of) noexcept {
  return rules_of(transport).fence && of != operation::receive;
}

}  // namespace verbena::legality

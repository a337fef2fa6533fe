// SPDX-License-Identifier: BSL-1.0
// The matrix of ibv_post_send(3), written down once more by hand, against what post takes.
#include <utility>

#include <verbena/chain/legal.hpp>
#include <verbena/connection/peer.hpp>
#include <verbena/memory/role.hpp>
#include <verbena/memory/view.hpp>
#include <verbena/operation/compare_and_swap.hpp>
#include <verbena/operation/fetch_and_add.hpp>
#include <verbena/operation/read.hpp>
#include <verbena/operation/receive.hpp>
#include <verbena/operation/send.hpp>
#include <verbena/operation/send_with_immediate.hpp>
#include <verbena/operation/write.hpp>
#include <verbena/operation/write_with_immediate.hpp>
#include <verbena/policy/policy_set.hpp>
#include <verbena/policy/transport/uc.hpp>
#include <verbena/policy/transport/ud.hpp>

namespace vb = verbena;

namespace {

using here = vb::view<std::uint64_t, vb::grants_of<vb::sink>>;
using there = vb::remote_region<
    std::uint64_t,
    vb::remote_part(vb::grants_of<vb::remote_readable, vb::remote_writable, vb::remote_atomic>)>;

using rc = vb::policies<vb::transport::rc>;
using uc = vb::policies<vb::transport::uc>;
using ud = vb::policies<vb::transport::ud>;

/// Whether post takes a request on RC, UC, UD: one digit each.
template <class Request>
constexpr int taken = 100 * int{vb::can_post<rc, Request>} + 10 * int{vb::can_post<uc, Request>} +
                      int{vb::can_post<ud, Request>};

constexpr here h{{}, vb::lkey{0}, 0};
constexpr there t{0, 0, vb::rkey{0}};

template <class Request>
using to_peer = decltype(std::declval<const Request&>().to(std::declval<const vb::peer&>()));

}  // namespace

static_assert(taken<decltype(vb::receive{h})> == 111);
static_assert(taken<decltype(vb::send{h})> == 110);
static_assert(taken<to_peer<decltype(vb::send{h})>> == 1);
static_assert(taken<decltype(vb::read{h, t})> == 100);
static_assert(taken<decltype(vb::receive{})> == 111);
static_assert(taken<decltype(vb::send_with_immediate{h, 1})> == 110);
static_assert(taken<to_peer<decltype(vb::send_with_immediate{h, 1})>> == 1);
static_assert(taken<decltype(vb::send_with_immediate{1})> == 110);
static_assert(taken<to_peer<decltype(vb::send_with_immediate{1})>> == 1);
static_assert(taken<to_peer<decltype(vb::receive{h})>> == 0);
static_assert(taken<decltype(vb::write{h, t})> == 110);
static_assert(taken<decltype(vb::write_with_immediate{h, t, 1})> == 110);
static_assert(taken<decltype(vb::write_with_immediate{t, 1})> == 110);
static_assert(taken<decltype(vb::compare_and_swap{h, t, 1, 2})> == 100);
static_assert(taken<decltype(vb::fetch_and_add{h, t, 1})> == 100);

// The flags, with a peer where it takes one: a fence on RC alone, solicited what completes at the
// peer, inline what is taken from memory.
static_assert(taken<decltype(vb::send{h}.fenced())> == 100);
static_assert(taken<to_peer<decltype(vb::send{h}.fenced())>> == 0);
static_assert(taken<decltype(vb::send_with_immediate{h, 1}.fenced())> == 100);
static_assert(taken<decltype(vb::read{h, t}.fenced())> == 100);
static_assert(taken<decltype(vb::write{h, t}.fenced())> == 100);
static_assert(taken<decltype(vb::write_with_immediate{h, t, 1}.fenced())> == 100);
static_assert(taken<decltype(vb::compare_and_swap{h, t, 1, 2}.fenced())> == 100);
static_assert(taken<decltype(vb::fetch_and_add{h, t, 1}.fenced())> == 100);
static_assert(taken<decltype(vb::receive{h}.fenced())> == 0);

static_assert(taken<decltype(vb::send{h}.solicited())> == 110);
static_assert(taken<to_peer<decltype(vb::send{h}.solicited())>> == 1);
static_assert(taken<decltype(vb::send_with_immediate{h, 1}.solicited())> == 110);
static_assert(taken<to_peer<decltype(vb::send_with_immediate{h, 1}.solicited())>> == 1);
static_assert(taken<decltype(vb::write_with_immediate{h, t, 1}.solicited())> == 110);
static_assert(taken<decltype(vb::read{h, t}.solicited())> == 0);
static_assert(taken<decltype(vb::write{h, t}.solicited())> == 0);
static_assert(taken<decltype(vb::compare_and_swap{h, t, 1, 2}.solicited())> == 0);
static_assert(taken<decltype(vb::fetch_and_add{h, t, 1}.solicited())> == 0);
static_assert(taken<decltype(vb::receive{h}.solicited())> == 0);

static_assert(taken<decltype(vb::send{h}.inlined())> == 110);
static_assert(taken<to_peer<decltype(vb::send{h}.inlined())>> == 1);
static_assert(taken<decltype(vb::send_with_immediate{h, 1}.inlined())> == 110);
static_assert(taken<to_peer<decltype(vb::send_with_immediate{h, 1}.inlined())>> == 1);
static_assert(taken<decltype(vb::write{h, t}.inlined())> == 110);
static_assert(taken<decltype(vb::write_with_immediate{h, t, 1}.inlined())> == 110);
static_assert(taken<decltype(vb::read{h, t}.inlined())> == 0);
static_assert(taken<decltype(vb::compare_and_swap{h, t, 1, 2}.inlined())> == 0);
static_assert(taken<decltype(vb::fetch_and_add{h, t, 1}.inlined())> == 0);
static_assert(taken<decltype(vb::receive{h}.inlined())> == 0);

static_assert(taken<decltype(vb::read{h, t}.divided())> == 100);
static_assert(taken<decltype(vb::write{h, t}.divided())> == 110);
static_assert(taken<decltype(vb::write_with_immediate{h, t, 1}.divided())> == 110);
static_assert(taken<decltype(vb::send{h}.divided())> == 0);
static_assert(taken<to_peer<decltype(vb::send{h}.divided())>> == 0);
static_assert(taken<decltype(vb::send_with_immediate{h, 1}.divided())> == 0);
static_assert(taken<decltype(vb::compare_and_swap{h, t, 1, 2}.divided())> == 0);
static_assert(taken<decltype(vb::fetch_and_add{h, t, 1}.divided())> == 0);
static_assert(taken<decltype(vb::receive{h}.divided())> == 0);

// Memory that is registered nowhere can only be taken from.
constexpr vb::unregistered bare{"text"};
static_assert(taken<decltype(vb::send{bare})> == 110);
static_assert(taken<to_peer<decltype(vb::send{bare})>> == 1);
static_assert(taken<decltype(vb::receive{bare})> == 0);

// Each operation that a program can post is one row, and stands above.
static_assert(vb::legality::operations.size() == 8);

// SPDX-License-Identifier: BSL-1.0
// The matrix of ibv_post_send(3), written down once more by hand, against what post takes.
#include <verbena/chain/legal.hpp>
#include <verbena/memory/role.hpp>
#include <verbena/memory/view.hpp>
#include <verbena/operation/read.hpp>
#include <verbena/operation/receive.hpp>
#include <verbena/operation/send.hpp>
#include <verbena/operation/write.hpp>
#include <verbena/policy/policy_set.hpp>
#include <verbena/policy/transport/uc.hpp>
#include <verbena/policy/transport/ud.hpp>

namespace vb = verbena;

namespace {

using here = vb::view<char, vb::grants_of<vb::sink>>;
using there =
    vb::remote_region<char,
                      vb::remote_part(vb::grants_of<vb::remote_readable, vb::remote_writable>)>;

using rc = vb::policies<vb::transport::rc>;
using uc = vb::policies<vb::transport::uc>;
using ud = vb::policies<vb::transport::ud>;

/// Whether post takes a request on RC, UC, UD: one digit each.
template <class Request>
constexpr int taken = 100 * int{vb::can_post<rc, Request>} + 10 * int{vb::can_post<uc, Request>} +
                      int{vb::can_post<ud, Request>};

constexpr here h{{}, vb::lkey{0}, 0};
constexpr there t{0, 0, vb::rkey{0}};

}  // namespace

static_assert(taken<decltype(vb::receive{h})> == 111);
static_assert(taken<decltype(vb::send{h})> == 111);
static_assert(taken<decltype(vb::read{h, t})> == 100);
static_assert(taken<decltype(vb::write{h, t})> == 110);

// Each operation that a program can post is one row, and stands above.
static_assert(vb::legality::operations.size() == 4);

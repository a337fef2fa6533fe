// SPDX-License-Identifier: BSL-1.0
// expect: the private data of RDMA CM carries at most two regions
#include <chrono>
#include <utility>

#include <verbena/verbena.hpp>

namespace vb = verbena;

using inbox = vb::buffer<char, vb::grants_of<vb::remote_writable>>;

auto use(vb::endpoint<vb::setup::cm>& here, const vb::address& to, const inbox& one) {
#ifdef FIXED
  return std::move(here).connect(to, std::chrono::seconds{1}, one, one);
#else
  return std::move(here).connect(to, std::chrono::seconds{1}, one, one, one);
#endif
}

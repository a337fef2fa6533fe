// SPDX-License-Identifier: BSL-1.0
#include <utility>

#include <verbena/connection/connection.hpp>
#include <verbena/connection/endpoint.hpp>
#include <verbena/operation/send.hpp>
#include <verbena/operation/write.hpp>
#include <verbena/policy/errors/returning.hpp>
#include <verbena/policy/transport/uc.hpp>
#include <verbena/policy/transport/ud.hpp>

#include "catch.hpp"
#include "fabricated/device.hpp"
#include "fabricated/memory.hpp"
#include "mentions.hpp"

namespace vb = verbena;

using fabricated::call;
using vb::errors::returning;

namespace {

template <class Transport>
using end = vb::endpoint<Transport, returning>;

}  // namespace

TEST_CASE("a UC endpoint becomes a connection by descriptors") {
  fabricated::device adapter;
  const auto opened = adapter.open();
  const auto domain = vb::verbs::protection_domain::create(opened).value();
  const auto memory = fabricated::memory(domain);
  using inbox = vb::buffer<std::uint64_t, vb::grants_of<vb::remote_writable>>;
  const auto shown = inbox::create(domain, 8).value();
  auto here = end<vb::transport::uc>::open(domain).value();
  auto there = end<vb::transport::uc>::open(domain).value();
  auto link = std::move(here).connect(there.describe(shown).value()).value();
  const auto& behind = fabricated::machine::of(link.native_handle());
  CHECK(behind.asked.qp_type == IBV_QPT_UC);
  CHECK(behind.transitions.back().mask == vb::transport::uc::to_send);
  const auto to = link.peer<std::byte>().value();
  CHECK(link.post(vb::write(memory.first(8), to), vb::send(memory.first(8))));
}

TEST_CASE("ends of different transports do not fit, and make no transition") {
  fabricated::device adapter;
  const auto opened = adapter.open();
  const auto domain = vb::verbs::protection_domain::create(opened).value();
  auto here = end<vb::transport::uc>::open(domain).value();
  auto there = end<vb::transport::rc>::open(domain).value();
  const auto described = there.describe().value();
  const unsigned before = adapter.count(call::modify_qp);
  const auto refused = std::move(here).connect(described);
  REQUIRE_FALSE(refused.has_value());
  CHECK(refused.error() == vb::errc::mismatch);
  CHECK(adapter.count(call::modify_qp) == before + 1);  // to ERR, when it is closed
}

TEST_CASE("FC-41 iWARP has RC alone: others are refused before a queue pair is made") {
  fabricated::device adapter{"siw9", IBV_TRANSPORT_IWARP};
  const auto opened = adapter.open();
  const auto domain = vb::verbs::protection_domain::create(opened).value();
  const auto uc = end<vb::transport::uc>::open(domain);
  REQUIRE_FALSE(uc.has_value());
  CHECK(uc.error() == vb::errc::not_supported);
  CHECK(mentions(uc.error(), "transport::uc on siw9"));
  const auto ud = end<vb::transport::ud>::open(domain);
  REQUIRE_FALSE(ud.has_value());
  CHECK(ud.error() == vb::errc::not_supported);
  CHECK(mentions(ud.error(), "transport::ud on siw9"));
  CHECK(adapter.count(call::create_qp) == 0);
  CHECK(end<vb::transport::rc>::open(domain).has_value());
}

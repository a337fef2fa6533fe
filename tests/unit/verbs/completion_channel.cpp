// SPDX-License-Identifier: BSL-1.0
#include <fcntl.h>

#include <cerrno>

#include <verbena/verbs/completion_channel.hpp>

#include "catch.hpp"
#include "fabricated/device.hpp"
#include "mentions.hpp"

using fabricated::call;
using fabricated::kind;
namespace verbs = verbena::verbs;

TEST_CASE("FC-12 a completion channel does not block") {
  fabricated::device adapter;
  const auto opened = adapter.open();
  const auto channel = verbs::completion_channel::create(opened).value();
  CHECK((::fcntl(channel.native_handle()->fd, F_GETFL) & O_NONBLOCK) != 0);
  ibv_cq* queue = nullptr;
  void* context = nullptr;
  CHECK(adapter.table.get_cq_event(channel.native_handle(), &queue, &context) == -1);
  CHECK(errno == EAGAIN);
}

TEST_CASE("a completion channel that can not be made names the device") {
  fabricated::device adapter{"full0"};
  const auto opened = adapter.open();
  adapter.refuse.add(call::create_comp_channel, EMFILE);
  const auto refused = verbs::completion_channel::create(opened);
  REQUIRE_FALSE(refused.has_value());
  CHECK(refused.error() == std::errc::too_many_files_open);
  CHECK(mentions(refused.error(), "full0"));
}

TEST_CASE("a shared completion channel goes with its last owner") {
  fabricated::device adapter;
  const auto opened = adapter.open();
  auto first = verbs::completion_channel::create(opened).value();
  auto second = first.share();
  CHECK(first.close().error() == std::errc::device_or_resource_busy);
  second = {};
  CHECK(adapter.live(kind::channel) == 1);
  CHECK(first.close().has_value());
  CHECK(adapter.live(kind::channel) == 0);
}

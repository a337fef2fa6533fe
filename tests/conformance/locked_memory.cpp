// SPDX-License-Identifier: BSL-1.0
// needs exceptions
#include <linux/capability.h>
#include <sys/resource.h>
#include <sys/syscall.h>

#include <array>
#include <string>

#include <verbena/verbena.hpp>

#include "catch.hpp"
#include "device.hpp"
#include "fixture/peer_process.hpp"
#include "mentions.hpp"

namespace vb = verbena;

namespace {

constexpr rlim_t limit = 256 * 1024;

/// From here on this process locks as little memory as any user's.
void lock_little() {
  const rlimit little{limit, limit};
  REQUIRE(::setrlimit(RLIMIT_MEMLOCK, &little) == 0);
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  std::array<__user_cap_data_struct, _LINUX_CAPABILITY_U32S_3> sets{};
  REQUIRE(::syscall(SYS_capget, &header, sets.data()) == 0);
  sets[CAP_IPC_LOCK / 32].effective &= ~(1U << CAP_IPC_LOCK % 32);
  REQUIRE(::syscall(SYS_capset, &header, sets.data()) == 0);
}

}  // namespace

TEST_CASE("peer: registers more than it may lock", "[.peer]") {
  VERBENA_PEER_OR_SKIP();
  const vb::basic_device<vb::errors::returning> device =
      vb::open_device<vb::errors::returning>().value();
  lock_little();
  const auto refused = device.allocate<vb::sink>(8 * limit);
  REQUIRE_FALSE(refused);
  INFO(refused.error().message());
  CHECK(refused.error() == std::errc::not_enough_memory);
  CHECK(mentions(refused.error(), std::to_string(8 * limit) + " bytes on " + device.name()));
  CHECK(mentions(refused.error(), std::to_string(limit) + " bytes, see"));
  CHECK(device.allocate<vb::sink>(4096));
}

TEST_CASE("FC-20 registering more than may be locked names size and limit", "[memory]") {
  VERBENA_DEVICE_OR_SKIP(device);
  if (device.name().starts_with("soft")) VERBENA_SKIP("the software device locks no memory");
  const pid_t peer = start_peer("peer: registers more than it may lock", "0");
  int status = 0;
  REQUIRE(::waitpid(peer, &status, 0) == peer);
  CHECK(WIFEXITED(status));
  CHECK(WEXITSTATUS(status) == 0);
}

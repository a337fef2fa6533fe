// SPDX-License-Identifier: BSL-1.0
// needs exceptions
// Each allocation of each call that makes something fails once: the call says ENOMEM, and nothing
// of what it had begun is left.
#include <sys/socket.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <new>

#include "cm/side.hpp"
#include "side.hpp"

using namespace soft_test;
namespace soft = verbena::soft;

namespace {

/// How many allocations of this thread succeed before one fails; less than 0: all do.
thread_local int left = -1;

void* allocate(std::size_t size, std::size_t alignment = 0) noexcept {
  if (left == 0) {
    left = -1;
    return nullptr;
  }
  if (left > 0) --left;
  if (size == 0) size = 1;
  if (alignment == 0) return std::malloc(size);
  return std::aligned_alloc(alignment, (size + alignment - 1) / alignment * alignment);
}
void* or_throw(void* made) {
  if (made == nullptr) throw std::bad_alloc{};
  return made;
}

}  // namespace

// The program's, as malloc has it but where a test here asks for a failure; weak, for a sanitizer
// brings its own. Not inlined, where g++ would see new and free as a pair that does not match.
[[gnu::noinline, gnu::weak]] void* operator new(std::size_t size) {
  return or_throw(allocate(size));
}
[[gnu::noinline, gnu::weak]] void* operator new(std::size_t size, const std::nothrow_t&) noexcept {
  return allocate(size);
}
[[gnu::noinline, gnu::weak]] void* operator new(std::size_t size, std::align_val_t to) {
  return or_throw(allocate(size, static_cast<std::size_t>(to)));
}
[[gnu::noinline, gnu::weak]] void* operator new(std::size_t size, std::align_val_t to,
                                                const std::nothrow_t&) noexcept {
  return allocate(size, static_cast<std::size_t>(to));
}
[[gnu::noinline, gnu::weak]] void operator delete(void* of) noexcept { std::free(of); }
[[gnu::noinline, gnu::weak]] void operator delete(void* of, std::size_t) noexcept { std::free(of); }
[[gnu::noinline, gnu::weak]] void operator delete(void* of, std::align_val_t) noexcept {
  std::free(of);
}
[[gnu::noinline, gnu::weak]] void operator delete(void* of, std::size_t,
                                                  std::align_val_t) noexcept {
  std::free(of);
}

namespace {

/// What stands in the tables of a fabric and beside it, and the descriptors of this process.
std::size_t in_use(const side& on) {
  const soft::fabric& of = *context::of(on.native).fabric;
  std::size_t count = 0;
  const auto add = [&](const auto& table) {
    for (const auto& each : table) count += each.owner.load() != 0 ? 1U : 0U;
  };
  add(of.shared().arenas);
  add(of.shared().regions);
  add(of.shared().completion_queues);
  add(of.shared().receive_queues);
  add(of.shared().queue_pairs);
  for (const auto& each : std::filesystem::directory_iterator{"/dev/shm"})
    count += each.path().string().starts_with(of.path()) ? 1U : 0U;
  for (const auto& each : std::filesystem::directory_iterator{"/proc/self/fd"}) {
    (void)each;
    ++count;
  }
  return count;
}

/// Whether this program allocates by what stands above.
bool can_fail() {
  left = 0;
  void* const made = ::operator new(1, std::nothrow);
  left = -1;
  ::operator delete(made);
  return made == nullptr;
}

/// `make` fails with ENOMEM at each of its allocations, and leaves nothing; then it succeeds.
void fails_at_each(const side& on, const std::function<bool()>& make) {
  const std::size_t before = in_use(on);
  for (int at = 0; at < 100; ++at) {
    CAPTURE(at);
    errno = 0;
    left = at;
    const bool made = make();
    const int number = errno;
    const bool has_failed = left < 0;
    left = -1;
    if (!has_failed) {
      CHECK(made);
      CHECK(at > 0);
      return;
    }
    CHECK_FALSE(made);
    CHECK(number == ENOMEM);
    REQUIRE(in_use(on) == before);
  }
  FAIL("it never ends");
}

}  // namespace

TEST_CASE("soft: what is made without memory left is not made, and leaves nothing", "[soft]") {
  if (!can_fail()) {
    WARN("skipped: a sanitizer allocates in this program");
    return;
  }
  const side on{fabric_name()};
  const verbena::verbs::control_table& calls = on.calls;
  ibv_comp_channel* channel = nullptr;
  ibv_cq* queue = nullptr;
  ibv_pd* domain = nullptr;
  fails_at_each(on, [&] { return (domain = calls.alloc_pd(on.native)) != nullptr; });
  fails_at_each(on, [&] { return (channel = calls.create_comp_channel(on.native)) != nullptr; });
  fails_at_each(
      on, [&] { return (queue = calls.create_cq(on.native, 8, nullptr, channel, 0)) != nullptr; });
  ibv_mr* region = nullptr;
  fails_at_each(on, [&] {
    return (region = calls.reg_mr(domain, on.memory, 64, IBV_ACCESS_LOCAL_WRITE)) != nullptr;
  });
  void* memory = nullptr;
  fails_at_each(on, [&] { return (memory = calls.allocate(on.native, 4096)) != nullptr; });
  ibv_srq_init_attr wanted{};
  wanted.attr = {4, 1, 0};
  ibv_srq* shared = nullptr;
  fails_at_each(on, [&] { return (shared = calls.create_srq(domain, &wanted)) != nullptr; });
  ibv_ah_attr to{};
  to.is_global = 1;
  to.port_num = 1;
  to.grh.sgid_index = 3;
  ibv_ah* handle = nullptr;
  fails_at_each(on, [&] { return (handle = calls.create_ah(domain, &to)) != nullptr; });
  ibv_qp_init_attr asked{};
  asked.send_cq = asked.recv_cq = queue;
  asked.cap = {4, 4, 1, 1, 16};
  asked.qp_type = IBV_QPT_RC;
  ibv_qp* pair = nullptr;
  fails_at_each(on, [&] { return (pair = calls.create_qp(domain, &asked)) != nullptr; });
  ibv_qp* of_shared = nullptr;
  asked.srq = shared;
  fails_at_each(on, [&] { return (of_shared = calls.create_qp(domain, &asked)) != nullptr; });
  ibv_qp_init_attr_ex more{};
  more.send_cq = more.recv_cq = queue;
  more.cap = {4, 4, 1, 1, 16};
  more.qp_type = IBV_QPT_RC;
  more.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
  more.pd = domain;
  more.send_ops_flags = IBV_QP_EX_WITH_SEND;
  ibv_qp* extended = nullptr;
  fails_at_each(on, [&] { return (extended = calls.create_qp_ex(on.native, &more)) != nullptr; });
  // Nothing that failed counts as a user of what it was to use.
  for (ibv_qp* each : {pair, of_shared, extended}) CHECK(calls.destroy_qp(each) == 0);
  CHECK(calls.destroy_ah(handle) == 0);
  CHECK(calls.destroy_srq(shared) == 0);
  CHECK(calls.dereg_mr(region) == 0);
  CHECK(calls.dealloc_pd(domain) == 0);
  CHECK(calls.destroy_cq(queue) == 0);
  CHECK(calls.destroy_comp_channel(channel) == 0);
  calls.release(on.native, memory, 4096);
}

TEST_CASE("soft: an id is made and bound, or not", "[soft][cm]") {
  if (!can_fail()) {
    WARN("skipped: a sanitizer allocates in this program");
    return;
  }
  const side on{fabric_name()};
  const verbena::verbs::cm_table& cm = *on.calls.cm;
  rdma_event_channel* channel = nullptr;
  fails_at_each(on, [&] { return (channel = cm.create_event_channel(on.native)) != nullptr; });
  rdma_cm_id* id = nullptr;
  fails_at_each(on, [&] { return cm.create_id(channel, &id, nullptr, RDMA_PS_TCP) == 0; });
  sockaddr_in any{};
  any.sin_family = AF_INET;
  auto* const address = reinterpret_cast<sockaddr*>(&any);
  fails_at_each(on, [&] { return cm.bind_addr(id, address) == 0; });
  rdma_cm_id* other = nullptr;
  REQUIRE(cm.create_id(channel, &other, nullptr, RDMA_PS_TCP) == 0);
  any.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  any.sin_port = 1;
  REQUIRE(cm.resolve_addr(other, nullptr, address, 1000) == 0);
  fails_at_each(on, [&] { return cm.resolve_route(other, 1000) == 0; });
  CHECK(cm.destroy_id(other) == 0);
  CHECK(cm.destroy_id(id) == 0);
  cm.destroy_event_channel(channel);
}

TEST_CASE("soft: what RDMA CM has to tell is told later without memory left", "[soft][cm]") {
  if (!can_fail()) {
    WARN("skipped: a sanitizer allocates in this program");
    return;
  }
  int failures = 0;
  for (int at = 0;; ++at) {
    CAPTURE(at);
    REQUIRE(at < 100);
    int of_this = 0;
    // A call fails at that allocation, and succeeds when it is made again.
    const auto twice = [&](auto&& call) {
      left = at;
      errno = 0;
      const int first = call();
      const int number = errno;
      if (std::exchange(left, -1) >= 0) return first;
      ++of_this;
      CHECK(first != 0);
      CHECK(number == ENOMEM);
      return call();
    };
    const auto next = [&](cm_test::side& of) {
      rdma_cm_event* got = nullptr;
      REQUIRE(of.readable(std::chrono::seconds{10}));
      REQUIRE(twice([&] { return of.cm.get_event(of.channel, &got); }) == 0);
      const auto type = got->event;
      if (type == RDMA_CM_EVENT_CONNECT_REQUEST) of.ids.push_back(got->id);
      of.cm.ack_event(got);
      return type;
    };
    cm_test::pair ends;
    cm_test::side& client = ends.client;
    cm_test::side& server = ends.server;
    rdma_conn_param with = cm_test::side::parameters();
    REQUIRE(twice([&] { return client.cm.connect(ends.active, &with); }) == 0);
    REQUIRE(next(server) == RDMA_CM_EVENT_CONNECT_REQUEST);
    ends.passive = server.ids.back();
    REQUIRE(twice([&] { return server.cm.accept(ends.passive, &with); }) == 0);
    REQUIRE(next(client) == RDMA_CM_EVENT_CONNECT_RESPONSE);
    REQUIRE(twice([&] { return client.cm.establish(ends.active); }) == 0);
    REQUIRE(next(server) == RDMA_CM_EVENT_ESTABLISHED);
    REQUIRE(twice([&] { return client.cm.disconnect(ends.active); }) == 0);
    REQUIRE(next(server) == RDMA_CM_EVENT_DISCONNECTED);
    REQUIRE(twice([&] { return server.cm.disconnect(ends.passive); }) == 0);
    REQUIRE(next(client) == RDMA_CM_EVENT_DISCONNECTED);
    failures += of_this;
    if (of_this == 0) break;
  }
  CHECK(failures > 5);
}

// SPDX-License-Identifier: BSL-1.0
// needs exceptions
#include <dirent.h>

#include <array>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <future>
#include <span>
#include <string>
#include <thread>
#include <utility>

#include <verbena/verbena.hpp>

#include "catch.hpp"
#include "device.hpp"
#include "fixture/cm_link.hpp"
#include "mentions.hpp"
TEST_CASE("cm: nobody listens", "[cm]") {
  VERBENA_DEVICE_OR_SKIP(device);
  std::optional<vb::address> closed;
  closed = cm_link::listener{device, {host(), 0}}.address();
  auto made = quiet_end::open(device).value().connect(*closed, soon);
  REQUIRE(!made);
  INFO(made.error().message());
  CHECK(made.error() == vb::errc::no_listener);
  CHECK(made.error() == std::errc::connection_refused);
  CHECK(mentions(made.error(), to_string(*closed)));
  const vb::error thrown = error_of([&] { (void)cm_end{device}.connect(*closed, soon); });
  CHECK(thrown == vb::errc::no_listener);
}

TEST_CASE("cm: no way there", "[cm]") {
  VERBENA_DEVICE_OR_SKIP(device);
  const auto begun = clock_type::now();
  auto made = quiet_end::open(device).value().connect({"203.0.113.1", 7471}, soon);
  CHECK(clock_type::now() - begun < soon);
  REQUIRE(!made);
  INFO(made.error().message());
  CHECK(made.error() == std::errc::network_unreachable);
  CHECK(mentions(made.error(), "203.0.113.1:7471"));
}

TEST_CASE("cm: nobody has the address", "[cm]") {
  VERBENA_DEVICE_OR_SKIP(device);
  // siw connects TCP inside rdma_connect, for two minutes where nobody answers.
  if (device.domain().device().is_iwarp())
    VERBENA_SKIP("iWARP: the kernel's connect has no deadline");
  if (std::string_view{host()} != "192.0.2.1")
    VERBENA_SKIP("no network that is known to have room");
  const auto begun = clock_type::now();
  auto made = quiet_end::open(device).value().connect({"192.0.2.99", 7471}, 1s);
  CHECK(clock_type::now() - begun < 2s);
  REQUIRE(!made);
  INFO(made.error().message());
  CHECK(made.error() == vb::errc::timed_out);
  // Which step waits is up to the network: a device without ARP resolves every address.
  CHECK(mentions(made.error(), "192.0.2.99:7471"));
}

TEST_CASE("cm: rejected with a reason", "[cm]") {
  VERBENA_DEVICE_OR_SKIP(device);
  cm_link::listener port{device, {host(), 0}};
  const std::array<std::byte, 3> unreadable{std::byte{1}, std::byte{0}, std::byte{2}};
  const std::string_view busy = "busy";
  const std::vector<std::pair<std::span<const std::byte>, const char*>> reasons{
      {std::as_bytes(std::span{busy}), "with \"busy\""},
      {unreadable, "with 3 bytes"},
      {{}, "rejected by the peer"}};
  for (const auto& [reason, expected] : reasons) {
    auto server =
        std::async(std::launch::async, [&, given = reason] { port.next(soon).reject(given); });
    auto made = quiet_end::open(device).value().connect(port.address(), soon);
    server.get();
    REQUIRE(!made);
    INFO(made.error().message());
    CHECK(made.error() == vb::errc::rejected);
    CHECK(mentions(made.error(), expected));
    CHECK(mentions(made.error(), to_string(port.address())));
  }
  auto server = std::async(std::launch::async, [&] { (void)port.next(soon); });
  auto made = quiet_end::open(device).value().connect(port.address(), soon);
  server.get();
  REQUIRE(!made);
  CHECK(made.error() == vb::errc::rejected);
}

TEST_CASE("cm: a listener that does not answer", "[cm]") {
  VERBENA_DEVICE_OR_SKIP(device);
  quiet_link::listener port = quiet_link::listener::open(device, {host(), 0}).value();
  const auto begun = clock_type::now();
  auto made = quiet_end::open(device).value().connect(port.address(), 300ms);
  const auto taken = clock_type::now() - begun;
  REQUIRE(!made);
  INFO(made.error().message());
  CHECK(made.error() == vb::errc::timed_out);
  CHECK(mentions(made.error(), "answer"));
  CHECK(taken >= 300ms);
  CHECK(taken < (device.domain().device().is_iwarp() ? 15s : 1s));
  // Who asked is gone: that is found out, or in the time given no answer comes.
  if (auto request = port.next(100ms)) {
    auto late = std::move(request).value().accept(quiet_end::open(device).value(), 500ms);
    REQUIRE(!late);
    CHECK(late.error() == vb::errc::disconnected);
    CHECK(mentions(late.error(), "accepting "));
  } else {
    CHECK(request.error() == vb::errc::timed_out);
  }
}

namespace {

template <std::size_t Size>
std::array<std::byte, Size> version_9() {
  std::array<std::byte, Size> bytes{};
  vb::descriptor_header{vb::descriptor_header::kind::private_data, 8, 0, 3}.write(bytes);
  bytes[0] = std::byte{9};
  return bytes;
}

rdma_conn_param stranger_parameters(std::span<const std::byte> data, const ibv_qp* queue_pair) {
  rdma_conn_param with{};
  with.private_data = data.data();
  with.private_data_len = static_cast<std::uint8_t>(data.size());
  with.responder_resources = with.initiator_depth = 1;
  with.retry_count = 7;
  with.qp_num = queue_pair->qp_num;
  return with;
}

vb::verbs::cm_id new_id(const vb::device& device) {
  return vb::verbs::cm_id::create(vb::verbs::cm_event_channel::create(device).value()).value();
}

template <class... Types>
vb::verbs::cm_event next(const vb::verbs::cm_id& id, Types... wanted) {
  return vb::cm::await(id, clock_type::now() + soon, -1, "testing", wanted...).value();
}

/// A client that asks `to` with `data` and returns what it is told.
vb::verbs::cm_event ask(const vb::device& device, const vb::address& to,
                        std::span<const std::byte> data) {
  const cm_end here{device};
  const auto id = new_id(device);
  id.resolve_address(to.native(), soon).value();
  next(id, RDMA_CM_EVENT_ADDR_RESOLVED);
  id.resolve_route(soon).value();
  next(id, RDMA_CM_EVENT_ROUTE_RESOLVED);
  id.connect(stranger_parameters(data, here.native_handle())).value();
  return next(id, RDMA_CM_EVENT_REJECTED, RDMA_CM_EVENT_CONNECT_RESPONSE,
              RDMA_CM_EVENT_ESTABLISHED);
}

}  // namespace

TEST_CASE("cm: a client of another version", "[cm]") {
  VERBENA_DEVICE_OR_SKIP(device);
  auto port = quiet_link::listener::open(device, {host(), 0}).value();
  auto asked =
      std::async(std::launch::async, [&] { return ask(device, port.address(), version_9<56>()); });
  auto accepted = port.accept(soon);
  REQUIRE(!accepted);
  INFO(accepted.error().message());
  CHECK(accepted.error() == vb::errc::wire_version);
  CHECK(mentions(accepted.error(), "version 9"));
  CHECK(mentions(accepted.error(), "is 1"));
  CHECK(mentions(accepted.error(), host()));
  const auto told = asked.get();
  CHECK(told.type == RDMA_CM_EVENT_REJECTED);
  REQUIRE(told.private_data().size() >= 8);
  CHECK(told.private_data()[0] == std::byte{vb::descriptor_header::current_version});
}

TEST_CASE("cm: a client that is no verbena", "[cm]") {
  VERBENA_DEVICE_OR_SKIP(device);
  auto port = quiet_link::listener::open(device, {host(), 0}).value();
  for (const std::size_t size : {0U, 3U, 56U}) {
    auto asked = std::async(std::launch::async, [&] {
      return ask(device, port.address(), std::vector<std::byte>(size, std::byte{0x5a})).type;
    });
    auto request = port.next(soon);
    REQUIRE(!request);
    INFO(request.error().message());
    CHECK((request.error() == vb::errc::wire_magic || request.error() == vb::errc::wire_length));
    CHECK(asked.get() == RDMA_CM_EVENT_REJECTED);
  }
}

TEST_CASE("cm: a listener of another version", "[cm]") {
  VERBENA_DEVICE_OR_SKIP(device);
  const bool accepts = GENERATE(false, true);
  const auto port = new_id(device);
  port.bind(vb::address{host(), 0}.native()).value();
  port.listen(8).value();
  const auto at = vb::address::of(*port.source()).value();
  auto connecting = std::async(std::launch::async,
                               [&] { return quiet_end::open(device).value().connect(at, soon); });
  auto request = next(port, RDMA_CM_EVENT_CONNECT_REQUEST).request;
  const auto channel = vb::verbs::cm_event_channel::create(device).value();
  request.migrate(channel).value();
  cm_end here{device};
  auto told = version_9<8>();
  if (accepts) {
    vb::cm::open_to_peer<vb::transport::rc>(here.attached(), request, {}).value();
    const vb::private_data any{3, {}};
    const auto with = stranger_parameters(told, here.native_handle());
    vb::cm::make_ready(here.attached(), request, any, with).value();
    request.accept(with).value();
  } else {
    request.reject(told).value();
  }
  const auto made = connecting.get();
  REQUIRE(!made);
  INFO(made.error().message());
  CHECK(made.error() == vb::errc::wire_version);
  CHECK(mentions(made.error(), "version 9"));
  CHECK(mentions(made.error(), to_string(at)));
}

TEST_CASE("cm: the way leads through another device", "[cm]") {
  VERBENA_DEVICE_OR_SKIP(device);
  const std::string_view here = host();
  const vb::address other{here == "192.0.2.1" ? "198.51.100.1" : "192.0.2.1", 0};
  auto elsewhere = quiet_link::listener::open(device, other);
  REQUIRE(!elsewhere);
  if (elsewhere.error() != vb::errc::mismatch) VERBENA_SKIP(elsewhere.error().message());
  const std::string other_name = device.name() == "rxe0" ? "siw0" : "rxe0";
  CHECK(mentions(elsewhere.error(), other_name));
  CHECK(mentions(elsewhere.error(), device.name()));
  CHECK(mentions(elsewhere.error(), to_string(other)));

  auto there = vb::open_device(other_name);
  auto everywhere = quiet_link::listener::open(there, {"0.0.0.0", 0}).value();
  auto waiting = std::async(std::launch::async, [&] { return everywhere.next(1s); });
  // From the device under test to the wildcard: through the wrong one for the listener.
  auto refused =
      quiet_end::open(device).value().connect({host(), everywhere.address().port()}, soon);
  REQUIRE(!refused);
  INFO(refused.error().message());
  CHECK(refused.error() == vb::errc::rejected);
  CHECK(mentions(refused.error(), "this end is on " + other_name));
  CHECK(waiting.get().error() == vb::errc::timed_out);
  // And to an address that is served by another device than the endpoint's.
  auto mismatched = quiet_end::open(device).value().connect({other.host(), 7471}, soon);
  REQUIRE(!mismatched);
  INFO(mismatched.error().message());
  CHECK(mismatched.error() == vb::errc::mismatch);
}

TEST_CASE("cm: a port that is taken", "[cm]") {
  VERBENA_DEVICE_OR_SKIP(device);
  const cm_link::listener port{device, {host(), 0}};
  auto second = quiet_link::listener::open(device, port.address());
  REQUIRE(!second);
  CHECK(second.error() == std::errc::address_in_use);
  CHECK(mentions(second.error(), to_string(port.address())));
}

namespace {

std::size_t open_files() {
  DIR* listing = ::opendir("/proc/self/fd");
  std::size_t count = 0;
  while (::readdir(listing) != nullptr) ++count;
  ::closedir(listing);
  return count;
}

/// The kernel's count of objects, empty where there is no `rdma` to ask.
std::string kernel_objects() {
  std::string text;
  std::FILE* listing = ::popen("rdma resource show 2>/dev/null", "r");
  if (listing == nullptr) return text;
  std::array<char, 256> line{};
  while (std::fgets(line.data(), line.size(), listing) != nullptr) text += line.data();
  ::pclose(listing);
  return text;
}

}  // namespace

TEST_CASE("FC-34 cm: nothing is left of 200 rejections and 20 connections", "[cm]") {
  VERBENA_DEVICE_OR_SKIP(device);
  auto port = quiet_link::listener::open(device, {host(), 0}).value();
  const auto round = [&](int rejections, int connections) {
    auto server = std::async(std::launch::async, [&] {
      for (int i = 0; i < rejections; ++i) {
        auto request = port.next(soon).value();
        if (i % 2 == 0) std::move(request).reject().value();
      }
      for (int i = 0; i < connections; ++i) (void)port.accept(soon).value();
    });
    for (int i = 0; i < rejections + connections; ++i) {
      const bool expected = i >= rejections;
      CHECK(quiet_end::open(device).value().connect(port.address(), soon).has_value() == expected);
    }
    server.get();
  };
  round(1, 1);
  std::this_thread::sleep_for(100ms);
  const std::size_t files = open_files();
  const std::string objects = kernel_objects();
  round(200, 20);
  const auto begun = clock_type::now();
  while (kernel_objects() != objects && clock_type::now() - begun < soon)
    std::this_thread::sleep_for(50ms);
  CHECK(open_files() == files);
  CHECK(kernel_objects() == objects);
}

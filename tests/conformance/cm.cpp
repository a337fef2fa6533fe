// SPDX-License-Identifier: BSL-1.0
// needs exceptions
#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <future>
#include <string>
#include <thread>
#include <vector>

#include <verbena/verbena.hpp>

#include "catch.hpp"
#include "device.hpp"
#include "mentions.hpp"

namespace vb = verbena;
using namespace std::chrono_literals;

extern char** environ;

namespace {

using cm_link = vb::connection<vb::setup::cm>;
using cm_end = vb::endpoint<vb::setup::cm>;
using quiet_link = vb::connection<vb::setup::cm, vb::errors::returning>;
using quiet_end = vb::endpoint<vb::setup::cm, vb::errors::returning>;
using clock_type = std::chrono::steady_clock;

constexpr auto soon = 20s;  // nothing here takes that long, on an emulated machine either

const char* host() {
  const char* given = std::getenv("VERBENA_ADDRESS");
  return given == nullptr ? "127.0.0.1" : given;
}

template <class T>
std::string_view text(const T& memory) {
  return reinterpret_cast<const char*>(memory.data());
}
template <class T>
void put(const T& memory, const char* what) {
  std::strcpy(reinterpret_cast<char*>(memory.data()), what);
}

/// What a call of errors::throwing failed with.
template <class Call>
vb::error error_of(Call&& call) {
  try {
    call();
  } catch (const vb::failure& thrown) {
    return thrown.reason();
  }
  return {};
}

/// What a call under any errors policy gave.
template <class T>
T got(T&& value) {
  return std::forward<T>(value);
}
template <class T>
T got(vb::result<T>&& value) {
  return std::move(value).value();
}

/// siw misses the wake-up for what arrives while rdma_accept returns, and looks again only when
/// more arrives: the connecting end waits a while before it sends.
void settle(const vb::device& device) {
  if (device.domain().device().is_iwarp()) std::this_thread::sleep_for(50ms);
}

/// A connected pair, the listener's end second.
template <class Link>
std::pair<Link, Link> connected(const vb::device& device, const vb::options& chosen = {}) {
  auto port = got(Link::listener::open(device, {host(), 0}, {.endpoint = chosen}));
  auto accepted = std::async(std::launch::async, [&] { return got(port.accept(soon)); });
  auto here = got(vb::basic_endpoint<typename Link::policies>::open(device, chosen));
  Link first = got(std::move(here).connect(port.address(), soon));
  return {std::move(first), accepted.get()};
}

const auto no_failure = vb::on([](const vb::failed& f) {
  FAIL("request failed: " << vb::make_error_code(f.status()).message());
});

}  // namespace

TEMPLATE_TEST_CASE("cm: both ends read, write, send and receive", "[cm]", vb::completion::busy_poll,
                   vb::completion::event_driven) {
  VERBENA_DEVICE_OR_SKIP(device);
  using pair_link = vb::connection<vb::setup::cm, TestType>;
  using pair_end = vb::endpoint<vb::setup::cm, TestType>;

  auto server_inbox = device.allocate<vb::remote_writable>(4096);
  auto server_shown = device.allocate<vb::remote_readable>(4096);
  auto client_inbox = device.allocate<vb::remote_writable>(4096);
  put(server_shown, "shown by the server");

  typename pair_link::listener port{device, {host(), 0}};
  REQUIRE(port.address().port() != 0);
  CHECK(port.address().host() == host());
  auto server = std::async(std::launch::async, [&] {
    auto in = device.template allocate<vb::sink>(64);
    auto out = device.template allocate<vb::source>(64);
    put(out, "from the server");
    pair_end here{device};
    REQUIRE(here.post(vb::receive(in)));
    auto request = port.next(soon);
    CHECK(request.peer_address().host() == host());
    CHECK(request.peer_regions() == 1);
    pair_link peer = std::move(request).accept(std::move(here), soon, server_inbox, server_shown);
    peer.wait(soon, no_failure);
    CHECK(text(in) == "from the client");
    REQUIRE(peer.post(vb::write(out, peer.template peer<std::byte>().first(64)), vb::send(out)));
    peer.wait(soon, no_failure);
    return peer;
  });
  auto in = device.allocate<vb::sink>(64);
  auto out = device.allocate<vb::source>(64);
  auto read_back = device.allocate<vb::sink>(4096);
  put(out, "from the client");
  pair_end here{device};
  REQUIRE(here.post(vb::receive(in)));
  pair_link peer = std::move(here).connect(port.address(), soon, client_inbox);
  settle(device);
  REQUIRE(peer.peer_regions() == 2);
  REQUIRE(peer.post(vb::write(out, peer.template peer<std::byte>(0).first(64)),
                    vb::read(read_back, peer.template peer<std::byte, vb::remote_readable>(1)),
                    vb::send(out)));
  int received = 0;
  peer.wait(soon,
            vb::on([&](const vb::completed<vb::receive>& c) { received += int(c.size()); },
                   [](const vb::failed& f) { FAIL(vb::make_error_code(f.status()).message()); }));
  pair_link other = server.get();
  CHECK(received == 64);
  CHECK(text(in) == "from the server");
  CHECK(text(client_inbox) == "from the server");
  CHECK(text(server_inbox) == "from the client");
  CHECK(text(read_back) == "shown by the server");
  peer.close();
  other.close();
}

TEST_CASE("cm: the listener's end sends first", "[cm]") {
  VERBENA_DEVICE_OR_SKIP(device);
  if (device.domain().device().is_iwarp()) VERBENA_SKIP("iWARP: the connecting end sends first");
  auto in = device.allocate<vb::sink>(64);
  auto out = device.allocate<vb::source>(64);
  put(out, "first");
  cm_link::listener port{device, {host(), 0}};
  auto server = std::async(std::launch::async, [&] {
    cm_link peer = port.accept(soon);
    REQUIRE(peer.post(vb::send(out)));
    peer.wait(soon, no_failure);
    return peer;
  });
  cm_end here{device};
  REQUIRE(here.post(vb::receive(in)));
  cm_link peer = std::move(here).connect(port.address(), soon);
  peer.wait(soon, no_failure);
  CHECK(text(in) == "first");
  server.get();
}

TEST_CASE("cm: receives posted before accepting take what is sent at once", "[cm]") {
  VERBENA_DEVICE_OR_SKIP(device);
  auto in = device.allocate<vb::sink>(64);
  auto out = device.allocate<vb::source>(64);
  put(out, "early");
  cm_link::listener port{device, {host(), 0}};
  auto server = std::async(std::launch::async, [&] {
    auto request = port.next(soon);
    CHECK(request.peer_address().host() == host());
    CHECK(request.peer_regions() == 0);
    cm_end here{device};
    REQUIRE(here.post(vb::receive(in)));
    cm_link peer = std::move(request).accept(std::move(here), soon);
    std::this_thread::sleep_for(50ms);
    peer.wait(soon, no_failure);
    return text(in) == "early";
  });
  cm_link peer = cm_end{device, {.receiver_not_ready_retries = 0}}.connect(port.address(), soon);
  settle(device);
  REQUIRE(peer.post(vb::send(out)));
  peer.wait(soon, no_failure);
  CHECK(server.get());
}

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

TEST_CASE("cm: a listener's waits end", "[cm]") {
  VERBENA_DEVICE_OR_SKIP(device);
  quiet_link::listener port = quiet_link::listener::open(device, {host(), 0}).value();
  auto none = port.accept(20ms);
  REQUIRE(!none);
  CHECK(none.error() == vb::errc::timed_out);
  auto waiting = std::async(std::launch::async, [&] { return port.next(soon); });
  std::this_thread::sleep_for(20ms);
  port.stop();
  CHECK(waiting.get().error() == vb::errc::stopped);
  CHECK(port.accept(soon).error() == vb::errc::stopped);
  port.resume();
  CHECK(port.next(10ms).error() == vb::errc::timed_out);
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

TEST_CASE("cm: what was sent before the peer closed is received", "[cm]") {
  VERBENA_DEVICE_OR_SKIP(device);
  auto in = device.allocate<vb::sink>(16 * 64);
  auto out = device.allocate<vb::source>(64);
  auto [first, second] = connected<cm_link>(device);
  for (std::size_t i = 0; i < 16; ++i) REQUIRE(second.post(vb::receive(in.subspan(i * 64, 64))));
  for (int i = 0; i < 10; ++i) REQUIRE(first.post(vb::send(out)));
  first.close();
  int received = 0;
  int failed = 0;
  int breaking = 0;
  const vb::error why = error_of([&] {
    second.wait(soon, vb::on([&](const vb::completed<vb::receive>&) { ++received; },
                             [&](const vb::failed& f) {
                               ++failed;
                               breaking += int(f.breaks_connection());
                             }));
  });
  INFO(why.message());
  CHECK(why == vb::errc::disconnected);
  CHECK(received == 10);
  CHECK(failed == 6);
  CHECK(breaking == 1);
  CHECK(second.peer_gone());
  second.close();
}

TEST_CASE("cm: a wait ends though the last sends are not signaled", "[cm]") {
  VERBENA_DEVICE_OR_SKIP(device);
  using unsignaled_link = vb::connection<vb::setup::cm, vb::signaling::one_in<16>>;
  auto in = device.allocate<vb::sink>(64);
  auto out = device.allocate<vb::source>(64);
  auto [first, second] = connected<unsignaled_link>(device);
  for (int round = 0; round < 3; ++round) {
    for (int i = 0; i < 3; ++i) REQUIRE(second.post(vb::receive(in)));
    REQUIRE(first.post(vb::send(out), vb::send(out), vb::send(out)));
    first.wait(soon, no_failure);
    second.wait(soon, no_failure);
  }
  first.close();
  second.close();
}

TEST_CASE("FC-18 a read into several pieces fills them or is refused before it is posted", "[cm]") {
  VERBENA_DEVICE_OR_SKIP(device);
  auto [first, second] =
      connected<quiet_link>(device, {.peer_may = vb::grants_of<vb::remote_readable>});
  auto shown = device.allocate<vb::remote_readable>(64);
  put(shown, "in two pieces");
  auto into = device.allocate<vb::sink>(64);
  const vb::remote_region<std::byte, vb::remote_part(vb::grants_of<vb::remote_readable>)> remote{
      reinterpret_cast<std::uintptr_t>(shown.data()), shown.size(), shown.remote_key()};
  settle(device);
  const vb::posted said =
      first.post(vb::read(vb::pieces{into.first(3), into.subspan(3, 61)}, remote));
  if (device.domain().device().is_iwarp()) {
    CHECK(said.error() == vb::errc::too_many_pieces);
    REQUIRE(first.post(vb::read(into, remote)));
  } else {
    CHECK(said);
  }
  REQUIRE(first.wait(soon, no_failure));
  CHECK(text(into) == "in two pieces");
  first.close().value();
  second.close().value();
}

TEST_CASE("FC-22 a receive fills its memory though the buffer is gone", "[cm]") {
  VERBENA_DEVICE_OR_SKIP(device);
  auto [first, second] = connected<quiet_link>(device);
  auto out = device.allocate<vb::source>(64);
  put(out, "for a buffer that is gone");
  std::string arrived;
  {
    auto gone = device.allocate<vb::sink>(64);
    REQUIRE(second.post(vb::receive(gone)));
  }
  auto other = device.allocate<vb::sink>(64);  // would lie where the first one did
  settle(device);
  REQUIRE(first.post(vb::send(out)));
  REQUIRE(first.wait(soon, no_failure));
  REQUIRE(second.wait(
      soon, vb::on(
                [&](vb::completed<vb::receive> done) {
                  const auto bytes = done.bytes();
                  arrived.assign(reinterpret_cast<const char*>(bytes.data()), bytes.size());
                },
                [](const vb::failed& f) { FAIL(vb::make_error_code(f.status()).message()); })));
  CHECK(arrived.starts_with("for a buffer that is gone"));
  CHECK(text(other).empty());
  first.close().value();
  second.close().value();
}

TEST_CASE("cm: accepting and rejecting with what was moved from is refused", "[cm]") {
  VERBENA_DEVICE_OR_SKIP(device);
  auto port = quiet_link::listener::open(device, {host(), 0}).value();
  auto client = std::async(std::launch::async, [&] {
    return quiet_end::open(device).value().connect(port.address(), soon);
  });
  auto request = port.next(soon).value();
  auto here = quiet_end::open(device).value();
  const auto elsewhere = std::move(here);
  CHECK(std::move(request).accept(std::move(here), soon).error() == vb::errc::moved_from);
  REQUIRE(std::move(request).reject());
  CHECK(std::move(request).reject().error() == vb::errc::moved_from);
  auto other = quiet_end::open(device).value();
  CHECK(std::move(request).accept(std::move(other), soon).error() == vb::errc::moved_from);
  CHECK(client.get().error() == vb::errc::rejected);
}

TEST_CASE("cm: a descriptor tells that the peer has closed", "[cm]") {
  VERBENA_DEVICE_OR_SKIP(device);
  auto [first, second] = connected<cm_link>(device);
  pollfd watched{second.peer_descriptor(), POLLIN, 0};
  CHECK(::poll(&watched, 1, 0) == 0);
  CHECK_FALSE(second.peer_gone());
  first.close();
  REQUIRE(::poll(&watched, 1, 20'000) == 1);
  CHECK(second.peer_gone());
}

TEST_CASE("FC-40 cm: a deadline that passes at any step of connecting is said to have passed",
          "[cm]") {
  VERBENA_DEVICE_OR_SKIP(device);
  const auto port = quiet_link::listener::open(device, {host(), 0}).value();
  for (const auto time : {0ns, 1000ns, 30'000ns, 200'000ns, 1'000'000ns, 20'000'000ns}) {
    for (int i = 0; i < 5; ++i) {
      quiet_end here = quiet_end::open(device).value();
      const auto refused = std::move(here).connect(port.address(), time);
      REQUIRE_FALSE(refused.has_value());
      INFO(refused.error().message());
      CHECK(refused.error() == vb::errc::timed_out);
    }
  }
}

TEST_CASE("cm: a moved-from listener and device answer", "[cm]") {
  VERBENA_DEVICE_OR_SKIP(device);
  auto port = quiet_link::listener::open(device, {host(), 0}).value();
  const auto moved = std::move(port);
  CHECK(port.next(1ms).error() == vb::errc::moved_from);
  CHECK(port.accept(1ms).error() == vb::errc::moved_from);
  CHECK(port.descriptor() == -1);
  auto opened = vb::verbs::open({}).value();
  const auto other = std::move(opened);
  CHECK(vb::verbs::protection_domain::create(opened).error() == vb::errc::moved_from);
}

TEST_CASE("cm: closing at once, twice, and after the peer", "[cm]") {
  VERBENA_DEVICE_OR_SKIP(device);
  for (int i = 0; i < 10; ++i) {
    auto [first, second] = connected<quiet_link>(device);
    auto both = std::async(std::launch::async, [&closing = first] { return closing.close(); });
    const auto mine = second.close();
    const auto theirs = both.get();
    INFO((mine ? "" : mine.error().message()));
    CHECK(mine);
    CHECK(theirs);
    CHECK(first.close());
    CHECK(second.close());
  }
  auto [first, second] = connected<quiet_link>(device);
  CHECK(first.close());
  std::this_thread::sleep_for(50ms);
  CHECK(second.peer_gone());
  CHECK(second.peer_gone());
  CHECK(second.close());
  // By destruction alone, with receives outstanding.
  auto in = device.allocate<vb::sink>(64);
  auto [third, fourth] = connected<quiet_link>(device);
  REQUIRE(third.post(vb::receive(in)));
  REQUIRE(fourth.post(vb::receive(in)));
}

namespace {

/// This program again, as a peer of its own that can be killed: the test case `name`, which gets
/// `given` in the environment variable VERBENA_PEER.
pid_t start_peer(const char* name, const std::string& given) {
  ::setenv("VERBENA_PEER", given.c_str(), 1);  // the tests of this program run one after another
  std::string program = "conformance";
  std::string test = name;
  std::array<char*, 3> arguments{program.data(), test.data(), nullptr};
  posix_spawn_file_actions_t quiet;
  posix_spawn_file_actions_init(&quiet);
  posix_spawn_file_actions_addopen(&quiet, 1, "/dev/null", O_WRONLY, 0);
  pid_t started = -1;
  REQUIRE(::posix_spawn(&started, "/proc/self/exe", &quiet, nullptr, arguments.data(), environ) ==
          0);
  posix_spawn_file_actions_destroy(&quiet);
  ::unsetenv("VERBENA_PEER");
  return started;
}

void kill_peer(pid_t peer) {
  ::kill(peer, SIGKILL);
  int status = 0;
  REQUIRE(::waitpid(peer, &status, 0) == peer);
}

std::uint16_t given_port() {
  const char* given = std::getenv("VERBENA_PEER");
  return static_cast<std::uint16_t>(given == nullptr ? 0 : std::strtoul(given, nullptr, 10));
}

}  // namespace

/// For the test cases that are run by start_peer().
#define VERBENA_PEER_OR_SKIP()                             \
  if (std::getenv("VERBENA_PEER") == nullptr)              \
    VERBENA_SKIP("this is the other end of another test"); \
  ::prctl(PR_SET_PDEATHSIG, SIGKILL)

TEST_CASE("peer: connects and sends until it is killed", "[.peer]") {
  VERBENA_PEER_OR_SKIP();
  const vb::device device = vb::open_device();
  cm_link peer = cm_end{device}.connect({host(), given_port()}, soon);
  auto out = device.allocate<vb::source>(64);
  settle(device);
  for (int i = 0; i < 4; ++i) REQUIRE(peer.post(vb::send(out)));
  peer.wait(soon);
  for (;;) std::this_thread::sleep_for(1s);
}

TEST_CASE("peer: connects until it is killed", "[.peer]") {
  VERBENA_PEER_OR_SKIP();
  const vb::device device = vb::open_device();
  const cm_link peer = cm_end{device}.connect({host(), given_port()}, soon);
  for (;;) std::this_thread::sleep_for(1s);
}

TEST_CASE("peer: asks and is killed", "[.peer]") {
  VERBENA_PEER_OR_SKIP();
  const vb::device device = vb::open_device();
  (void)cm_end{device}.connect({host(), given_port()}, 60s);
}

TEMPLATE_TEST_CASE("cm: a peer that is killed is noticed while waiting", "[cm]",
                   vb::completion::busy_poll, vb::completion::event_driven) {
  VERBENA_DEVICE_OR_SKIP(device);
  using peer_link =
      vb::connection<vb::setup::cm, TestType, vb::signaling::one_in<16>, vb::errors::returning>;
  auto port = peer_link::listener::open(device, {host(), 0}).value();
  const pid_t peer = start_peer("peer: connects and sends until it is killed",
                                std::to_string(port.address().port()));
  auto in = device.template allocate<vb::sink>(16 * 64);
  auto out = device.template allocate<vb::source>(64);
  auto ready = vb::basic_endpoint<typename peer_link::policies>::open(device).value();
  for (std::size_t i = 0; i < 16; ++i) REQUIRE(ready.post(vb::receive(in.subspan(i * 64, 64))));
  auto request = port.next(20s);
  if (!request) kill_peer(peer);
  peer_link here = std::move(request).value().accept(std::move(ready), soon).value();
  int received = 0;
  const auto begun = clock_type::now();
  while (received < 4 && clock_type::now() - begun < soon) {
    (void)here.completions().wait(
        100ms,
        vb::on([&](const vb::completed<vb::receive>&) { ++received; }, [](const vb::failed&) {}));
  }
  CHECK(received == 4);
  auto killer = std::async(std::launch::async, [&] {
    std::this_thread::sleep_for(200ms);
    kill_peer(peer);
  });
  const auto outcome = here.wait(10s);
  killer.get();
  REQUIRE(!outcome);
  INFO(outcome.error().message());
  CHECK(outcome.error() == vb::errc::disconnected);
  CHECK(here.peer_gone());
  const auto refused = here.post(vb::send(out));
  CHECK(refused.failed_with(vb::errc::broken));
  const auto closing = clock_type::now();
  const auto closed = here.close();
  INFO((closed ? "" : closed.error().message()));
  CHECK(closed);
  CHECK(clock_type::now() - closing < 500ms);
}

TEST_CASE("cm: a peer killed with our sends under way", "[cm]") {
  VERBENA_DEVICE_OR_SKIP(device);
  using peer_link = vb::connection<vb::setup::cm, vb::signaling::one_in<16>, vb::errors::returning>;
  auto port = peer_link::listener::open(device, {host(), 0},
                                        {.endpoint = {.ack_timeout = 10ms, .retries = 3}})
                  .value();
  auto inbox = device.allocate<vb::remote_writable>(64);
  auto out = device.allocate<vb::source>(64);
  const pid_t peer =
      start_peer("peer: connects until it is killed", std::to_string(port.address().port()));
  auto accepted = port.accept(20s);
  if (!accepted) kill_peer(peer);
  peer_link here = std::move(accepted).value();
  settle(device);
  // Nobody receives them: on RoCE they wait for ever, on iWARP they end the connection.
  for (int i = 0; i < 5; ++i) (void)here.post(vb::send(out));
  std::this_thread::sleep_for(50ms);
  kill_peer(peer);
  const auto outcome = here.wait(10s);
  REQUIRE(!outcome);
  INFO(outcome.error().message());
  // Which is noticed first, the CM's word or a send that nobody answers, is a race.
  CHECK((outcome.error() == vb::errc::disconnected ||
         outcome.error().code().category() == vb::status_category()));
  const auto closing = clock_type::now();
  const auto closed = here.close();
  INFO((closed ? "" : closed.error().message()));
  CHECK(closed);
  CHECK(clock_type::now() - closing < 500ms);
}

TEST_CASE("cm: a client killed between asking and being accepted", "[cm]") {
  VERBENA_DEVICE_OR_SKIP(device);
  auto port = quiet_link::listener::open(device, {host(), 0}).value();
  const pid_t peer = start_peer("peer: asks and is killed", std::to_string(port.address().port()));
  auto request = port.next(20s);
  kill_peer(peer);
  REQUIRE(request);
  const auto begun = clock_type::now();
  auto accepted = std::move(request).value().accept(quiet_end::open(device).value(), 1s);
  CHECK(clock_type::now() - begun < 2s);
  if (accepted) {
    // iWARP may not have seen it yet.
    auto in = device.allocate<vb::sink>(64);
    REQUIRE(accepted.value().post(vb::receive(in)));
    CHECK(accepted.value().wait(soon).error() == vb::errc::disconnected);
  } else {
    INFO(accepted.error().message());
    CHECK((accepted.error() == vb::errc::disconnected || accepted.error() == vb::errc::timed_out ||
           accepted.error() == vb::errc::rejected));
  }
}

TEST_CASE("cm: a client that leaves as soon as it is connected", "[cm]") {
  VERBENA_DEVICE_OR_SKIP(device);
  auto in = device.allocate<vb::sink>(64);
  auto port = quiet_link::listener::open(device, {host(), 0}).value();
  for (int i = 0; i < 10; ++i) {
    auto leaving = std::async(std::launch::async, [&] {
      return bool{quiet_end::open(device).value().connect(port.address(), soon)};
    });
    auto accepted = port.accept(soon);
    CHECK(leaving.get());
    if (accepted) {
      (void)accepted.value().post(vb::receive(in));
      const auto outcome = accepted.value().wait(soon);
      REQUIRE(!outcome);
      CHECK(outcome.error() == vb::errc::disconnected);
    } else {
      INFO(accepted.error().message());
      CHECK(accepted.error() == vb::errc::disconnected);
    }
  }
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

TEST_CASE("cm: nothing is left of 200 rejections and 20 connections", "[cm]") {
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

TEST_CASE("cm: many clients at once", "[cm]") {
  VERBENA_DEVICE_OR_SKIP(device);
  constexpr int count = 32;
  // siw gives a client 10 s for the listener's answer and a listener 5 s for the client's request
  // (MPAREQ_TIMEOUT and MPAREP_TIMEOUT in its siw_cm.h), and neither can be set: a machine on which
  // the 32 take longer loses some. They fail then, and not before.
  const auto patience = device.domain().device().is_iwarp() ? 5s : 60s;
  auto port = quiet_link::listener::open(device, {host(), 0}, {.backlog = 2 * count}).value();
  struct attempt {
    std::string failed;
    clock_type::duration took{};
  };
  std::atomic<int> ended{0};
  std::vector<std::future<attempt>> clients;
  for (int i = 0; i < count; ++i) {
    clients.push_back(std::async(std::launch::async, [&] {
      auto here = quiet_end::open(device).value();
      const auto begun = clock_type::now();
      auto made = std::move(here).connect(port.address(), 60s);
      attempt how{{}, clock_type::now() - begun};
      if (!made) {
        how.failed = made.error().message();
      } else if (auto closed = made.value().close(); !closed) {
        how = {"closing: " + closed.error().message(), {}};
      }
      ++ended;
      return how;
    }));
  }
  int accepted = 0;
  int lost = 0;
  while (accepted + lost < count) {
    const bool last = ended == count;
    auto request = port.next(1s);
    if (!request) {
      INFO(request.error().message());
      REQUIRE(request.error() == vb::errc::timed_out);
      if (last) break;
      continue;
    }
    auto made = std::move(request).value().accept(quiet_end::open(device).value(), 60s);
    made ? ++accepted : ++lost;
    if (!made) UNSCOPED_INFO("accepting: " << made.error().message());
  }
  int given_up = 0;
  for (auto& each : clients) {
    const attempt how = each.get();
    if (how.failed.empty()) continue;
    ++given_up;
    INFO(how.failed << " after " << std::chrono::duration<double>(how.took).count() << " s");
    CHECK(how.took >= patience);
  }
  CHECK(accepted >= count - given_up);
  CHECK(lost <= given_up);
}

TEST_CASE("cm: connecting can be stopped", "[cm]") {
  VERBENA_DEVICE_OR_SKIP(device);
  if (device.domain().device().is_iwarp())
    VERBENA_SKIP("iWARP gives up an attempt after 10 s only");
  const cm_link::listener port{device, {host(), 0}};
  vb::completion_queue<> queue{device};
  cm_end here{device, queue};
  auto stopping = std::async(std::launch::async, [&] {
    std::this_thread::sleep_for(50ms);
    queue.stop();
  });
  const auto begun = clock_type::now();
  const vb::error why = error_of([&] { (void)std::move(here).connect(port.address(), soon); });
  CHECK(why == vb::errc::stopped);
  CHECK(clock_type::now() - begun < 1s);
}

TEST_CASE("cm: IPv6", "[cm]") {
  VERBENA_DEVICE_OR_SKIP(device);
  const std::string_view here = host();
  const char* six = here == "192.0.2.1"      ? "2001:db8:1::1"
                    : here == "198.51.100.1" ? "2001:db8:2::1"
                                             : "::1";
  auto port = quiet_link::listener::open(device, {six, 0});
  if (!port) VERBENA_SKIP(port.error().message());
  auto accepted = std::async(std::launch::async, [&] { return port.value().accept(soon); });
  auto made = quiet_end::open(device).value().connect(port.value().address(), soon);
  INFO((made ? "" : made.error().message()));
  CHECK(made);
  CHECK(accepted.get());
}

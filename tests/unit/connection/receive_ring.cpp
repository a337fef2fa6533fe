// SPDX-License-Identifier: BSL-1.0
// needs exceptions
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include <verbena/verbena.hpp>

#include "catch.hpp"

namespace vb = verbena;

namespace {

using namespace std::chrono_literals;

std::string fabric(const char* knobs = "") {
  return "soft:ring-" + std::to_string(::getpid()) + knobs;
}

int refuse_all(ibv_srq*, ibv_recv_wr* first, ibv_recv_wr** refused) {
  *refused = first;
  return EIO;
}

/// A connection whose second end receives by a ring.
struct ringed {
  explicit ringed(const char* knobs = "", const vb::receive_ring_options& asked = {4, 64})
      : device{vb::open_device(fabric(knobs))}, ring{device, queue, asked} {
    vb::endpoint<> first{device};
    vb::endpoint<> second{device, ring};
    const auto mine = first.describe();
    const auto theirs = second.describe();
    there.emplace(std::move(second).connect(mine));
    here.emplace(std::move(first).connect(theirs));
  }

  vb::device device;
  vb::completion_queue<> queue{device, {256, 8}};
  vb::receive_ring<> ring;
  std::optional<vb::connection<>> here;
  std::optional<vb::connection<>> there;
};

}  // namespace

TEST_CASE("a ring whose device takes no receives is not made") {
  const vb::device device = vb::open_device(fabric());
  const vb::completion_queue<> queue{device, {256, 8}};
  const auto good = device.native_handle()->ops.post_srq_recv;
  device.native_handle()->ops.post_srq_recv = refuse_all;
  try {
    const vb::receive_ring<> ring{device, queue, {4, 64}};
    FAIL("it was made");
  } catch (const vb::failure& failed) {
    CHECK(failed.code() == std::error_code{EIO, std::generic_category()});
    CHECK(std::string{failed.what()}.find("19 of 19 receives") != std::string::npos);
  }
  device.native_handle()->ops.post_srq_recv = good;
  const vb::receive_ring<> ring{device, queue, {241, 64}};  // the queue is free as before
}

TEST_CASE("a ring that can not be refilled breaks its connections") {
  ringed test;
  const auto text = test.device.allocate<vb::source>(8);
  test.device.native_handle()->ops.post_srq_recv = refuse_all;
  std::uint32_t taken = 0;
  const auto handle = vb::on([&](vb::message) { ++taken; }, [](const vb::failed&) {});
  const auto take = [&](std::uint32_t until) {
    while (taken < until) {
      REQUIRE(test.here->post(vb::send(text)));
      test.here->wait(10s);
      REQUIRE(test.queue.wait(10s, handle));
    }
  };
  take(15);
  CHECK(test.there->capabilities().send_depth != 0);
  take(16);  // as many as are posted together
  try {
    (void)test.there->post(vb::send(text));
    FAIL("it was posted");
  } catch (const vb::failure& failed) {
    CHECK(failed.code() == vb::errc::broken);
  }
}

TEST_CASE("FC-23 on a ring too, a long write that fails tells why, once") {
  ringed test{",max_message=100"};
  auto target = test.device.allocate<vb::remote_writable>(400);
  const auto text = test.device.allocate<vb::source>(400);
  const vb::remote_region<std::byte, vb::grants_of<vb::remote_writable>> gone{
      reinterpret_cast<std::uintptr_t>(target.data()), 400, target.remote_key()};
  REQUIRE(target.close());
  REQUIRE(test.there->post(vb::write(text, gone).divided().token(5)));
  std::uint32_t told = 0;
  const auto handle = vb::on([&](const vb::failed& f) {
    ++told;
    CHECK(f.token() == 5);
    CHECK(f.status() == vb::status::remote_access);
    CHECK(f.breaks_connection());
  });
  while (told == 0) REQUIRE(test.queue.wait(10s, handle));
}

// SPDX-License-Identifier: BSL-1.0
// needs exceptions
// The rows of docs/ordering.md, which names these tests.
#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <future>
#include <stdexcept>
#include <thread>
#include <vector>

#include <verbena/verbena.hpp>

#include "catch.hpp"
#include "device.hpp"
#include "fixture/links.hpp"
#include "fixture/words.hpp"

namespace vb = verbena;

using links::no_failure;
using links::soon;

namespace {

using rc = vb::connection<vb::setup::cm, vb::signaling::per_operation>;
using uc = vb::connection<vb::transport::uc, vb::signaling::per_operation>;

constexpr std::size_t words = 2000;  // of several packets
constexpr std::uint64_t rounds = 20;

/// Memory of both ends, and a connection whose second end has opened its own.
template <class Link>
struct two {
  explicit two(const vb::device& on)
      : here{on.allocate<std::uint64_t, vb::sink>(words)},
        there{on.allocate<std::uint64_t, vb::remote_readable, vb::remote_writable>(words)},
        inbox{on.allocate<std::uint64_t, vb::sink>(words)},
        ends{links::connect<Link>(on, {}, there)} {}

  auto readable() const { return ends.here.template peer<std::uint64_t, vb::remote_readable>(); }
  auto writable() const { return ends.here.template peer<std::uint64_t, vb::remote_writable>(); }

  /// Takes the next messages at the second end, and tells the tokens of their receives.
  std::vector<std::uint32_t> take(std::size_t count) {
    std::vector<std::uint32_t> tokens;
    while (tokens.size() < count) {
      ends.there.completions().wait(
          soon, vb::on([&](vb::completed<vb::receive> got) { tokens.push_back(got.token()); },
                       [](const vb::failed& f) { no_failure(f); }));
    }
    return tokens;
  }

  vb::buffer<std::uint64_t, vb::grants_of<vb::sink>> here;
  vb::buffer<std::uint64_t, vb::grants_of<vb::remote_readable, vb::remote_writable>> there;
  vb::buffer<std::uint64_t, vb::grants_of<vb::sink>> inbox;
  links::pair<Link> ends;
};

bool all_are(const auto& memory, std::uint64_t value) {
  return std::ranges::all_of(memory, [=](std::uint64_t each) { return each == value; });
}

#define VERBENA_UC_OR_SKIP(device, Link)                          \
  if (Link::policies::transport::queue_pair_type == IBV_QPT_UC && \
      (device).domain().device().is_iwarp()) {                    \
    VERBENA_SKIP("iWARP has transport::rc alone");                \
  }

#define VERBENA_FENCED_READS_OR_SKIP(device)                            \
  if ((device).domain().device().is_iwarp()) {                          \
    VERBENA_SKIP((device).name() + " (iWARP) has no reads with fence"); \
  }

}  // namespace

TEMPLATE_TEST_CASE("ordering: messages arrive in the order posted", "[ordering]", rc, uc) {
  VERBENA_DEVICE_OR_SKIP(device);
  VERBENA_UC_OR_SKIP(device, TestType);
  two<TestType> on{device};
  constexpr std::uint32_t count = 16;
  std::vector<std::uint32_t> in_order;
  for (std::uint32_t i = 0; i < count; ++i) {
    REQUIRE(on.ends.there.post(vb::receive(on.inbox.subspan(i, 1)).token(i)));
    on.here[i] = 100 + i;
    in_order.push_back(i);
  }
  for (std::uint32_t i = 0; i < count; i += 2) {
    REQUIRE(
        on.ends.here.post(vb::send(on.here.subspan(i, 1)), vb::send(on.here.subspan(i + 1, 1))));
  }
  CHECK(on.take(count) == in_order);
  for (std::uint32_t i = 0; i < count; ++i) CHECK(on.inbox[i] == 100 + i);
  on.ends.here.wait(soon);
}

TEMPLATE_TEST_CASE("ordering: requests complete in the order posted", "[ordering]", rc, uc) {
  VERBENA_DEVICE_OR_SKIP(device);
  VERBENA_UC_OR_SKIP(device, TestType);
  two<TestType> on{device};
  REQUIRE(on.ends.there.post(vb::receive(on.inbox)));
  const auto to = on.writable();
  REQUIRE(on.ends.here.post(vb::write(on.here, to).token(0), vb::send(on.here.first(1)).token(1),
                            vb::write(on.here.first(1), to).token(2)));
  std::vector<std::uint32_t> tokens;
  on.ends.here.wait(soon,
                    vb::on([&](vb::completed<vb::write> done) { tokens.push_back(done.token()); },
                           [&](vb::completed<vb::send> done) { tokens.push_back(done.token()); },
                           [](const vb::failed& f) { no_failure(f); }));
  CHECK(tokens == std::vector<std::uint32_t>{0, 1, 2});
}

TEMPLATE_TEST_CASE("ordering: a completion retires what was posted before", "[ordering]", rc, uc) {
  VERBENA_DEVICE_OR_SKIP(device);
  VERBENA_UC_OR_SKIP(device, TestType);
  two<TestType> on{device};
  const auto to = on.writable();
  REQUIRE(on.ends.here.post(vb::write(on.here, to).unsignaled(),
                            vb::write(on.here, to).unsignaled(), vb::write(on.here, to)));
  std::uint32_t retired = 0;
  std::uint32_t told = 0;
  on.ends.here.wait(soon, vb::on(
                              [&](vb::completed<vb::write> done) {
                                ++told;
                                retired += done.retired();
                              },
                              [](const vb::failed& f) { no_failure(f); }));
  CHECK(told == 1);
  CHECK(retired == 3);
}

TEMPLATE_TEST_CASE("ordering: the message after a write finds its data there", "[ordering]", rc,
                   uc) {
  VERBENA_DEVICE_OR_SKIP(device);
  VERBENA_UC_OR_SKIP(device, TestType);
  two<TestType> on{device};
  const auto to = on.writable();
  for (std::uint64_t round = 1; round <= rounds; ++round) {
    std::ranges::fill(on.here.elements(), round);
    REQUIRE(on.ends.there.post(vb::receive(on.inbox)));
    REQUIRE(on.ends.here.post(vb::write(on.here, to), vb::send(on.here.first(1))));
    on.take(1);
    CHECK(all_are(on.there, round));
    on.ends.here.wait(soon);
  }
}

TEMPLATE_TEST_CASE("ordering: a write with immediate finds its data there, and that before",
                   "[ordering]", rc, uc) {
  VERBENA_DEVICE_OR_SKIP(device);
  VERBENA_UC_OR_SKIP(device, TestType);
  if (device.domain().device().is_iwarp()) VERBENA_SKIP("iWARP has no immediates");
  two<TestType> on{device};
  const auto to = on.writable();
  for (std::uint64_t round = 1; round <= rounds; ++round) {
    std::ranges::fill(on.here.elements(), round);
    REQUIRE(on.ends.there.post(vb::receive()));
    REQUIRE(on.ends.here.post(
        vb::write(on.here.first(words / 2), to),
        vb::write_with_immediate(on.here.subspan(words / 2), to.subspan(words / 2), 1)));
    on.take(1);
    CHECK(all_are(on.there, round));
    on.ends.here.wait(soon);
  }
}

TEMPLATE_TEST_CASE("FC-28 a target that a completion tells of a write sees all of it", "[ordering]",
                   rc, uc) {
  VERBENA_DEVICE_OR_SKIP(device);
  VERBENA_UC_OR_SKIP(device, TestType);
  two<TestType> on{device};
  auto answer = device.allocate<std::uint64_t, vb::sink>(1);
  constexpr std::uint64_t messages = 200;
  const bool immediates = on.ends.here.capabilities().immediates;
  REQUIRE(on.ends.there.post(vb::receive(on.inbox.first(1))));
  // It knows of the writes by its completions alone, and lets the next one overwrite what it saw.
  // What goes wrong there get() throws or counts. It asserts nothing: Catch2 is one thread's.
  auto target = std::async(std::launch::async, [&] {
    std::vector<std::uint64_t> expected(words);
    std::uint64_t torn = 0;
    for (std::uint64_t round = 1; round <= messages; ++round) {
      bool came = false;
      const auto handle = vb::on([&](vb::completed<vb::receive>) { came = true; },
                                 [](const vb::failed&) { throw std::runtime_error{"it failed"}; });
      while (!came) {
        if (!on.ends.there.completions().wait(soon, handle)) return messages;
      }
      links::fill(expected, round * words);
      if (!links::same(on.there.elements(), expected)) ++torn;
      if (!on.ends.there.post(vb::receive(on.inbox.first(1)))) return messages;
      if (!on.ends.there.post(vb::send(on.there.first(1)))) return messages;
    }
    return torn;
  });
  const auto to = on.writable();
  for (std::uint64_t round = 1; round <= messages; ++round) {
    links::fill(on.here.elements(), round * words);
    REQUIRE(on.ends.here.post(vb::receive(answer)));
    if (immediates && round % 2 == 0) {
      REQUIRE(on.ends.here.post(vb::write_with_immediate(on.here, to, 1)));
    } else {
      REQUIRE(on.ends.here.post(vb::write(on.here, to), vb::send(on.here.first(1))));
    }
    on.ends.here.wait(soon);
    REQUIRE(answer[0] == round * words);
  }
  CHECK(target.get() == 0);
}

TEMPLATE_TEST_CASE("ordering: of two writes to one place the later stays", "[ordering]", rc, uc) {
  VERBENA_DEVICE_OR_SKIP(device);
  VERBENA_UC_OR_SKIP(device, TestType);
  two<TestType> on{device};
  auto second = device.allocate<std::uint64_t, vb::source>(words);
  const auto to = on.writable();
  for (std::uint64_t round = 1; round <= rounds; ++round) {
    std::ranges::fill(on.here.elements(), 2 * round);
    std::ranges::fill(second.elements(), 2 * round + 1);
    REQUIRE(on.ends.there.post(vb::receive(on.inbox)));
    REQUIRE(on.ends.here.post(vb::write(on.here, to), vb::write(second, to),
                              vb::send(second.first(1))));
    on.take(1);
    CHECK(all_are(on.there, 2 * round + 1));
    on.ends.here.wait(soon);
  }
}

TEST_CASE("ordering: a read sees the writes before it", "[ordering]") {
  VERBENA_DEVICE_OR_SKIP(device);
  two<rc> on{device};
  auto back = device.allocate<std::uint64_t, vb::sink>(words);
  for (std::uint64_t round = 1; round <= rounds; ++round) {
    std::ranges::fill(on.here.elements(), round);
    REQUIRE(on.ends.here.post(vb::write(on.here, on.writable()), vb::read(back, on.readable())));
    on.ends.here.wait(soon);
    CHECK(all_are(back, round));
  }
}

TEST_CASE("ordering: what is fenced sends what the read before it brought", "[ordering]") {
  VERBENA_DEVICE_OR_SKIP(device);
  VERBENA_FENCED_READS_OR_SKIP(device);
  two<rc> on{device};
  for (std::uint64_t round = 1; round <= rounds; ++round) {
    std::ranges::fill(on.there.elements(), round);
    std::ranges::fill(on.here.elements(), 0);
    REQUIRE(on.ends.there.post(vb::receive(on.inbox)));
    REQUIRE(on.ends.here.post(vb::read(on.here, on.readable()), vb::send(on.here).fenced()));
    on.take(1);
    CHECK(all_are(on.inbox, round));
    on.ends.here.wait(soon);
  }
}

TEST_CASE("ordering: what is fenced sends the old value of the atomic before it", "[ordering]") {
  VERBENA_DEVICE_OR_SKIP(device);
  if (device.domain().device().is_iwarp()) VERBENA_SKIP("iWARP has no atomics");
  auto counter = device.allocate<std::uint64_t, vb::remote_atomic>(1);
  auto old = device.allocate<std::uint64_t, vb::sink>(1);
  auto inbox = device.allocate<std::uint64_t, vb::sink>(1);
  auto both = links::connect<rc>(device, {}, counter);
  const auto target = both.here.peer<std::uint64_t, vb::remote_atomic>();
  for (std::uint64_t round = 0; round < rounds; ++round) {
    old[0] = ~std::uint64_t{0};
    REQUIRE(both.there.post(vb::receive(inbox)));
    REQUIRE(both.here.post(vb::fetch_and_add(old, target, 1), vb::send(old).fenced()));
    both.here.wait(soon);
    both.there.wait(soon);
    CHECK(inbox[0] == round);
  }
}

TEST_CASE("ordering: after a failure all that was posted later is flushed", "[ordering]") {
  VERBENA_DEVICE_OR_SKIP(device);
  two<rc> on{device};
  auto stranger = device.allocate<std::uint64_t, vb::remote_writable>(8);
  const vb::remote_region<std::uint64_t, vb::rights::remote_write> wrong{
      reinterpret_cast<std::uintptr_t>(stranger.data()), 8,
      vb::rkey{static_cast<std::uint32_t>(stranger.remote_key()) ^ 0xffU}};
  const std::uint64_t before = stranger[0];
  std::ranges::fill(on.here.elements(), 7);
  REQUIRE(on.ends.here.post(vb::write(on.here.first(8), wrong).token(1),
                            vb::write(on.here, on.writable()).token(2)));
  std::vector<std::uint32_t> failed;
  std::uint32_t broken = 0;
  try {
    on.ends.here.wait(soon, vb::on([&](vb::failed f) {
                        failed.push_back(f.token());
                        if (f.breaks_connection()) broken = f.token();
                      }));
  } catch (const vb::failure&) {
  }
  // On iWARP a write completes when the stream has it; the peer's refusal ends the stream.
  if (!device.domain().device().is_iwarp()) {
    CHECK(failed == std::vector<std::uint32_t>{1, 2});
    CHECK(broken == 1);
  }
  const auto until = std::chrono::steady_clock::now() + soon;
  while (!on.ends.here.peer_gone() && broken == 0 && std::chrono::steady_clock::now() < until) {
    std::this_thread::yield();
  }
  CHECK((broken != 0 || on.ends.here.peer_gone()));
  CHECK(stranger[0] == before);
  CHECK(all_are(on.there, 0));
}

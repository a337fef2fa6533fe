// SPDX-License-Identifier: BSL-1.0
// Single words of the segment that are not as they were written. tests/fuzz/segment.cpp looks for
// what these do not think of.
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <span>
#include <string>

#include "../../conformance/fixture/end.hpp"
#include "../../conformance/fixture/work.hpp"

using namespace raw;

namespace {

std::string fabric_name() {
  static int count = 0;
  return "soft:corrupt-" + std::to_string(::getpid()) + "-" + std::to_string(count++);
}

/// A device on a fabric, as another process would have it.
struct member {
  explicit member(const std::string& fabric)
      : device{verbena::device::create(verbena::verbs::open(fabric).value()).value()}, on{device} {}
  verbena::soft::fabric& fabric() const { return *verbena::soft::context::of(on.context).fabric; }
  verbena::device device;
  bed on;
};

/// The words of an entry, one after the other wrong for the time of `check`.
template <class Entry, class Check>
void with_each_word_changed(Entry& of, Check&& check) {
  const std::span<std::uint32_t> words{reinterpret_cast<std::uint32_t*>(&of), sizeof of / 4};
  for (std::size_t at = 0; at < words.size(); ++at) {
    for (const std::uint32_t change : {1U, 0x8000'0000U}) {
      INFO("word " << at << " changed by " << change);
      std::atomic_ref word{words[at]};
      word ^= change;
      check();
      word ^= change;
    }
  }
}

bool is_zero(const std::byte* from, std::size_t length) {
  return std::all_of(from, from + length, [](std::byte each) { return each == std::byte{}; });
}

}  // namespace

TEST_CASE("soft: what does not match its seal is gone", "[soft][corrupt]") {
  const std::string fabric = fabric_name();
  const member mine{fabric};
  const member other{fabric};
  region source{mine.on, 4096};
  void* const target = other.on.calls.allocate(other.on.context, 3 * 4096);
  REQUIRE(target != nullptr);
  auto* const middle = static_cast<std::byte*>(target) + 4096;
  ibv_mr* const registered = other.on.calls.reg_mr(other.on.domain, middle, 4096, all_rights);
  REQUIRE(registered != nullptr);
  source.fill(1);
  end_options chosen;
  chosen.timeout = 1;
  chosen.retries = 0;
  const auto write = [&] {
    end here{mine.on, chosen};
    end there{other.on, chosen};
    for (end* each : {&here, &there}) each->to_init();
    here.to_rtr(there.number());
    there.to_rtr(here.number());
    for (end* each : {&here, &there}) each->to_rts();
    send_work work{1, IBV_WR_RDMA_WRITE, {source.piece()}};
    here.post(work.at(reinterpret_cast<std::uintptr_t>(middle), registered->rkey));
    return here.sends().take_one().status;
  };
  REQUIRE(write() == IBV_WC_SUCCESS);
  std::memset(target, 0, 3 * 4096);
  SECTION("a region") {
    with_each_word_changed(other.fabric().shared().regions[registered->handle],
                           [&] { CHECK(write() == IBV_WC_REM_ACCESS_ERR); });
    CHECK(is_zero(middle, 4096));
  }
  SECTION("a process") {
    auto& entry = other.fabric().shared().processes[verbena::soft::place_of(other.fabric().me())];
    ::usleep(10'000);  // it is looked at once in a millisecond
    with_each_word_changed(entry, [&] { CHECK(write() == IBV_WC_RETRY_EXC_ERR); });
  }
  // What is registered may be written first: whether its process lives is looked at afterwards.
  CHECK(is_zero(middle - 4096, 4096));
  CHECK(is_zero(middle + 4096, 4096));
  CHECK(other.on.calls.dereg_mr(registered) == 0);
  other.on.calls.release(other.on.context, target, 3 * 4096);
}

TEST_CASE("soft: what is being touched without end is not taken down", "[soft][corrupt]") {
  const member here{fabric_name()};
  region memory{here.on, 4096};
  end_options datagrams;  // which may be on their way to anybody
  datagrams.type = IBV_QPT_UD;
  end own{here.on, datagrams};
  ibv_mr* const made = here.on.calls.reg_mr(here.on.domain, memory.data(), 4096, all_rights);
  REQUIRE(made != nullptr);
  auto& entry = here.fabric().shared().queue_pairs[own.number() % verbena::soft::queue_pair_limit];
  entry.visiting = 1;
  const auto begun = clock::now();
  CHECK(here.on.calls.dereg_mr(made) == EBUSY);
  CHECK(clock::now() - begun < soon);
  CHECK(here.on.calls.destroy_qp(own.native()) == EBUSY);
  entry.visiting = 0;
  CHECK(here.on.calls.dereg_mr(made) == 0);
}

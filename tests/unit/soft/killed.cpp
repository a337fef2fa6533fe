// SPDX-License-Identifier: BSL-1.0
// needs exceptions
// A process on a fabric is stopped before any of its instructions, and killed there.
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "../../conformance/fixture/channel.hpp"
#include "../../conformance/fixture/linked.hpp"
#include "../../conformance/fixture/shared_receives.hpp"

using namespace raw;

namespace {

/// What the two processes must know of each other; shared.
struct meeting {
  std::atomic<std::uint32_t> parent_number;
  std::atomic<std::uint32_t> child_number;
  std::atomic<std::uint64_t> parent_address;
  std::atomic<std::uint32_t> parent_key;
  std::atomic<std::uint64_t> mapped_address;  ///< for atomics, which need memory both map
  std::atomic<std::uint32_t> mapped_key;
};

/// A process of which each part of its work can be run, or run so many instructions far.
class victim {
 public:
  /// `work` is done under trace, part by part; it calls its argument between them.
  template <class Work>
  explicit victim(Work&& work) : process_{::fork()} {
    if (process_ == 0) {
      if (::ptrace(PTRACE_TRACEME, 0, nullptr, nullptr) != 0) ::_exit(77);
      try {
        work([] { ::raise(SIGSTOP); });
      } catch (...) {
        ::_exit(2);
      }
      ::_exit(0);
    }
    alive_ = stopped();
  }
  ~victim() { kill(); }
  victim(const victim&) = delete;
  victim& operator=(const victim&) = delete;

  bool alive() const { return alive_; }
  int exit_status() const { return status_; }

  /// To the end of the part it is in.
  void finish_part() {
    ::ptrace(PTRACE_CONT, process_, nullptr, nullptr);
    alive_ = stopped();
  }
  /// At most `count` instructions; how many it was until the end of the part.
  std::uint64_t step(std::uint64_t count) {
    for (std::uint64_t done = 0; done < count; ++done) {
      if (::ptrace(PTRACE_SINGLESTEP, process_, nullptr, nullptr) != 0) return done;
      alive_ = stopped();
      if (!alive_ || WSTOPSIG(status_) == SIGSTOP) return done;
    }
    return count;
  }
  void run_for(std::chrono::nanoseconds time) {
    ::ptrace(PTRACE_CONT, process_, nullptr, nullptr);
    const auto until = clock::now() + time;
    while (clock::now() < until) {
    }
  }
  void kill() {
    if (process_ <= 0) return;
    ::kill(process_, SIGKILL);
    while (::waitpid(process_, &status_, 0) == process_ && !WIFSIGNALED(status_) &&
           !WIFEXITED(status_)) {
    }
    process_ = -1;
    alive_ = false;
  }

 private:
  bool stopped() {
    if (::waitpid(process_, &status_, 0) != process_) return false;
    if (WIFSTOPPED(status_)) return true;
    process_ = -1;
    return false;
  }
  pid_t process_;
  int status_ = 0;
  bool alive_ = false;
};

verbena::device open_on(const std::string& fabric) {
  return verbena::device::create(verbena::verbs::open(fabric).value()).value();
}

constexpr std::uint64_t from_shared = 1'000'000;
constexpr std::uint64_t longest = 10'000;  // instructions

/// The parts of the victim's work. It uses no test macros: it is another process.
enum part : std::size_t {
  posting_receives,
  sending,
  sending_with_immediate,
  writing,
  writing_with_immediate,
  reading,
  adding,
  polling,
  arming,
  registering,
  allocating,
  making_a_queue,
  leaving_and_joining,
  failing,
  destroying,
  part_count
};

void be_a_victim(const std::string& fabric, meeting& with, const std::function<void()>& next) {
  verbena::device device = open_on(fabric);
  const bed on{device};
  {
    channel wakes{on};
    queue completions{on, 64, wakes.native()};
    end_options chosen;
    chosen.send_queue = chosen.receive_queue = completions.native();
    chosen.timeout = 8;
    chosen.retries = 1;
    end mine{on, chosen};
    region memory{on, 4096};
    const auto receive = [&](std::uint64_t id) {
      mine.try_post(*std::make_unique<receive_work>(
          id, std::vector<ibv_sge>{memory.piece(0, 64), memory.piece(64, 64)}));
    };
    const auto ask = [&](ibv_wr_opcode what, std::uint64_t id, unsigned flags) {
      send_work work{id, what, {memory.piece(128, what == IBV_WR_SEND ? 100 : 8)}, flags};
      if (what == IBV_WR_ATOMIC_FETCH_AND_ADD)
        work.atomic(with.mapped_address, with.mapped_key, 1);
      else
        work.at(with.parent_address, with.parent_key);
      mine.try_post(work);
    };
    mine.to_init();
    for (std::uint64_t id = 1; id <= 4; ++id) receive(id);
    mine.to_rtr(with.parent_number);
    mine.to_rts();
    with.child_number = mine.number();
    std::array<ibv_wc, 16> found{};
    for (std::size_t at = 0; at < part_count; ++at) {
      next();
      switch (at) {
        case posting_receives: receive(5); break;
        case sending:
          ask(IBV_WR_SEND, 10, 0);
          ask(IBV_WR_SEND, 11, IBV_SEND_SIGNALED);
          break;
        case sending_with_immediate:
          ask(IBV_WR_SEND_WITH_IMM, 12, IBV_SEND_SIGNALED | IBV_SEND_SOLICITED);
          break;
        case writing: ask(IBV_WR_RDMA_WRITE, 13, IBV_SEND_SIGNALED); break;
        case writing_with_immediate: ask(IBV_WR_RDMA_WRITE_WITH_IMM, 14, IBV_SEND_SIGNALED); break;
        case reading: ask(IBV_WR_RDMA_READ, 15, IBV_SEND_SIGNALED); break;
        case adding: ask(IBV_WR_ATOMIC_FETCH_AND_ADD, 16, IBV_SEND_SIGNALED); break;
        case polling: ibv_poll_cq(completions.native(), 16, found.data()); break;
        case arming: {
          ibv_req_notify_cq(completions.native(), 0);
          ask(IBV_WR_RDMA_WRITE, 17, IBV_SEND_SIGNALED);
          ibv_cq* given = nullptr;
          void* own = nullptr;
          if (on.calls.get_cq_event(wakes.native(), &given, &own) == 0)
            on.calls.ack_cq_events(given, 1);
          break;
        }
        case registering:
          on.calls.dereg_mr(on.calls.reg_mr(on.domain, memory.data(), 4096, all_rights));
          break;
        case allocating:
          if (void* more = on.calls.allocate(on.context, 8192); more != nullptr)
            on.calls.release(on.context, more, 8192);
          break;
        case making_a_queue:
          on.calls.destroy_cq(on.calls.create_cq(on.context, 16, nullptr, nullptr, 0));
          break;
        case leaving_and_joining: (void)open_on(fabric); break;
        case failing: mine.modify(IBV_QPS_ERR); break;
        case destroying: mine.destroy(); break;
        default: break;
      }
    }
    next();
    ::_exit(0);
  }
}

/// How many entries of all tables have an owner, and how many files of shared memory there are.
std::pair<std::size_t, std::size_t> in_use(const verbena::soft::fabric& on) {
  std::size_t entries = 0;
  const auto count = [&](const auto& table) {
    for (const auto& each : table) entries += each.owner.load() != 0 ? 1U : 0U;
  };
  const verbena::soft::segment& all = on.shared();
  count(all.processes);
  count(all.arenas);
  count(all.regions);
  count(all.completion_queues);
  count(all.receive_queues);
  count(all.queue_pairs);
  std::size_t files = 0;
  for (const auto& each : std::filesystem::directory_iterator{"/dev/shm"})
    files += each.path().string().starts_with(on.path()) ? 1U : 0U;
  return {entries, files};
}

}  // namespace

TEST_CASE("soft: a process killed at any instruction takes nothing with it", "[soft][killed]") {
  const char* const asked = std::getenv("VERBENA_KILLS");
  const int rounds = asked == nullptr ? 150 : std::atoi(asked);
  const unsigned seed = std::random_device{}();
  INFO("seed " << seed);
  std::mt19937 random{seed};

  // On one processor the other process is stepped without waiting for a scheduler.
  cpu_set_t before;
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(static_cast<std::size_t>(::sched_getcpu()), &one);
  REQUIRE(::sched_getaffinity(0, sizeof before, &before) == 0);
  REQUIRE(::sched_setaffinity(0, sizeof one, &one) == 0);

  const std::string fabric = "soft:killed-" + std::to_string(::getpid());
  verbena::device device = open_on(fabric);
  const bed on{device};
  auto* const met = static_cast<meeting*>(
      ::mmap(nullptr, sizeof(meeting), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
  REQUIRE(met != MAP_FAILED);

  channel wakes{on};
  queue completions{on, 256, wakes.native()};
  shared_receives shared{on};
  region memory{on, 4096};
  void* const mapped = on.calls.allocate(on.context, 4096);
  REQUIRE(mapped != nullptr);
  ibv_mr* const mapped_region = on.calls.reg_mr(on.domain, mapped, 4096, all_rights);
  REQUIRE(mapped_region != nullptr);
  end_options both;
  both.send_queue = both.receive_queue = completions.native();
  linked bystanders{on, both};

  std::set<std::uint64_t> outstanding;
  std::uint64_t last_id = 0;
  const auto fresh = [&](std::uint64_t base) {
    const std::uint64_t id = base + ++last_id;
    outstanding.insert(id);
    return id;
  };
  // Each request completes once, whoever dies.
  const auto note = [&](const ibv_wc& found) {
    INFO(text(found));
    REQUIRE(outstanding.erase(found.wr_id) == 1);
  };
  const auto keep_shared_full = [&] {
    std::size_t there = 0;
    for (const std::uint64_t id : outstanding) there += id >= from_shared ? 1U : 0U;
    for (; there < 8; ++there)
      shared.post(receive_work{fresh(from_shared), {memory.piece(1024, 128)}});
  };
  const auto until = [&](const std::function<bool(const ibv_wc&)>& last, bool asleep) {
    const auto deadline = clock::now() + soon;
    while (clock::now() < deadline) {
      if (asleep) completions.arm();
      bool done = false;
      for (const ibv_wc& each : completions.poll()) {
        note(each);
        done = last(each) || done;
      }
      if (done) return true;
      if (asleep) {
        pollfd look{wakes.native()->fd, POLLIN, 0};
        REQUIRE(::poll(&look, 1, 5000) == 1);
        wakes.take(std::chrono::nanoseconds{0});
      }
    }
    return false;
  };

  std::vector<std::uint64_t> lengths(part_count, 0);
  std::optional<std::pair<std::size_t, std::size_t>> left;
  for (int round = 0; round < rounds; ++round) {
    const bool is_shared = random() % 2 == 0;
    const bool asleep = random() % 2 == 0;
    const std::size_t where = static_cast<std::size_t>(random() % part_count);
    keep_shared_full();
    end_options chosen = both;
    chosen.timeout = 8;  // 1 ms
    chosen.retries = 1;
    chosen.not_ready_retries = 1;
    chosen.not_ready_timer = 1;
    if (is_shared) chosen.shared_receives = shared.native();
    end mine{on, chosen};
    mine.to_init();
    if (!is_shared) {
      for (int i = 0; i < 8; ++i) mine.post(receive_work{fresh(0), {memory.piece(0, 128)}});
    }
    const bool direct = random() % 2 == 0;  // shared memory, or the program's own
    met->parent_number = mine.number();
    met->child_number = 0;
    met->parent_address = direct ? reinterpret_cast<std::uintptr_t>(mapped) : memory.address(2048);
    met->parent_key = direct ? mapped_region->rkey : memory.rkey();
    met->mapped_address = reinterpret_cast<std::uintptr_t>(mapped);
    met->mapped_key = mapped_region->rkey;
    std::uint64_t instructions = 0;
    {
      victim child{[&](const std::function<void()>& next) { be_a_victim(fabric, *met, next); }};
      if (!child.alive() && WEXITSTATUS(child.exit_status()) == 77) {
        WARN("this system forbids ptrace");
        return;
      }
      REQUIRE(child.alive());
      mine.to_rtr(met->child_number);
      mine.to_rts();
      mine.post(send_work{fresh(0), IBV_WR_SEND, {memory.piece(0, 100)}});
      for (std::size_t at = 0; at < where; ++at) child.finish_part();
      REQUIRE(child.alive());
      if (lengths[where] == 0) {
        lengths[where] = child.step(longest);
      } else if (lengths[where] == longest) {  // too long to be stepped
        instructions = random() % 1000;
        child.run_for(std::chrono::microseconds{instructions});
      } else {
        instructions = random() % lengths[where];
        child.step(instructions);
      }
    }
    INFO("round " << round << ", part " << where << ", instruction " << instructions << " of "
                  << lengths[where] << (is_shared ? ", shared receives" : "")
                  << (direct ? ", shared memory" : "") << (asleep ? ", asleep" : ""));
    // What is sent within a millisecond of the death may still be taken for received.
    const auto begun = clock::now();
    ibv_wc_status told = IBV_WC_SUCCESS;
    while (told == IBV_WC_SUCCESS && clock::now() - begun < soon) {
      const std::uint64_t id = fresh(0);
      mine.post(send_work{id, IBV_WR_SEND, {memory.piece(0, 8)}});
      REQUIRE(until(
          [&](const ibv_wc& found) {
            if (found.wr_id == id) told = found.status;
            return found.wr_id == id;
          },
          asleep));
    }
    CHECK(told == IBV_WC_RETRY_EXC_ERR);
    CHECK(mine.state() == IBV_QPS_ERR);
    // Everything else of this queue pair has completed by now, and nobody else has been hurt.
    const std::uint64_t to = fresh(0);
    bystanders.there.post(receive_work{fresh(0), {memory.piece(512, 64)}});
    bystanders.here.post(send_work{to, IBV_WR_SEND, {memory.piece(0, 33)}});
    REQUIRE(until([&](const ibv_wc& found) { return found.wr_id == to; }, asleep));
    const auto own_are_done = [&] {
      return outstanding.empty() || *outstanding.begin() >= from_shared;
    };
    REQUIRE((own_are_done() || until([&](const ibv_wc&) { return own_are_done(); }, asleep)));
    mine.destroy();
    // Who joins takes back what the dead have left.
    if (round % 25 == 24) {
      (void)open_on(fabric);
      const auto now = in_use(*verbena::soft::context::of(on.context).fabric);
      if (!left) left = now;
      CHECK(now == *left);
    }
  }
  // None of the shared receives has been lost, nor given twice.
  keep_shared_full();
  end_options chosen = both;
  chosen.shared_receives = shared.native();
  linked last{on, both, chosen};
  while (!outstanding.empty()) {
    const std::uint64_t id = fresh(0);
    last.here.post(send_work{id, IBV_WR_SEND, {memory.piece(0, 8)}});
    REQUIRE(until([&](const ibv_wc& found) { return found.wr_id == id; }, false));
  }
  CHECK(completions.stays_empty());
  CHECK(on.calls.dereg_mr(mapped_region) == 0);
  on.calls.release(on.context, mapped, 4096);
  ::munmap(met, sizeof(meeting));
  ::sched_setaffinity(0, sizeof before, &before);
}

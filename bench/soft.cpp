// SPDX-License-Identifier: BSL-1.0
//
// What the software device costs between two processes on two cores, beside what it can not beat:
// a cache line that goes to and fro, and memcpy. The kinds take turns in short blocks, and each
// gives the median of its blocks: what else runs on the machine disturbs few of them, and all kinds
// alike. Prints "KIND NANOSECONDS" for each; bench/soft.sh makes ratios of them.
#include <sched.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <exception>
#include <new>
#include <span>
#include <stdexcept>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include <verbena/soft.hpp>
#include <verbena/verbena.hpp>

namespace vb = verbena;

namespace {

using clock_type = std::chrono::steady_clock;
using connection = vb::connection<vb::signaling::per_operation>;
using endpoint = vb::endpoint<vb::signaling::per_operation>;

constexpr std::size_t receives = 32;
constexpr std::size_t message_stride = 64;  // bytes: each message in a cache line of its own
constexpr std::size_t bulk_size = std::size_t{1} << 20;
constexpr int warm_up = 20;
constexpr auto patience = std::chrono::seconds{60};

struct alignas(128) cache_line {
  std::atomic<std::uint64_t> word{0};
};
/// What the bare ping-pong uses: one line for each direction.
struct table {
  cache_line ping;
  cache_line pong;
};

[[noreturn]] void fail_with_errno(const char* what) {
  throw std::system_error{errno, std::generic_category(), what};
}

/// Ends a wait that has become hopeless; costs nothing while it is short.
class limit {
 public:
  void look() {
    if (++spins_ % (1U << 22) != 0) return;
    const auto now = clock_type::now();
    if (spins_ == 1U << 22) end_ = now + patience;
    if (now > end_) throw std::runtime_error{"the other process does not answer"};
  }

 private:
  std::uint64_t spins_ = 0;
  clock_type::time_point end_{};
};

/// The way the two processes agree on what is not measured.
class wire {
 public:
  explicit wire(int descriptor) noexcept : descriptor_{descriptor} {}
  void send(std::span<const std::byte> bytes) const {
    if (::send(descriptor_, bytes.data(), bytes.size(), MSG_NOSIGNAL) !=
        static_cast<ssize_t>(bytes.size()))
      fail_with_errno("telling the other process");
  }
  void receive(std::span<std::byte> bytes) const {
    const ssize_t length = ::recv(descriptor_, bytes.data(), bytes.size(), MSG_WAITALL);
    if (length < 0) fail_with_errno("hearing the other process");
    if (length != static_cast<ssize_t>(bytes.size()))
      throw std::runtime_error{"the other process ended early"};
  }
  /// Returns when both have called it.
  void agree() const {
    std::array<std::byte, 1> nothing{};
    send(nothing);
    receive(nothing);
  }

 private:
  int descriptor_;
};

void pin_to(std::size_t core) {
  cpu_set_t only;
  CPU_ZERO(&only);
  CPU_SET(core, &only);
  if (::sched_setaffinity(0, sizeof only, &only) != 0) fail_with_errno("pinning to a core");
}

/// The first two cores this process may run on.
std::pair<std::size_t, std::size_t> two_cores() {
  cpu_set_t allowed;
  if (::sched_getaffinity(0, sizeof allowed, &allowed) != 0) fail_with_errno("asking for cores");
  std::vector<std::size_t> found;
  for (std::size_t core = 0; core < CPU_SETSIZE && found.size() < 2; ++core) {
    if (CPU_ISSET(core, &allowed)) found.push_back(core);
  }
  if (found.size() < 2) throw std::runtime_error{"two cores are needed"};
  return {found[0], found[1]};
}

double median(std::vector<double>& of) {
  const auto middle = of.begin() + static_cast<std::ptrdiff_t>(of.size() / 2);
  std::nth_element(of.begin(), middle, of.end());
  return *middle;
}

void require(vb::posted result) {
  if (!result) throw std::system_error{result.error(), "a post"};
}

using target = vb::remote_region<std::uint64_t, vb::rights::remote_write>;

/// One end of the connection, with the memory that the small messages use.
class side {
 public:
  explicit side(const vb::device& device)
      : inbox_{device.allocate<std::uint64_t, vb::remote_writable>(8)},
        messages_{device.allocate<vb::sink>(receives * message_stride)},
        out_{device.allocate<std::uint64_t, vb::source>(8)} {}

  auto message(std::size_t place) const {
    return messages_.subspan(place * message_stride, message_stride);
  }

  /// Connects; `opened` is described to the peer after the inbox.
  template <class... Regions>
  connection connect(const vb::device& device, const wire& peer, const Regions&... opened) {
    endpoint here{device};
    const vb::descriptor_bytes mine = here.describe(inbox_, opened...);
    peer.send(mine);
    vb::descriptor_bytes theirs;
    peer.receive(theirs);
    for (std::size_t i = 0; i < receives; ++i) require(here.post(vb::receive(message(i))));
    connection link = std::move(here).connect(theirs);
    peer.agree();
    return link;
  }

  void write(connection& link, const target& to, std::uint64_t value) {
    out_[0] = value;
    require(link.post(vb::write(out_.first(1), to).unsignaled()));
    if (value % receives == 0) poll(link);  // after half a queue one is signaled all the same
  }
  void await_written(std::uint64_t value) const {
    limit bound;
    while (std::atomic_ref{inbox_[0]}.load(std::memory_order_acquire) != value) bound.look();
  }

  void send(connection& link, std::uint64_t value) {
    out_[0] = value;
    require(link.post(vb::send(out_.first(1)).unsignaled()));
    for (; reposted_ != received_; ++reposted_) {
      require(link.post(vb::receive(message(reposted_ % receives))));
    }
  }
  void await_message(connection& link, std::uint64_t value) {
    limit bound;
    // It may have come already, with what was polled after a write.
    ++awaited_;
    while (received_ != awaited_) {
      poll(link);
      bound.look();
    }
    if (last_ != value) throw std::runtime_error{"a message has come out of order, or damaged"};
  }

  /// Writes a whole region and waits for the completion.
  template <class From, class To>
  void write_all(connection& link, const From& from, const To& to) {
    const std::uint64_t wanted = writes_ + 1;
    require(link.post(vb::write(from, to)));
    limit bound;
    while (writes_ != wanted) {
      poll(link);
      bound.look();
    }
  }

  void poll(connection& link) {
    (void)link.completions().poll(vb::on(
        [&](vb::completed<vb::receive> done) {
          std::memcpy(&last_, done.bytes().data(), sizeof last_);
          ++received_;
        },
        [&](vb::completed<vb::write>) { ++writes_; },
        [](vb::failed request) { throw std::runtime_error{vb::explain(request)}; }));
  }

 private:
  vb::buffer<std::uint64_t, vb::grants_of<vb::remote_writable>> inbox_;
  vb::buffer<std::byte, vb::grants_of<vb::sink>> messages_;
  vb::buffer<std::uint64_t, vb::grants_of<vb::source>> out_;
  std::uint64_t received_ = 0;
  std::uint64_t awaited_ = 0;
  std::uint64_t reposted_ = 0;
  std::uint64_t writes_ = 0;
  std::uint64_t last_ = 0;
};

struct plan {
  int blocks = 4000;
  int exchanges = 10;  // in a block
  int bulk = 200;
};

/// The three kinds of 8 bytes to and fro. `first` begins, and measures; the other answers.
void exchange(const plan& what, bool first, table& shared, side& here, connection& link) {
  const target to = link.peer<std::uint64_t>();
  std::uint64_t value = 0;
  cache_line& mine = first ? shared.ping : shared.pong;
  cache_line& theirs = first ? shared.pong : shared.ping;
  const auto bare = [&](bool sends) {
    if (sends) {
      mine.word.store(value, std::memory_order_release);
    } else {
      limit bound;
      while (theirs.word.load(std::memory_order_acquire) != value) bound.look();
    }
  };
  const auto written = [&](bool sends) {
    sends ? here.write(link, to, value) : here.await_written(value);
  };
  const auto sent = [&](bool sends) {
    sends ? here.send(link, value) : here.await_message(link, value);
  };
  std::array<std::vector<double>, 3> half_rounds;
  const auto block = [&](std::vector<double>& into, const auto& step) {
    const auto start = clock_type::now();
    for (int i = 0; i < what.exchanges; ++i) {
      ++value;
      step(first);
      step(!first);
    }
    const std::chrono::duration<double, std::nano> took = clock_type::now() - start;
    into.push_back(took.count() / (2 * what.exchanges));
  };
  for (int i = -warm_up; i < what.blocks; ++i) {
    if (i == 0) half_rounds = {};
    block(half_rounds[0], bare);
    block(half_rounds[1], written);
    block(half_rounds[2], sent);
  }
  if (!first) return;
  constexpr std::array names{"bare", "write", "send"};
  for (std::size_t i = 0; i < names.size(); ++i)
    std::printf("%s %.1f\n", names[i], median(half_rounds[i]));
}

/// Writes into the peer's memory and copies into the same: `mapped` is where this process has it.
void bulk(const plan& what, const vb::device& device, side& here, connection& link,
          std::byte* mapped) {
  const auto from = device.allocate<vb::source>(bulk_size);
  const auto to = link.peer<std::byte>(1);
  std::vector<double> copies;
  std::vector<double> writes;
  for (int i = -warm_up; i < what.bulk; ++i) {
    std::memset(from.data(), i, 64);
    const auto start = clock_type::now();
    std::memcpy(mapped, from.data(), bulk_size);
    // The copy takes place, though nothing reads it.
    asm volatile("" : : "r"(mapped) : "memory");
    const auto middle = clock_type::now();
    here.write_all(link, from, to);
    const auto end = clock_type::now();
    if (std::memcmp(mapped, from.data(), bulk_size) != 0)
      throw std::runtime_error{"a write has not arrived, or is damaged"};
    std::memset(mapped, ~i, 64);
    if (i < 0) continue;
    copies.push_back(std::chrono::duration<double, std::nano>{middle - start}.count());
    writes.push_back(std::chrono::duration<double, std::nano>{end - middle}.count());
  }
  std::printf("memcpy %.0f\nwrite_bulk %.0f\n", median(copies), median(writes));
}

/// The child: answers, then measures copies. Its device is its own; of the parent's it has but the
/// mapping of `inherited`, which fork keeps.
int answer(const plan& what, const std::string& fabric, const wire& peer, table& shared,
           std::size_t core, std::byte* inherited) try {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);  // nobody else would end it
  pin_to(core);
  {
    const vb::device device = vb::open_device(fabric);
    side here{device};
    connection link = here.connect(device, peer);
    exchange(what, false, shared, here, link);
    peer.agree();
    bulk(what, device, here, link, inherited);
    peer.agree();
  }
  std::fflush(stdout);
  return 0;
} catch (const std::exception& problem) {
  std::fprintf(stderr, "bench_soft, second process: %s\n", problem.what());
  return 1;
}

int measure(const plan& what) {
  const auto [first_core, second_core] = two_cores();
  const std::string fabric = "soft:bench-" + std::to_string(::getpid());
  void* const page =
      ::mmap(nullptr, sizeof(table), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (page == MAP_FAILED) fail_with_errno("sharing a page");
  table& shared = *new (page) table;
  std::array<int, 2> ends{};
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) != 0)
    fail_with_errno("making a pair of sockets");
  const vb::device device = vb::open_device(fabric);
  const auto sink = device.allocate<vb::remote_writable>(bulk_size);
  const pid_t child = ::fork();
  if (child < 0) fail_with_errno("fork");
  if (child == 0) {
    ::close(ends[0]);
    ::_exit(answer(what, fabric, wire{ends[1]}, shared, second_core, sink.data()));
  }
  ::close(ends[1]);
  pin_to(first_core);
  const wire peer{ends[0]};
  {
    side here{device};
    connection link = here.connect(device, peer, sink);
    exchange(what, true, shared, here, link);
    std::fflush(stdout);
    peer.agree();
    peer.agree();
  }
  int status = 0;
  if (::waitpid(child, &status, 0) != child) fail_with_errno("waiting for the second process");
  return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}

}  // namespace

int main(int count, char**) try {
  if (count > 1) {
    std::fputs("Usage: bench_soft\nbench/soft.sh runs it beside UCX and libfabric.\n", stderr);
    return 2;
  }
  return measure({});
} catch (const std::exception& problem) {
  std::fprintf(stderr, "bench_soft: %s\n", problem.what());
  return 1;
}

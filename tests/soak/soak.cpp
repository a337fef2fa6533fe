// SPDX-License-Identifier: BSL-1.0
// Mixed operations between two processes (or two threads) on the software device, in both
// directions at once: none is lost, none is done twice, none comes out of order.
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>
#include <string>
#include <string_view>
#include <thread>

#include <verbena/soft.hpp>
#include <verbena/verbena.hpp>

namespace {

using clock_type = std::chrono::steady_clock;

constexpr std::uint32_t depth = 128;  // of each queue
constexpr std::uint64_t slots = 256;  // of the inbox; more than the receives a peer can find
constexpr std::size_t slot_size = 512;

[[noreturn]] void fail(const char* who, const std::string& what) {
  std::fprintf(stderr, "soak: %s: %s\n", who, what.c_str());
  std::_Exit(1);
}

/// What lies in the memory of each end that the other may touch.
struct exposed {
  std::array<std::array<std::byte, slot_size>, slots> inbox;
  std::array<std::byte, slot_size> pattern;
  alignas(64) std::uint64_t written;  // by plain writes: how many there were
  alignas(64) std::uint64_t added;    // by fetch and add: 3 for each
  alignas(64) std::uint64_t swapped;  // by compare and swap: 1 for each
};

/// What only its owner and its own requests touch.
struct own {
  std::array<std::array<std::byte, slot_size>, depth> received;
  std::array<std::array<std::byte, slot_size>, depth> out;
  std::array<std::uint64_t, depth> results;
};

/// What the ends tell each other beside the fabric.
struct notice {
  std::atomic<std::uint32_t> number;
  std::atomic<std::uint64_t> address;
  std::atomic<std::uint32_t> key;
  std::atomic<bool> ready;
  std::atomic<std::uint64_t> done;      // operations that have completed
  std::atomic<std::uint64_t> messages;  // those that take a receive; final once `sent` is set
  std::atomic<std::uint64_t> writes;
  std::atomic<bool> sent;
  std::atomic<bool> finished;
};

std::byte letter(std::uint64_t sequence, std::size_t at) {
  return std::byte(static_cast<unsigned char>(sequence * 31 + at * 7 + (sequence >> 8)));
}

class endpoint {
 public:
  endpoint(const char* name, const verbena::device& device, notice& mine, notice& theirs,
           unsigned seed)
      : name_{name},
        calls_{device.domain().device().table()},
        context_{device.native_handle()},
        domain_{device.domain().native_handle()},
        mine_{mine},
        theirs_{theirs},
        random_{seed} {
    require(channel_ = calls_.create_comp_channel(context_), "channel");
    require(completions_ = calls_.create_cq(context_, 2 * depth, nullptr, channel_, 0), "queue");
    ibv_qp_init_attr asked{};
    asked.qp_type = IBV_QPT_RC;
    asked.send_cq = asked.recv_cq = completions_;
    asked.cap = {depth, depth, 4, 4, 64};
    require(pair_ = calls_.create_qp(domain_, &asked), "queue pair");
    const auto share = [&](auto*& into, ibv_mr*& region) {
      using type = std::remove_reference_t<decltype(*into)>;
      void* const memory = calls_.allocate(context_, (sizeof(type) + 4095) / 4096 * 4096);
      require(memory, "memory");
      into = static_cast<type*>(memory);
      region = calls_.reg_mr(domain_, memory, sizeof(type),
                             IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ |
                                 IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC);
      require(region, "region");
    };
    share(exposed_, exposed_region_);
    share(own_, own_region_);
    for (std::size_t i = 0; i < slot_size; ++i) exposed_->pattern[i] = letter(77, i);
    mine_.number = pair_->qp_num;
    mine_.address = reinterpret_cast<std::uintptr_t>(exposed_);
    mine_.key = exposed_region_->rkey;
    mine_.ready = true;
  }

  void run(std::uint64_t operations) {
    connect();
    std::uint64_t posted_before = 0;
    std::uint64_t taken_before = 0;
    auto moved = clock_type::now();
    unsigned idle = 0;
    while (!finished(operations)) {
      bool busy = false;
      while (posted_ < operations && posted_ - retired_ < depth && post(posted_ + 1 == operations))
        busy = true;
      if (posted_ == operations && !mine_.sent) {
        mine_.messages = messages_;
        mine_.writes = writes_;
        mine_.sent = true;
      }
      busy = take() || busy;
      mine_.done.store(retired_, std::memory_order_relaxed);
      if (busy) {
        idle = 0;
      } else if (++idle % 64 == 0) {
        random_() % 8 == 0 ? sleep() : std::this_thread::yield();
      }
      if (posted_ != posted_before || taken_ != taken_before) {
        posted_before = posted_;
        taken_before = taken_;
        moved = clock_type::now();
      } else if (clock_type::now() - moved > std::chrono::seconds{60}) {
        fail(name_, "nothing has moved for a minute: posted " + std::to_string(posted_) +
                        ", retired " + std::to_string(retired_) + ", messages got " +
                        std::to_string(got_));
      }
    }
    check_words();
    mine_.finished = true;
  }

  /// When the other end no longer touches this one's memory.
  void dismantle() {
    while (!theirs_.finished) std::this_thread::sleep_for(std::chrono::milliseconds{1});
    ibv_wc extra{};
    if (ibv_poll_cq(completions_, 1, &extra) != 0) fail(name_, "a completion too many");
    const auto done = [&](int number, const char* what) {
      if (number != 0) fail(name_, std::string{what} + ": " + std::strerror(number));
    };
    done(calls_.destroy_qp(pair_), "destroying the queue pair");
    done(calls_.destroy_cq(completions_), "destroying the queue");
    done(calls_.destroy_comp_channel(channel_), "destroying the channel");
    done(calls_.dereg_mr(exposed_region_), "deregistering");
    done(calls_.dereg_mr(own_region_), "deregistering");
    calls_.release(context_, exposed_, sizeof(exposed));
    calls_.release(context_, own_, sizeof(own));
  }

 private:
  void require(const void* made, const char* what) const {
    if (made == nullptr) fail(name_, std::string{what} + ": " + std::strerror(errno));
  }

  void connect() {
    while (!theirs_.ready) std::this_thread::sleep_for(std::chrono::milliseconds{1});
    ibv_qp_attr with{};
    const auto modify = [&](int mask) {
      if (const int number = calls_.modify_qp(pair_, &with, mask | IBV_QP_STATE); number != 0)
        fail(name_, std::string{"modifying the queue pair: "} + std::strerror(number));
    };
    with.qp_state = IBV_QPS_INIT;
    with.port_num = 1;
    with.qp_access_flags =
        IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC;
    modify(IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
    for (std::uint32_t i = 0; i < depth; ++i) repost(i);
    with.qp_state = IBV_QPS_RTR;
    with.path_mtu = IBV_MTU_1024;
    with.dest_qp_num = theirs_.number;
    with.max_dest_rd_atomic = 8;
    with.min_rnr_timer = 1;
    with.ah_attr.is_global = 1;
    with.ah_attr.port_num = 1;
    ibv_gid_entry entry{};
    if (calls_.query_gid(context_, 1, 3, &entry) != 0) fail(name_, "no GID");
    with.ah_attr.grh.dgid = entry.gid;
    with.ah_attr.grh.sgid_index = 3;
    modify(IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
           IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER);
    with.qp_state = IBV_QPS_RTS;
    with.max_rd_atomic = 8;
    with.retry_cnt = 7;
    with.rnr_retry = 7;
    with.timeout = 17;
    modify(IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
           IBV_QP_TIMEOUT);
  }

  void repost(std::uint64_t which) {
    // In two pieces, so that messages end in either.
    std::array<std::byte, slot_size>& buffer = own_->received[which];
    std::array<ibv_sge, 2> pieces{piece(buffer.data(), 100), piece(&buffer[100], slot_size - 100)};
    ibv_recv_wr work{};
    work.wr_id = receive_mark | which;
    work.sg_list = pieces.data();
    work.num_sge = 2;
    ibv_recv_wr* bad = nullptr;
    if (ibv_post_recv(pair_, &work, &bad) != 0) fail(name_, "a receive was refused");
  }

  ibv_sge piece(const void* at, std::size_t length) const {
    return {reinterpret_cast<std::uintptr_t>(at), static_cast<std::uint32_t>(length),
            own_region_->lkey};
  }
  template <class T>
  std::uint64_t there(const T& at) const {
    return theirs_.address +
           static_cast<std::uint64_t>(reinterpret_cast<const std::byte*>(&at) -
                                      reinterpret_cast<const std::byte*>(exposed_));
  }

  /// Posts one operation at random.
  bool post(bool last) {
    const std::uint64_t place = posted_ % depth;
    std::array<std::byte, slot_size>& out = own_->out[place];
    ibv_send_wr work{};
    std::array<ibv_sge, 2> pieces{};
    work.wr_id = posted_;
    work.sg_list = pieces.data();
    work.num_sge = 1;
    // A tail without completion would never be known to be done.
    const bool signaled = last || unsignaled_ >= 15 || random_() % 2 == 0;
    work.send_flags = signaled ? unsigned{IBV_SEND_SIGNALED} : 0U;
    unsignaled_ = signaled ? 0 : unsignaled_ + 1;
    kind what = static_cast<kind>(random_() % kinds);
    kinds_[place] = what;
    const auto fill = [&](std::uint64_t sequence, std::size_t least) {
      const std::size_t length = least + random_() % (slot_size - least);
      std::memcpy(out.data(), &sequence, sizeof sequence);
      for (std::size_t i = sizeof sequence; i < length; ++i) out[i] = letter(sequence, i);
      const std::size_t first = length / 3;
      pieces = {piece(out.data(), first), piece(&out[first], length - first)};
      work.num_sge = 2;
      if (length <= 64 && random_() % 2 == 0) work.send_flags |= IBV_SEND_INLINE;
      if (random_() % 4 == 0) work.send_flags |= IBV_SEND_SOLICITED;
      if (random_() % 16 == 0) work.send_flags |= IBV_SEND_FENCE;
    };
    switch (what) {
      case kind::send:
      case kind::send_with_immediate:
        fill(messages_, sizeof(std::uint64_t));
        work.opcode = what == kind::send ? IBV_WR_SEND : IBV_WR_SEND_WITH_IMM;
        work.imm_data = static_cast<std::uint32_t>(messages_++);
        break;
      case kind::empty:
        work.opcode = IBV_WR_SEND_WITH_IMM;
        work.num_sge = 0;
        work.imm_data = static_cast<std::uint32_t>(messages_++);
        break;
      case kind::write_with_immediate:
        fill(messages_, sizeof(std::uint64_t));
        work.opcode = IBV_WR_RDMA_WRITE_WITH_IMM;
        work.wr.rdma = {there(exposed_->inbox[messages_ % slots]), theirs_.key};
        work.imm_data = static_cast<std::uint32_t>(messages_++);
        break;
      case kind::write:
        ++writes_;
        std::memcpy(out.data(), &writes_, sizeof writes_);
        pieces[0] = piece(out.data(), sizeof writes_);
        work.opcode = IBV_WR_RDMA_WRITE;
        work.wr.rdma = {there(exposed_->written), theirs_.key};
        break;
      case kind::read:
        std::memset(out.data(), 0, slot_size);
        pieces[0] = piece(out.data(), slot_size);
        work.opcode = IBV_WR_RDMA_READ;
        work.wr.rdma = {there(exposed_->pattern), theirs_.key};
        break;
      case kind::add:
        expected_[place] = 3 * adds_++;
        pieces[0] = piece(&own_->results[place], 8);
        work.opcode = IBV_WR_ATOMIC_FETCH_AND_ADD;
        work.wr.atomic = {there(exposed_->added), 3, 0, theirs_.key};
        break;
      case kind::swap:
        expected_[place] = swaps_++;
        pieces[0] = piece(&own_->results[place], 8);
        work.opcode = IBV_WR_ATOMIC_CMP_AND_SWP;
        work.wr.atomic = {there(exposed_->swapped), swaps_ - 1, swaps_, theirs_.key};
        break;
    }
    signaled_[place] = signaled;
    ibv_send_wr* bad = nullptr;
    if (const int number = ibv_post_send(pair_, &work, &bad); number != 0)
      fail(name_, "operation " + std::to_string(posted_) + " refused: " + std::strerror(number));
    ++posted_;
    return random_() % 4 != 0;  // now and then look at what has completed in between
  }

  /// Takes what has completed; whether there was anything.
  bool take() {
    std::array<ibv_wc, 16> found{};
    const int count = ibv_poll_cq(completions_, found.size(), found.data());
    if (count < 0) fail(name_, "polling: " + std::to_string(count));
    for (int i = 0; i < count; ++i) {
      const ibv_wc& each = found[static_cast<std::size_t>(i)];
      if (each.status != IBV_WC_SUCCESS)
        fail(name_,
             "request " + std::to_string(each.wr_id) + ": " + ibv_wc_status_str(each.status));
      (each.wr_id & receive_mark) != 0 ? received(each) : retire(each.wr_id);
      ++taken_;
    }
    return count != 0;
  }

  /// A completion speaks for those before it too, none of which may have had one of its own to
  /// come.
  void retire(std::uint64_t position) {
    if (position < retired_ || position >= posted_)
      fail(name_, "completion of " + std::to_string(position) + ", which is not outstanding");
    for (; retired_ <= position; ++retired_) {
      const std::uint64_t place = retired_ % depth;
      if (retired_ != position && signaled_[place])
        fail(name_, "no completion of " + std::to_string(retired_));
      if ((kinds_[place] == kind::add || kinds_[place] == kind::swap) &&
          own_->results[place] != expected_[place])
        fail(name_, "operation " + std::to_string(retired_) + " found " +
                        std::to_string(own_->results[place]) + ", not " +
                        std::to_string(expected_[place]));
      if (kinds_[place] == kind::read && own_->out[place] != exposed_->pattern)
        fail(name_, "operation " + std::to_string(retired_) + " read something else");
    }
  }

  void received(const ibv_wc& of) {
    const std::uint64_t which = of.wr_id & ~receive_mark;
    const bool written = of.opcode == IBV_WC_RECV_RDMA_WITH_IMM;
    const auto immediate = static_cast<std::uint32_t>(got_);
    if ((of.wc_flags & IBV_WC_WITH_IMM) != 0 && of.imm_data != immediate)
      fail(name_, "message " + std::to_string(of.imm_data) + " came as number " +
                      std::to_string(immediate));
    const auto& data = written ? exposed_->inbox[got_ % slots] : own_->received[which];
    if (of.byte_len != 0) {
      std::uint64_t sequence = 0;
      std::memcpy(&sequence, data.data(), sizeof sequence);
      if (sequence != got_)
        fail(name_,
             "message " + std::to_string(sequence) + " came as number " + std::to_string(got_));
      for (std::size_t i = sizeof sequence; i < of.byte_len; ++i) {
        if (data[i] != letter(sequence, i))
          fail(name_, "message " + std::to_string(got_) + " differs at " + std::to_string(i));
      }
    }
    ++got_;
    repost(which);
  }

  /// Until something completes; a wake-up that does not come is a failure.
  void sleep() {
    if (ibv_req_notify_cq(completions_, 0) != 0) fail(name_, "arming");
    if (take()) return;
    pollfd look{channel_->fd, POLLIN, 0};
    const bool woken = ::poll(&look, 1, 1000) == 1;
    if (!woken && (!take() || ::poll(&look, 1, 0) == 1)) return;
    if (!woken) fail(name_, "slept through a completion");
    ibv_cq* from = nullptr;
    void* with = nullptr;
    if (calls_.get_cq_event(channel_, &from, &with) != 0) fail(name_, "no event after all");
    calls_.ack_cq_events(from, 1);
  }

  bool finished(std::uint64_t operations) const {
    return retired_ == operations && theirs_.sent && got_ == theirs_.messages &&
           theirs_.done.load() == theirs_posted();
  }
  std::uint64_t theirs_posted() const { return theirs_.sent ? operations_of_each : ~0ULL; }

  void check_words() const {
    const auto word = [](std::uint64_t& of) { return std::atomic_ref{of}.load(); };
    if (word(exposed_->written) != theirs_.writes) fail(name_, "a write was lost");
  }

  enum class kind : std::uint8_t {
    send,
    send_with_immediate,
    empty,
    write_with_immediate,
    write,
    read,
    add,
    swap
  };
  static constexpr unsigned kinds = 8;
  static constexpr std::uint64_t receive_mark = std::uint64_t{1} << 63;

  const char* name_;
  const verbena::verbs::control_table& calls_;
  ibv_context* context_;
  ibv_pd* domain_;
  notice& mine_;
  notice& theirs_;
  std::mt19937 random_;
  ibv_comp_channel* channel_ = nullptr;
  ibv_cq* completions_ = nullptr;
  ibv_qp* pair_ = nullptr;
  exposed* exposed_ = nullptr;
  own* own_ = nullptr;
  ibv_mr* exposed_region_ = nullptr;
  ibv_mr* own_region_ = nullptr;
  std::array<kind, depth> kinds_{};
  std::array<bool, depth> signaled_{};
  std::array<std::uint64_t, depth> expected_{};
  std::uint64_t posted_ = 0;
  std::uint64_t retired_ = 0;
  std::uint64_t taken_ = 0;
  unsigned unsignaled_ = 0;
  std::uint64_t messages_ = 0;
  std::uint64_t writes_ = 0;
  std::uint64_t adds_ = 0;
  std::uint64_t swaps_ = 0;
  std::uint64_t got_ = 0;

 public:
  static inline std::uint64_t operations_of_each = 0;
};

verbena::device open_on(const std::string& fabric) {
  return verbena::device::create(verbena::verbs::open(fabric).value()).value();
}

/// Tells how far the two are until both have finished.
void report(const std::array<notice, 2>& ends, std::uint64_t total) {
  const auto begun = clock_type::now();
  auto next = begun + std::chrono::seconds{1};
  while (!ends[0].finished || !ends[1].finished) {
    std::this_thread::sleep_for(std::chrono::milliseconds{20});
    if (clock_type::now() < next) continue;
    next += std::chrono::seconds{1};
    const std::uint64_t done = ends[0].done + ends[1].done;
    const double seconds = std::chrono::duration<double>(clock_type::now() - begun).count();
    std::printf("soak: %llu of %llu, %.0f a second\n", static_cast<unsigned long long>(done),
                static_cast<unsigned long long>(total), static_cast<double>(done) / seconds);
    std::fflush(stdout);
  }
}

}  // namespace

int main(int count, char** arguments) {
  bool threads = false;
  std::uint64_t total = 10'000'000;
  unsigned seed = std::random_device{}();
  for (int i = 1; i < count; ++i) {
    const std::string_view given = arguments[i];
    const bool more = i + 1 < count;
    if (given == "--threads") {
      threads = true;
    } else if (given == "--seed" && more) {
      seed = static_cast<unsigned>(std::strtoul(arguments[++i], nullptr, 10));
    } else if (!given.starts_with("-")) {
      total = std::strtoull(arguments[i], nullptr, 10);
    } else {
      std::printf(
          "Usage: soak [OPERATIONS] [--threads] [--seed N]\n"
          "Mixed operations between two processes on the software device, 10000000 if not given.\n"
          "--threads: between two threads on one device. Exit status 1: something was lost or done "
          "twice.\n");
      return given == "--help" ? 0 : 2;
    }
  }
  endpoint::operations_of_each = std::max<std::uint64_t>(total / 2, 1);
  std::printf("soak: seed %u\n", seed);
  std::fflush(stdout);
  const std::string fabric = "soft:soak-" + std::to_string(::getpid());
  auto& ends = *static_cast<std::array<notice, 2>*>(::mmap(nullptr, sizeof(std::array<notice, 2>),
                                                           PROT_READ | PROT_WRITE,
                                                           MAP_SHARED | MAP_ANONYMOUS, -1, 0));
  const auto be = [&](std::size_t which, const verbena::device& device) {
    endpoint end{which == 0 ? "first" : "second", device, ends[which], ends[1 - which],
                 seed + static_cast<unsigned>(which)};
    end.run(endpoint::operations_of_each);
    end.dismantle();
  };
  const auto begun = clock_type::now();
  if (threads) {
    const verbena::device device = open_on(fabric);
    std::thread first{[&] { be(0, device); }};
    std::thread second{[&] { be(1, device); }};
    report(ends, total);
    first.join();
    second.join();
  } else {
    std::array<pid_t, 2> processes{};
    for (std::size_t which = 0; which < 2; ++which) {
      processes[which] = ::fork();
      if (processes[which] == 0) {
        be(which, open_on(fabric));
        std::_Exit(0);
      }
    }
    std::thread reporter{[&] { report(ends, total); }};
    bool failed = false;
    for (int i = 0; i < 2; ++i) {
      int status = 0;
      const pid_t ended = ::wait(&status);
      if (status == 0) continue;
      failed = true;
      for (const pid_t each : processes) {
        if (each != ended) ::kill(each, SIGKILL);
      }
      ends[0].finished = ends[1].finished = true;
    }
    reporter.join();
    if (failed) return 1;
  }
  const double seconds = std::chrono::duration<double>(clock_type::now() - begun).count();
  std::printf("soak: %llu operations, none lost, none twice, in %.1f s\n",
              static_cast<unsigned long long>(2 * endpoint::operations_of_each), seconds);
  return 0;
}

// SPDX-License-Identifier: BSL-1.0
#include <arpa/inet.h>

#include "fixture/linked.hpp"

using namespace raw;

namespace {

end_options ud(std::uint32_t qkey = 0x1111) {
  end_options chosen;
  chosen.type = IBV_QPT_UD;
  chosen.qkey = qkey;
  return chosen;
}

#define VERBENA_UD_OR_SKIP(on)                                             \
  if ((on).iwarp) {                                                        \
    queue both{on};                                                        \
    ibv_qp_init_attr asked{};                                              \
    asked.qp_type = IBV_QPT_UD;                                            \
    asked.send_cq = asked.recv_cq = both.native();                         \
    asked.cap = {1, 1, 1, 1, 0};                                           \
    errno = 0;                                                             \
    REQUIRE((on).calls.create_qp((on).domain, &asked) == nullptr);         \
    VERBENA_SKIP(reason((on).name + ": creating a UD queue pair", errno)); \
  }

/// A UD queue pair in RTS.
struct datagram_end : end {
  explicit datagram_end(const bed& on, const end_options& chosen = ud()) : end{on, chosen} {
    to_init();
    to_rtr(0);
    to_rts();
  }
};

/// The address of this host, as a handle.
struct handle {
  explicit handle(const bed& bed_of, const end& of) : on{bed_of} {
    ibv_ah_attr to = of.address();
    errno = 0;
    native = on.calls.create_ah(on.domain, &to);
    INFO(std::strerror(errno));
    REQUIRE(native != nullptr);
  }
  ~handle() { CHECK(on.calls.destroy_ah(native) == 0); }
  handle(const handle&) = delete;
  handle& operator=(const handle&) = delete;
  const bed& on;
  ibv_ah* native = nullptr;
};

struct datagram : send_work {
  datagram(std::uint64_t id, const handle& to, const end& peer, std::vector<ibv_sge> of,
           std::uint32_t qkey = 0x1111, ibv_wr_opcode what = IBV_WR_SEND)
      : send_work{id, what, std::move(of)} {
    wr.ud.ah = to.native;
    wr.ud.remote_qpn = peer.number();
    wr.ud.remote_qkey = qkey;
  }
};

constexpr std::uint32_t grh = 40;

/// The receiver still takes what is sent to it.
void works(datagram_end& from, datagram_end& to, const handle& there, region& memory,
           std::uint64_t id) {
  to.post(receive_work{id, {memory.piece(2048, 256)}});
  from.post(datagram{id, there, to, {memory.piece(0, 33)}});
  CHECK(is(from.sends().take_one(), id));
  const ibv_wc got = to.receives().take_one();
  CHECK(is(got, id));
  CHECK(got.byte_len == grh + 33);
}

}  // namespace

TEST_CASE("UD: a datagram comes behind 40 bytes and with its sender", "[ud]") {
  VERBENA_BED_OR_SKIP(on);
  VERBENA_UD_OR_SKIP(on);
  region out{on, 4096, IBV_ACCESS_LOCAL_WRITE};
  region in{on, 4096, IBV_ACCESS_LOCAL_WRITE};
  datagram_end here{on};
  datagram_end there{on};
  const handle to{on, here};
  out.fill(1);
  there.post(receive_work{1, {in.piece(0, 256)}});
  here.post(datagram{2, to, there, {out.piece(0, 100)}});
  const ibv_wc sent = here.sends().take_one();
  CHECK(is(sent, 2));
  CHECK(sent.opcode == IBV_WC_SEND);
  const ibv_wc got = there.receives().take_one();
  CHECK(is(got, 1));
  CHECK(got.opcode == IBV_WC_RECV);
  CHECK(got.byte_len == grh + 100);
  CHECK((got.wc_flags & IBV_WC_GRH) != 0);
  CHECK((got.wc_flags & IBV_WC_WITH_IMM) == 0);
  CHECK(got.src_qp == here.number());
  CHECK(in.same(grh, out, 0, 100));
  CHECK(in.zero(grh + 100, 256 - grh - 100));
  const bool ipv4 = verbena::gid_candidate::of(on.gid).is_ipv4();
  // RoCE v2: over IPv4 its header is the second half, over IPv6 all of the 40 bytes.
  if (ipv4)
    CHECK(in.data()[20] == std::byte{0x45});
  else
    CHECK((in.data()[0] >> 4) == std::byte{6});
}

TEST_CASE("UD: immediate, inline, pieces, none at all", "[ud]") {
  VERBENA_BED_OR_SKIP(on);
  VERBENA_UD_OR_SKIP(on);
  region out{on, 4096, IBV_ACCESS_LOCAL_WRITE};
  region in{on, 4096, IBV_ACCESS_LOCAL_WRITE};
  datagram_end here{on};
  datagram_end there{on};
  const handle to{on, here};
  out.fill(1);
  there.post(receive_work{1, {in.piece(0, 50), in.piece(100, 100)}});
  here.post(
      datagram{2, to, there, {out.piece(0, 13), out.piece(100, 40)}, 0x1111, IBV_WR_SEND_WITH_IMM}
          .with_immediate(htonl(0x89abcdef)));
  ibv_wc got = there.receives().take_one();
  CHECK(is(got, 1));
  CHECK(got.byte_len == grh + 53);
  CHECK((got.wc_flags & IBV_WC_WITH_IMM) != 0);
  CHECK(got.imm_data == htonl(0x89abcdef));
  CHECK(in.same(40, out, 0, 10));
  CHECK(in.same(100, out, 10, 3));
  CHECK(in.same(103, out, 100, 40));

  in.clear();
  char source[] = "not registered";
  datagram inlined{
      3, to, there, {{reinterpret_cast<std::uintptr_t>(source), sizeof source, 0xdead}}};
  inlined.send_flags |= IBV_SEND_INLINE;
  there.post(receive_work{4, {in.piece(0, 256)}});
  here.post(inlined);
  std::memset(source, '!', sizeof source);
  got = there.receives().take_one();
  CHECK(is(got, 4));
  CHECK(std::string{reinterpret_cast<char*>(in.data() + grh)} == "not registered");

  there.post(receive_work{5, {in.piece(0, grh)}});
  here.post(datagram{6, to, there, {}});
  got = there.receives().take_one();
  CHECK(is(got, 5));
  CHECK(got.byte_len == grh);
  here.sends().take(3);
}

TEST_CASE("UD: one handle reaches every queue pair of a host", "[ud][ah]") {
  VERBENA_BED_OR_SKIP(on);
  VERBENA_UD_OR_SKIP(on);
  region memory{on, 4096, IBV_ACCESS_LOCAL_WRITE};
  datagram_end here{on};
  datagram_end first{on};
  datagram_end second{on};
  const handle to{on, here};
  for (datagram_end* each : {&first, &second, &here}) works(here, *each, to, memory, 7);
}

TEST_CASE("UD: handles to nowhere", "[ud][ah]") {
  VERBENA_BED_OR_SKIP(on);
  VERBENA_UD_OR_SKIP(on);
  datagram_end here{on};
  const auto refused = [&](ibv_ah_attr to) {
    errno = 0;
    ibv_ah* const made = on.calls.create_ah(on.domain, &to);
    const int said = errno;
    CHECK(made == nullptr);
    CHECK(said != 0);
    if (made != nullptr) on.calls.destroy_ah(made);
  };
  ibv_ah_attr to = here.address();
  to.port_num = 2;
  refused(to);
  to = here.address();
  to.grh.sgid_index = 255;
  refused(to);
  to = here.address();
  to.is_global = 0;  // RoCE goes by GID
  refused(to);
}

TEST_CASE("UD: what nobody takes is lost without a word", "[ud]") {
  VERBENA_BED_OR_SKIP(on);
  VERBENA_UD_OR_SKIP(on);
  region memory{on, 4096, IBV_ACCESS_LOCAL_WRITE};
  datagram_end here{on};
  datagram_end there{on};
  const handle to{on, here};
  // No receive.
  here.post(datagram{1, to, there, {memory.piece(0, 8)}});
  CHECK(is(here.sends().take_one(), 1));
  std::this_thread::sleep_for(a_while);
  works(here, there, to, memory, 2);
  // Another key.
  there.post(receive_work{3, {memory.piece(2048, 256)}});
  here.post(datagram{4, to, there, {memory.piece(0, 8)}, 0x2222});
  CHECK(is(here.sends().take_one(), 4));
  CHECK(there.receives().stays_empty());
  // Nobody there.
  datagram nobody{5, to, there, {memory.piece(0, 8)}};
  nobody.wr.ud.remote_qpn = 0xabcdef;
  here.post(nobody);
  CHECK(is(here.sends().take_one(), 5));
  // The receive is still there for the next.
  here.post(datagram{6, to, there, {memory.piece(0, 9)}});
  const ibv_wc got = there.receives().take_one();
  CHECK(is(got, 3));
  CHECK(got.byte_len == grh + 9);
  CHECK(here.state() == IBV_QPS_RTS);
  CHECK(there.state() == IBV_QPS_RTS);
}

TEST_CASE("UD: a key with its top bit set stands for the sender's own", "[ud]") {
  VERBENA_BED_OR_SKIP(on);
  VERBENA_UD_OR_SKIP(on);
  region memory{on, 4096, IBV_ACCESS_LOCAL_WRITE};
  datagram_end here{on, ud(0x3333)};
  datagram_end there{on, ud(0x3333)};
  const handle to{on, here};
  there.post(receive_work{1, {memory.piece(2048, 256)}});
  here.post(datagram{2, to, there, {memory.piece(0, 8)}, 0x8000'0000});
  CHECK(is(here.sends().take_one(), 2));
  // rxe sends the key as it stands, which nobody has.
  if (on.is_rxe() && there.receives().stays_empty())
    VERBENA_SKIP(on.name +
                 " does not put the sender's own key in the place of one with its top bit");
  CHECK(is(there.receives().take_one(), 1));
}

TEST_CASE("FC-15 UD: a datagram longer than the receive", "[ud][length]") {
  VERBENA_BED_OR_SKIP(on);
  VERBENA_UD_OR_SKIP(on);
  region memory{on, 4096, IBV_ACCESS_LOCAL_WRITE};
  datagram_end here{on};
  datagram_end there{on};
  const handle to{on, here};
  there.post(receive_work{1, {memory.piece(2048, grh + 64)}});
  here.post(datagram{2, to, there, {memory.piece(0, 65)}});
  CHECK(is(here.sends().take_one(), 2));
  std::this_thread::sleep_for(a_while);
  // Dropped, with the receive still there; or flagged with an error. The sender lives on.
  CHECK(here.state() == IBV_QPS_RTS);
  const auto got = there.receives().poll();
  if (got.empty()) {
    here.post(datagram{3, to, there, {memory.piece(0, 64)}});
    const ibv_wc next = there.receives().take_one();
    CHECK(is(next, 1));
    CHECK(next.byte_len == grh + 64);
    CHECK(there.state() == IBV_QPS_RTS);
  } else {
    CHECK(on.is_rxe());
    CHECK(got.front().wr_id == 1);
    CHECK(got.front().status != IBV_WC_SUCCESS);
  }
}

TEST_CASE("UD: one packet is the longest", "[ud][length]") {
  VERBENA_BED_OR_SKIP(on);
  VERBENA_UD_OR_SKIP(on);
  const std::size_t most = std::size_t{128} << on.port.active_mtu;
  region out{on, 8192, IBV_ACCESS_LOCAL_WRITE};
  region in{on, 8192, IBV_ACCESS_LOCAL_WRITE};
  datagram_end here{on};
  datagram_end there{on};
  const handle to{on, here};
  out.fill(1);
  there.post(receive_work{1, {in.piece()}});
  here.post(datagram{2, to, there, {out.piece(0, most)}});
  CHECK(is(here.sends().take_one(), 2));
  const ibv_wc got = there.receives().take_one();
  CHECK(is(got, 1));
  CHECK(got.byte_len == grh + most);
  CHECK(in.same(grh, out, 0, most));
  // Longer: an error in the post or afterwards; rxe says success and sends nothing.
  there.post(receive_work{3, {in.piece()}});
  datagram too_long{4, to, there, {out.piece(0, most + 1)}};
  if (here.try_post(too_long).accepted()) {
    CHECK(is(here.sends().take_one(), 4,
             {IBV_WC_LOC_LEN_ERR, on.is_rxe() ? IBV_WC_SUCCESS : IBV_WC_LOC_LEN_ERR}));
  }
  CHECK(there.receives().stays_empty());
}

TEST_CASE("UD: nothing but sends", "[ud]") {
  VERBENA_BED_OR_SKIP(on);
  VERBENA_UD_OR_SKIP(on);
  region memory{on, 4096};
  datagram_end here{on};
  for (const ibv_wr_opcode opcode : {IBV_WR_RDMA_WRITE, IBV_WR_RDMA_READ}) {
    send_work work{1, opcode, {memory.piece(0, 8)}};
    const auto said = here.try_post(work.at(memory, 64));
    if (said.accepted()) {
      CHECK(on.is_rxe());
      break;  // what it does with it is nobody's business
    }
    CHECK(said.error == EINVAL);
    CHECK(said.refused == &work);
  }
}

TEST_CASE("UD: the sender's error state and the way out", "[ud][sqe]") {
  VERBENA_BED_OR_SKIP(on);
  VERBENA_UD_OR_SKIP(on);
  region memory{on, 4096, IBV_ACCESS_LOCAL_WRITE};
  datagram_end here{on};
  datagram_end there{on};
  const handle to{on, here};
  ibv_sge wrong = memory.piece(0, 8);
  wrong.lkey ^= 0x5a5a5a5a;
  here.post(datagram{1, to, there, {wrong}});
  CHECK(is(here.sends().take_one(), 1,
           {IBV_WC_LOC_PROT_ERR, on.is_rxe() ? IBV_WC_LOC_QP_OP_ERR : IBV_WC_LOC_PROT_ERR}));
  const ibv_qp_state state = here.state();
  CHECK((state == IBV_QPS_SQE || (on.is_rxe() && state == IBV_QPS_ERR)));
  if (state != IBV_QPS_SQE) return;
  here.post(datagram{2, to, there, {memory.piece(0, 8)}});
  CHECK(is(here.sends().take_one(), 2, {IBV_WC_WR_FLUSH_ERR}));
  // Receiving goes on.
  here.post(receive_work{3, {memory.piece(2048, 256)}});
  there.post(datagram{4, to, here, {memory.piece(0, 8)}});
  CHECK(is(here.receives().take_one(), 3));
  there.sends().take_one();
  REQUIRE(here.modify(IBV_QPS_RTS) == 0);
  works(here, there, to, memory, 5);
}

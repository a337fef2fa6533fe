// SPDX-License-Identifier: BSL-1.0
#define VERBENA_CODEGEN_SHARED
#include <verbena/policy/transport/ud.hpp>

#include "posts.cpp"

namespace twin {

/// Whom a datagram is for.
struct destination {
  ibv_ah* ah;
  std::uint32_t number, queue_key, max_message, domain;
};

template <std::size_t Pieces>
TWIN_INLINE bool suits(const queue* q, const local* l, const destination* d) {
  if (Pieces > 1 && Pieces > q->send_pieces) return false;
  if (l[0].domain != q->domain || (Pieces == 2 && l[1].domain != q->domain)) return false;
  if (d->domain != q->domain) return false;
  if (l[0].size - 1 >= d->max_message) return false;
  return Pieces == 1 || (l[1].size - 1 < d->max_message && l[0].size + l[1].size <= d->max_message);
}

template <operation What, std::size_t Pieces>
TWIN_INLINE void fill(ibv_send_wr* wr, ibv_send_wr* next, ibv_sge* sge, std::uint64_t id,
                      const local* l, const destination* d, std::uint64_t immediate) {
  fill<What, Pieces>(wr, next, sge, id, IBV_SEND_SIGNALED, l, nullptr, {immediate, 0});
  wr->wr.ud.ah = d->ah;
  wr->wr.ud.remote_qpn = d->number;
  wr->wr.ud.remote_qkey = d->queue_key;
}

template <operation What, std::size_t Pieces, std::size_t Count, bool Checks, bool Zeroed>
[[gnu::noinline]] outcome post_datagrams(queue* q, const local* l, const destination* d,
                                         std::uint32_t token, std::uint64_t immediate) {
  if (Checks && (!has_room(&q->sends, Count) || (q->lacking & 1 & -is_immediate(What)) != 0 ||
                 !suits<Pieces>(q, l, d) || (Count == 2 && !suits<Pieces>(q, l + Pieces, d + 1))))
      [[unlikely]] {
    return refuse(q, &q->sends, l, nullptr, Count);
  }
  ibv_send_wr wr[Count];
  ibv_sge sge[Count * Pieces];
  if (Zeroed) clear(wr, sge);
  ibv_send_wr* bad = nullptr;
  const std::uint32_t position = q->sends.posted;
  fill<What, Pieces>(&wr[0], Count == 2 ? &wr[1] : nullptr, sge, pack(q, What, position, token), l,
                     d, immediate);
  if constexpr (Count == 2) {
    fill<What, Pieces>(&wr[1], nullptr, sge + Pieces, pack(q, What, position + 1, 0), l + Pieces,
                       d + 1, immediate);
  }
  const int value = ibv_post_send(q->qp, wr, &bad);
  if (value != 0 || bad != nullptr) [[unlikely]] {
    return partly(q, &q->sends, Count == 1 || bad == nullptr ? 0 : bad - wr, value);
  }
  q->sends.posted += Count;
  return {Count, 0};
}

}  // namespace twin

namespace {

std::array<vb::peer, 2> peers{vb::peer{{}, 0x1111, 0x2222, 4096, domain},
                              vb::peer{{}, 0x3333, 0x4444, 4096, domain}};
std::array<twin::destination, 2> destinations{
    twin::destination{nullptr, 0x1111, 0x2222, 4096, domain},
    twin::destination{nullptr, 0x3333, 0x4444, 4096, domain}};

int take_datagrams(ibv_qp* of, ibv_send_wr* work, ibv_send_wr** refused) {
  for (const ibv_send_wr* each = work; each != nullptr; each = each->next) {
    seen.insert(seen.end(), {reinterpret_cast<std::uintptr_t>(each->wr.ud.ah),
                             each->wr.ud.remote_qpn, each->wr.ud.remote_qkey});
  }
  return take_sends(of, work, refused);
}

template <class Policies, vb::operation What, std::size_t Pieces, std::size_t Count>
[[gnu::noinline]] vb::posted post_datagrams(vb::queue_pair_state& to, const local* l,
                                            const vb::peer* p, std::uint32_t t,
                                            std::uint64_t immediate) {
  const auto first = request<What, Pieces>(l, static_cast<const remote*>(nullptr), immediate);
  if constexpr (Count == 1) {
    return vb::post_on<Policies>(to, no_mutex, first.token(t).to(p[0]));
  } else {
    return vb::post_on<Policies>(
        to, no_mutex, first.token(t).to(p[0]),
        request<What, Pieces>(l + Pieces, static_cast<const remote*>(nullptr), immediate).to(p[1]));
  }
}

class datagram_collector {
 public:
  std::vector<comparison> all;

  template <class Accounting>
  void add_accounting(const std::string& name) {
    using policies = vb::policies<vb::transport::ud, Accounting>;
    add_pieces<policies, 1>(name + "1 piece ");
    add_pieces<policies, 2>(name + "2 pieces ");
  }

 private:
  template <class Policies, std::size_t Pieces>
  void add_pieces(const std::string& name) {
    constexpr auto send = vb::operation::send;
    constexpr auto with_immediate = vb::operation::send_with_immediate;
    add<Policies, send, twin::send, Pieces, 1>(name + "send");
    add<Policies, send, twin::send, Pieces, 2>(name + "send*2");
    add<Policies, with_immediate, twin::send_with_immediate, Pieces, 1>(name +
                                                                        "send_with_immediate");
    add<Policies, with_immediate, twin::send_with_immediate, Pieces, 2>(name +
                                                                        "send_with_immediate*2");
  }

  template <class Policies, vb::operation What, twin::operation Twin, std::size_t Pieces,
            std::size_t Count>
  void add(const std::string& name) {
    constexpr bool checks = Policies::accounting::checks;
    const auto by_hand = [](auto* function) {
      return measured{reinterpret_cast<const void*>(function),
                      [=] {
                        return effect(function(&queue, twin_locals.data(), destinations.data(),
                                               token, first_number),
                                      queue);
                      },
                      [=](std::uint64_t rounds) {
                        return repeat(rounds, std::array{&queue}, function, &queue,
                                      twin_locals.data(), destinations.data(), token, first_number);
                      }};
    };
    auto* const ours = post_datagrams<Policies, What, Pieces, Count>;
    all.push_back({"datagram " + name,
                   [] {
                     prepare(0);
                     accepting::instance.context.ops.post_send = take_datagrams;
                   },
                   1,
                   {reinterpret_cast<const void*>(ours),
                    [=] {
                      return effect(ours(state, locals.data(), peers.data(), token, first_number),
                                    state);
                    },
                    [=](std::uint64_t rounds) {
                      return repeat(rounds, std::array{&state}, ours, state, locals.data(),
                                    peers.data(), token, first_number);
                    }},
                   by_hand(twin::post_datagrams<Twin, Pieces, Count, checks, false>),
                   by_hand(twin::post_datagrams<Twin, Pieces, Count, checks, true>)});
  }
};

}  // namespace

std::vector<comparison> datagram_comparisons() {
  datagram_collector made;
  made.add_accounting<vb::accounting::ledger>("ledger ");
  made.add_accounting<vb::accounting::unchecked>("unchecked ");
  return std::move(made.all);
}

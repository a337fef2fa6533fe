// SPDX-License-Identifier: BSL-1.0
#define VERBENA_CODEGEN_SHARED
#include "posts.cpp"
#include "twin_prepared.hpp"

namespace {

template <class Policies, class... Shapes>
[[gnu::noinline]] vb::posted post_prepared(vb::queue_pair_state& to,
                                           vb::prepared<vb::core_of<Policies>, Shapes...>& chain) {
  return vb::post_on<Policies>(to, no_mutex, chain);
}

/// A prepared chain against its twin, and against the usual way of posting the same anew: unchecked
/// in at most half of the instructions, else in three quarters of them; but for the one post in a
/// window that is signaled where others are not.
class prepared_collector {
 public:
  std::vector<comparison> all;

  template <class Accounting>
  void add_accounting(const std::string& name) {
    add_signaling<vb::signaling::every, signal::every, Accounting>(name + "every ");
    add_signaling<vb::signaling::one_in<16>, signal::one_in, Accounting>(name + "one_in ");
    add_signaling<vb::signaling::per_operation, signal::last_asks, Accounting>(name + "asked ");
    add_signaling<vb::signaling::per_operation, signal::none_asks, Accounting>(name + "unasked ");
  }

 private:
  template <class Signaling, signal Signal, class Accounting>
  void add_signaling(const std::string& name) {
    using policies = vb::policies<Signaling, Accounting>;
    add_pieces<policies, 1, Signal>(name + "1 piece ");
    add_pieces<policies, 2, Signal>(name + "2 pieces ");
    add<policies, vb::operation::compare_and_swap, twin::compare_and_swap, 1, Signal>(
        name + "compare_and_swap", words.data(), remote_words.data(), twin_words.data(),
        twin_remote_words.data());
    add<policies, vb::operation::fetch_and_add, twin::fetch_and_add, 1, Signal>(
        name + "fetch_and_add", words.data(), remote_words.data(), twin_words.data(),
        twin_remote_words.data());
  }

  template <class Policies, std::size_t Pieces, signal Signal>
  void add_pieces(const std::string& name) {
    const auto add_one = [&]<vb::operation What, twin::operation Twin>(const char* called) {
      add<Policies, What, Twin, Pieces, Signal>(name + called, locals.data(), remotes.data(),
                                                twin_locals.data(), twin_remotes.data());
    };
    add_one.template operator()<vb::operation::send, twin::send>("send");
    add_one.template operator()<vb::operation::read, twin::read>("read");
    add_one.template operator()<vb::operation::write, twin::write>("write");
    add_one.template operator()<vb::operation::send_with_immediate, twin::send_with_immediate>(
        "send_with_immediate");
    add_one.template operator()<vb::operation::write_with_immediate, twin::write_with_immediate>(
        "write_with_immediate");
  }

  template <class Policies, vb::operation What, twin::operation Twin, std::size_t Pieces,
            signal Signal, class Local, class Remote>
  void add(const std::string& name, const Local* here, const Remote* there,
           const twin::local* twin_here, const twin::remote* twin_there) {
    constexpr bool checks = Policies::accounting::checks;
    const auto make_one = [=] {
      return prepare<Policies>(asking<asks<Signal, true, What>>(
          request<What, Pieces>(here, there, first_number, second_number).token(token)));
    };
    const auto make_two = [=] {
      return prepare<Policies>(
          asking<asks<Signal, false, What>>(
              request<What, Pieces>(here, there, first_number, second_number).token(token)),
          asking<asks<Signal, true, What>>(
              request<What, Pieces>(here + Pieces, there + 1, second_number, first_number)));
    };
    compare<Policies, Twin, 1, Pieces, Signal>(name, make_one, twin_here, twin_there,
                                               twin::post_one<Twin, Pieces, Signal, checks, true>);
    compare<Policies, Twin, 2, Pieces, Signal>(name + "*2", make_two, twin_here, twin_there,
                                               twin::post_two<Twin, Pieces, Signal, checks, true>);
  }

  template <class Policies>
  static auto prepare(const auto&... requests) {
    return vb::prepare_on<Policies>(state, requests...).value();
  }

  template <class Policies, twin::operation Twin, std::size_t Requests, std::size_t Pieces,
            signal Signal, class Make>
  void compare(const std::string& name, Make make, const twin::local* here,
               const twin::remote* there, twin_function usual) {
    constexpr bool checks = Policies::accounting::checks;
    const auto ours = entry_of<Policies>(std::type_identity<decltype(make())>{});
    const auto by_hand = twin::prepared::post<Twin, Requests, Pieces, Signal, checks>;
    const auto add_with = [&](const std::string& called, std::uint16_t unsignaled, double most) {
      all.push_back({"prepared " + called,
                     [unsignaled] { prepare_state(unsignaled); },
                     1,
                     {reinterpret_cast<const void*>(ours),
                      [=] {
                        auto chain = make();
                        return effect(ours(state, chain), state);
                      },
                      [=](std::uint64_t rounds) {
                        auto chain = make();
                        return repeat(rounds, std::array{&state}, ours, state, chain);
                      }},
                     {reinterpret_cast<const void*>(by_hand),
                      [=] {
                        twin::prepared::chain<Requests, Pieces> chain;
                        twin::prepared::prepare<Twin, Pieces>(&chain, &queue, here, there, token,
                                                              {first_number, second_number});
                        return effect(by_hand(&queue, &chain), queue);
                      },
                      [=](std::uint64_t rounds) {
                        twin::prepared::chain<Requests, Pieces> chain;
                        twin::prepared::prepare<Twin, Pieces>(&chain, &queue, here, there, token,
                                                              {first_number, second_number});
                        return repeat(rounds, std::array{&queue}, by_hand, &queue, &chain);
                      }},
                     measure(usual, here, there),
                     most});
    };
    // Atomics also note where the old value will lie.
    constexpr bool notes = twin::is_atomic(Twin);
    add_with(name, 0, checks ? 0.75 : notes ? 0.55 : 0.5);
    if (Signal == signal::one_in || Signal == signal::none_asks) add_with(name + ", due", 15, 0);
  }

  static void prepare_state(std::uint16_t unsignaled) { ::prepare(unsignaled); }

  template <class Policies, class Core, class... Shapes>
  static auto entry_of(std::type_identity<vb::prepared<Core, Shapes...>>) {
    return post_prepared<Policies, Shapes...>;
  }
};

}  // namespace

std::vector<comparison> prepared_comparisons() {
  prepared_collector made;
  made.add_accounting<vb::accounting::ledger>("ledger ");
  made.add_accounting<vb::accounting::unchecked>("unchecked ");
  return std::move(made.all);
}

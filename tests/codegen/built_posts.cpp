// SPDX-License-Identifier: BSL-1.0
#define VERBENA_CODEGEN_SHARED
#include <verbena/policy/posting/builder.hpp>

#include "posts.cpp"
#include "twin_build.hpp"

namespace {

/// Here nothing is zero-initialised.
struct built {
  using posting = vb::posting::builder;
  static constexpr unsigned calls = 2;
  static constexpr unsigned calls_each = 2;
  template <twin::operation What, std::size_t Pieces, signal Signal, bool Checks, unsigned Flag = 0,
            twin::inlining Inlining = twin::inlining::never>
  static constexpr twin_function one =
      twin::build::post_one<What, Pieces, Signal, Checks, Flag, Inlining>;
  template <twin::operation, std::size_t, signal, bool, unsigned = 0,
            twin::inlining = twin::inlining::never>
  static constexpr twin_function usual_one = nullptr;
  template <twin::operation What, std::size_t Pieces, signal Signal, bool Checks>
  static constexpr twin_function two = twin::build::post_two<What, Pieces, Signal, Checks>;
  template <twin::operation, std::size_t, signal, bool>
  static constexpr twin_function usual_two = nullptr;
  template <std::size_t Pieces, signal Signal, bool Checks>
  static constexpr twin_function mixed = twin::build::post_mixed<Pieces, Signal, Checks>;
  template <std::size_t, signal, bool>
  static constexpr twin_function usual_mixed = nullptr;
};

}  // namespace

std::vector<comparison> built_comparisons() {
  collector<built> made;
  made.add_accounting<vb::accounting::ledger>("built ledger ");
  made.add_accounting<vb::accounting::unchecked>("built unchecked ");
  return std::move(made.all);
}

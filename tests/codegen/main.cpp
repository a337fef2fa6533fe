// SPDX-License-Identifier: BSL-1.0
#include <cstdio>
#include <cstring>
#include <exception>

#include "accepting.hpp"
#include "comparison.hpp"
#include "stepper.hpp"

// Known counts, to see that the counting counts.
extern "C" void known();
asm(R"(
  .text
  .globl known
  .type known, @function
known:
  push %rbx
  sub $48, %rsp
  movq $0, 8(%rsp)
  movups %xmm0, 16(%rsp)
  incl 8(%rsp)
  cmpl $1, 8(%rsp)
  mov 8(%rsp), %ebx
  leaq 8(%rsp), %rdi
  testl %ebx, 8(%rsp)
  .byte 0x66, 0x66, 0x66, 0x2e, 0x0f, 0x1f, 0x84, 0, 0, 0, 0, 0  # a long nop
  call opaque_known
  add $48, %rsp
  pop %rbx
  ret
  .size known, .-known
  .globl opaque_known
  .type opaque_known, @function
opaque_known:
  push %rax
  pop %rax
  ret
  .size opaque_known, .-opaque_known
)");
extern "C" void opaque_known();

void opaque(std::uint64_t value) { asm volatile("" : : "r"(value) : "memory"); }

namespace {

using address = std::uintptr_t;
address of(auto* function) { return reinterpret_cast<address>(function); }

bool counts_what_is_known(const std::map<address, instruction>& code) {
  const counts found =
      step([] { known(); }, reinterpret_cast<const void*>(&known), {of(opaque_known)}, code);
  const bool right = found.instructions == 14 && found.stores == 4 && found.calls == 1 &&
                     found.opaque == 1 && found.frame == 56;
  if (!right) {
    std::printf(
        "the counting is wrong: %u instructions (14), %u stores (4), %u calls (1), "
        "%u opaque (1), %u bytes of frame (56)\n",
        found.instructions, found.stores, found.calls, found.opaque, found.frame);
  }
  return right;
}

class judge {
 public:
  judge() : code_{disassemble_self()} {}

  bool trustworthy() const { return counts_what_is_known(code_); }

  void compare(const comparison& pair) {
    const counts ours = measure(pair, pair.verbena);
    const counts twin = measure(pair, pair.twin);
    const counts usual = pair.usual.entry != nullptr ? measure(pair, pair.usual) : counts{};
    const char* wrong = "";
    if (ours.instructions > twin.instructions) wrong = "  INSTRUCTIONS";
    if (ours.stores > twin.stores) wrong = "  STORES";
    if (ours.frame > twin.frame) wrong = "  FRAME";
    if (ours.calls != twin.calls || ours.opaque != twin.opaque) wrong = "  CALLS";
    if (ours.calls != pair.calls || ours.opaque != pair.calls) wrong = "  CALLS";
    if (pair.most != 0 && ours.instructions > pair.most * usual.instructions) wrong = "  RATIO";
    if (!same_effect(pair)) wrong = "  EFFECT";
    std::printf("%-44s %5u %5u %5u  %5u %5u %5u  %5u %5u  %3u %3u%s\n", pair.name.c_str(),
                ours.instructions, twin.instructions, usual.instructions, ours.stores, twin.stores,
                usual.stores, ours.frame, twin.frame, ours.calls, twin.calls, wrong);
    ++compared_;
    failed_ += *wrong != '\0';
    fewer_ += ours.instructions < twin.instructions;
  }

  int verdict() const {
    std::printf("%u compared, %u with fewer instructions than the twin, %u worse\n", compared_,
                fewer_, failed_);
    return compared_ == 0 || failed_ != 0;
  }

 private:
  counts measure(const comparison& pair, const measured& what) const {
    pair.prepare();
    const ibv_context_ops& calls = accepting::instance.context.ops;
    const ibv_qp_ex& built = accepting::instance.queue_pair;
    const std::set<address> opaque_bodies{of(calls.post_send),
                                          of(calls.post_recv),
                                          of(calls.post_srq_recv),
                                          of(calls.poll_cq),
                                          of(opaque),
                                          of(built.wr_start),
                                          of(built.wr_complete),
                                          of(built.wr_send),
                                          of(built.wr_send_imm),
                                          of(built.wr_rdma_read),
                                          of(built.wr_rdma_write),
                                          of(built.wr_rdma_write_imm),
                                          of(built.wr_atomic_cmp_swp),
                                          of(built.wr_atomic_fetch_add),
                                          of(built.wr_set_sge),
                                          of(built.wr_set_sge_list),
                                          of(built.wr_set_inline_data),
                                          of(built.wr_set_inline_data_list)};
    (void)what.call();  // resolves what is bound lazily
    pair.prepare();
    return step([&] { (void)what.call(); }, what.entry, opaque_bodies, code_);
  }

  static std::vector<std::uint64_t> effect(const comparison& pair, const measured& what) {
    pair.prepare();
    return what.call();
  }
  static bool same_effect(const comparison& pair) {
    const auto ours = effect(pair, pair.verbena);
    return ours == effect(pair, pair.twin) &&
           (pair.usual.entry == nullptr || ours == effect(pair, pair.usual));
  }

  std::map<address, instruction> code_;
  unsigned compared_ = 0;
  unsigned fewer_ = 0;
  unsigned failed_ = 0;
};

}  // namespace

int main() try {
  std::setvbuf(stdout, nullptr, _IOLBF, 0);  // children are forked
  judge bench;
  if (!bench.trustworthy()) return 1;
  std::printf(
      "%s\nExecuted on the way that succeeds, outside the provider: v verbena, t its twin, "
      "u the usual zero-initialised way\n",
      __VERSION__);
  std::printf("%-44s %17s  %17s  %11s  %7s\n%-44s %5s %5s %5s  %5s %5s %5s  %5s %5s  %3s %3s\n", "",
              "instructions", "stores", "frame", "calls", "", "v", "t", "u", "v", "t", "u", "v",
              "t", "v", "t");
  for (const auto& each : post_comparisons()) bench.compare(each);
  for (const auto& each : built_comparisons()) bench.compare(each);
  for (const auto& each : prepared_comparisons()) bench.compare(each);
  for (const auto& each : datagram_comparisons()) bench.compare(each);
  for (const auto& each : poll_comparisons()) bench.compare(each);
  return bench.verdict();
} catch (const std::exception& failure) {
  std::printf("%s\n", failure.what());
  return 1;
}

// SPDX-License-Identifier: BSL-1.0
#include "stepper.hpp"

#include <link.h>
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <string_view>
#include <system_error>

namespace {

// "callq" and "movq" as older binutils print them are the same to us.
bool starts_with_any(std::string_view text, std::initializer_list<std::string_view> words) {
  return std::any_of(words.begin(), words.end(), [&](auto word) { return text.starts_with(word); });
}

bool is_memory(std::string_view operand) {
  if (operand.empty() || operand.front() == '$') return false;
  return operand.front() != '%' || operand.find(':') != operand.npos;
}

// AT&T syntax: the destination is the last operand.
instruction classify(std::string_view text) {
  text = text.substr(0, text.find('#'));
  for (bool found = true; found;) {  // some stand there several times
    found = false;
    for (const std::string_view prefix :
         {"notrack ", "bnd ", "lock ", "data16 ", "cs ", "rep ", "repz ", "repnz "}) {
      if (!text.starts_with(prefix)) continue;
      text.remove_prefix(prefix.size());
      found = true;
    }
  }
  const auto space = text.find(' ');
  const std::string_view name = text.substr(0, space);
  std::string_view operands = space == text.npos ? "" : text.substr(space);
  operands.remove_prefix(std::min(operands.find_first_not_of(' '), operands.size()));
  operands = operands.substr(0, operands.find_last_not_of(' ') + 1);
  if (name.starts_with("call")) return {.stores = false, .calls = true};
  if (name.starts_with("push")) return {.stores = true};
  if (starts_with_any(name, {"j", "cmp", "test", "lea", "nop", "prefetch", "ucomi", "comi", "ret",
                             "mul", "imul", "div", "idiv", "endbr", "ptest"}) ||
      name == "bt" || name == "btl" || name == "btq" || name == "bnd") {
    return {};
  }
  if (name.starts_with("cmpxchg")) return {.stores = true};
  // The last comma outside parentheses.
  std::size_t last = 0;
  int depth = 0;
  for (std::size_t i = 0; i < operands.size(); ++i) {
    depth += operands[i] == '(' ? 1 : operands[i] == ')' ? -1 : 0;
    if (operands[i] == ',' && depth == 0) last = i + 1;
  }
  return {.stores = is_memory(operands.substr(last))};
}

std::uintptr_t load_base() {
  std::uintptr_t base = 0;
  // The first object reported is the program itself.
  ::dl_iterate_phdr(
      [](dl_phdr_info* info, std::size_t, void* out) {
        *static_cast<std::uintptr_t*>(out) = info->dlpi_addr;
        return 1;
      },
      &base);
  return base;
}

[[noreturn]] void fail(const std::string& what) {
  throw std::system_error{errno, std::generic_category(), what};
}

// A process stopped before its next instruction, killed when this ends.
class tracee {
 public:
  explicit tracee(const std::function<void()>& call) : id_{::fork()} {
    if (id_ < 0) fail("fork");
    if (id_ == 0) {
      if (::ptrace(PTRACE_TRACEME, 0, nullptr, nullptr) != 0) ::_exit(1);
      ::raise(SIGSTOP);
      call();
      ::_exit(0);
    }
    wait();
  }
  tracee(const tracee&) = delete;
  tracee& operator=(const tracee&) = delete;
  ~tracee() {
    ::kill(id_, SIGKILL);
    ::waitpid(id_, nullptr, 0);
  }

  user_regs_struct registers() const {
    user_regs_struct found{};
    if (::ptrace(PTRACE_GETREGS, id_, nullptr, &found) != 0) fail("PTRACE_GETREGS");
    return found;
  }
  void step() {
    if (::ptrace(PTRACE_SINGLESTEP, id_, nullptr, nullptr) != 0) fail("PTRACE_SINGLESTEP");
    wait();
  }
  std::uintptr_t word(std::uintptr_t address) const {
    errno = 0;
    const long found = ::ptrace(PTRACE_PEEKDATA, id_, address, nullptr);
    if (errno != 0) fail("PTRACE_PEEKDATA");
    return static_cast<std::uintptr_t>(found);
  }
  /// Runs at full speed until `address`, by a breakpoint there.
  void run_to(std::uintptr_t address) {
    constexpr std::uintptr_t trap = 0xcc;
    const std::uintptr_t original = word(address);
    poke(address, (original & ~std::uintptr_t{0xff}) | trap);
    if (::ptrace(PTRACE_CONT, id_, nullptr, nullptr) != 0) fail("PTRACE_CONT");
    wait();
    poke(address, original);
    user_regs_struct at = registers();
    if (at.rip != address + 1) throw std::runtime_error{"the measured process stopped elsewhere"};
    at.rip = address;
    if (::ptrace(PTRACE_SETREGS, id_, nullptr, &at) != 0) fail("PTRACE_SETREGS");
  }

 private:
  void poke(std::uintptr_t address, std::uintptr_t value) const {
    if (::ptrace(PTRACE_POKEDATA, id_, address, value) != 0) fail("PTRACE_POKEDATA");
  }
  void wait() const {
    int status = 0;
    if (::waitpid(id_, &status, 0) != id_) fail("waitpid");
    if (!WIFSTOPPED(status)) {
      throw std::runtime_error{"the measured process ended early (may it be traced?)"};
    }
    const int signal = WSTOPSIG(status);
    if (signal != SIGTRAP && signal != SIGSTOP) {
      throw std::runtime_error{"the measured process got signal " + std::to_string(signal)};
    }
  }

  pid_t id_;
};

}  // namespace

std::map<std::uintptr_t, instruction> disassemble_self() {
  char path[4096];
  const ssize_t length = ::readlink("/proc/self/exe", path, sizeof path - 1);
  if (length < 0) fail("/proc/self/exe");
  const std::string command =
      "objdump -d --no-show-raw-insn '" + std::string(path, static_cast<std::size_t>(length)) + "'";
  FILE* out = ::popen(command.c_str(), "r");
  if (out == nullptr) fail("objdump");
  const std::uintptr_t base = load_base();
  std::map<std::uintptr_t, instruction> code;
  bool any_call = false;
  char line[1024];
  while (std::fgets(line, sizeof line, out) != nullptr) {
    // "    12ab:\tmov    %rax,(%rdi)"
    char* end = nullptr;
    const std::uintptr_t address = std::strtoull(line, &end, 16);
    if (line[0] != ' ' || *end != ':' || end[1] != '\t') continue;
    std::string_view text{end + 2};
    if (!text.empty() && text.back() == '\n') text.remove_suffix(1);
    const instruction found = classify(text);
    any_call |= found.calls;
    code.emplace(base + address, found);
  }
  if (::pclose(out) != 0) throw std::runtime_error{"this failed: " + command};
  if (code.empty() || !any_call)
    throw std::runtime_error{"found no calls in the output of " + command};
  return code;
}

counts step(const std::function<void()>& call, const void* entry,
            const std::set<std::uintptr_t>& opaque,
            const std::map<std::uintptr_t, instruction>& code) {
  constexpr int limit = 100'000;
  tracee running{call};
  running.run_to(reinterpret_cast<std::uintptr_t>(entry));
  user_regs_struct at = running.registers();
  const std::uintptr_t top = at.rsp;
  counts found;
  for (int i = 0; at.rsp <= top; ++i) {
    if (i == limit) throw std::runtime_error{"the measured function does not return"};
    const auto each = code.find(at.rip);
    if (each == code.end() || opaque.contains(at.rip)) {
      ++found.opaque;
      running.run_to(running.word(at.rsp));
    } else {
      ++found.instructions;
      found.stores += each->second.stores;
      found.calls += each->second.calls;
      found.frame = std::max(found.frame, static_cast<unsigned>(top - at.rsp));
      running.step();
    }
    at = running.registers();
  }
  return found;
}

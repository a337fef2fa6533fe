// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <set>

/// What an instruction does to the counts, by its address.
struct instruction {
  bool stores = false;
  bool calls = false;
};

/// This program's own code as objdump prints it. Throws where objdump gives nothing usable.
std::map<std::uintptr_t, instruction> disassemble_self();

struct counts {
  unsigned instructions = 0;
  unsigned stores = 0;
  unsigned calls = 0;   ///< call instructions
  unsigned opaque = 0;  ///< entries into functions not counted, by call or jump
  unsigned frame = 0;   ///< bytes of stack below the return address
};

/// Runs `call` in a child process and counts, instruction by instruction, from the entry of the
/// function at `entry` until it returns. Bodies of `opaque` functions and of other libraries' are
/// run, not counted. Throws where the function is not reached.
counts step(const std::function<void()>& call, const void* entry,
            const std::set<std::uintptr_t>& opaque,
            const std::map<std::uintptr_t, instruction>& code);

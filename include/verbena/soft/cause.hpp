// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cstdint>

namespace verbena::soft {

/// Why the software device failed a request, as its completions' vendor_err says beside the
/// status; 0 where the status says it all.
enum class cause : std::uint32_t {
  unsaid = 0,
  memory_forbidden = 0x736f'6601,
  atomic_not_shared = 0x736f'6602,
  memory_unmapped = 0x736f'6603,
};

/// One sentence, static text; null for other numbers.
constexpr const char* explain_vendor_error(std::uint32_t number) noexcept {
  switch (static_cast<cause>(number)) {
    case cause::memory_forbidden:
      return "the system forbids the software device access to the other process's memory "
             "(process_vm_readv, process_vm_writev: Yama's ptrace_scope, seccomp, a container): "
             "use memory from device::allocate, or allow ptrace between the two processes";
    case cause::atomic_not_shared:
      return "the software device can not do an atomic on another process's memory that is not "
             "shared: the peer must take the memory from device::allocate";
    case cause::memory_unmapped:
      return "memory registered with the software device, here or at the peer, has been "
             "unmapped or protected since: deregister memory before it goes";
    case cause::unsaid: break;
  }
  return nullptr;
}

}  // namespace verbena::soft

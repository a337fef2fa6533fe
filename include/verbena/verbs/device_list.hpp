// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cstdlib>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include <verbena/verbs/device.hpp>
#include <verbena/verbs/rdma_core.hpp>

namespace verbena::verbs {

/// How the header of the software device makes itself known; null without that header.
inline result<device> (*soft_device)(std::string_view name) = nullptr;

/// Opens the device called `name`; with an empty name the one in the environment variable
/// VERBENA_DEVICE, and without that the only device there is. The software device is opened only
/// when it is named ("soft", "soft:FABRIC").
/// Errors: errc::no_device with the names of those present; errno where the device can not be
/// opened.
inline result<device> open(std::string_view name) {
  if (name.empty()) {
    if (const char* chosen = std::getenv("VERBENA_DEVICE"); chosen != nullptr) name = chosen;
  }
  if (name == "soft" || name.substr(0, 5) == "soft:") {
    if (soft_device != nullptr) return soft_device(name);
    return error{errc::no_device, "the software device \"" + std::string{name} +
                                      "\" needs #include <verbena/soft.hpp>"};
  }

  int count = 0;
  errno = 0;
  const std::unique_ptr<ibv_device* [], void (*)(ibv_device**)> list {
    ibv_get_device_list(&count), [](ibv_device** held) {
      if (held != nullptr) ibv_free_device_list(held);
    }
  };
  // Without the kernel's RDMA core the call fails with ENOSYS: that is no device, not a fault.
  if (list == nullptr && errno != ENOSYS) {
    return system_failure(null_errno(list.get()), "cannot list the RDMA devices");
  }
  std::string present;
  ibv_device* match = nullptr;
  for (ibv_device* each : std::span{list.get(), static_cast<std::size_t>(count)}) {
    present += (present.empty() ? "" : ", ") + std::string{each->name};
    if (name.empty() ? count == 1 : name == each->name) match = each;
  }
  if (match == nullptr) {
    const std::string asked =
        name.empty() ? "no device named" : "device \"" + std::string{name} + "\"";
    return error{errc::no_device,
                 asked + (count == 0 ? "; none is present" : "; present: " + present)};
  }
  errno = 0;
  ibv_context* context = ibv_open_device(match);
  BOOST_OUTCOME_TRY(checked(null_errno(context),
                            [&] { return "cannot open the device " + std::string{match->name}; }));
  return device::adopt(context, rdma_core);
}

}  // namespace verbena::verbs

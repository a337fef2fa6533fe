// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>

#include <verbena/connection/options.hpp>
#include <verbena/verbs/device.hpp>
#include <verbena/verbs/work_queue_positions.hpp>

/// An endpoint's options beside what there is: lowered where capacity::at_most says so, else
/// refused by errc::capacity with the option's name, what was asked and what is allowed.
namespace verbena::fit {

/// Lowers or refuses what the device can not do. Whose receives come to a ring asks for none.
inline result<void> to_device(const verbs::device& device, options& asked, bool has_ring) {
  const ibv_device_attr& limits = device.attributes();
  const auto depth_limit = std::min<std::uint32_t>(static_cast<std::uint32_t>(limits.max_qp_wr),
                                                   work_queue_positions::depth_limit);
  const auto pieces = static_cast<std::uint32_t>(limits.max_sge);
  struct {
    const char* name;
    std::uint32_t& value;
    std::uint32_t limit;
  } const fields[] = {{"send_depth", asked.send_depth, depth_limit},
                      {"receive_depth", asked.receive_depth, depth_limit},
                      {"send_pieces", asked.send_pieces, pieces},
                      {"receive_pieces", asked.receive_pieces, pieces}};
  for (const auto& field : fields) {
    if ((field.value != 0 || has_ring) && field.value <= field.limit) continue;
    if (field.value == 0 || asked.capacity == capacity::exact) {
      return error{errc::capacity, std::string{field.name} + " " + std::to_string(field.value) +
                                       "; " + device.name() + " allows 1 to " +
                                       std::to_string(field.limit)};
    }
    field.value = field.limit;
  }
  const auto named = static_cast<unsigned>(asked.max_mtu);
  if (named < IBV_MTU_256 || named > IBV_MTU_4096) {
    return error{std::make_error_code(std::errc::invalid_argument),
                 "max_mtu " + std::to_string(named) + " is none of the enumerators of mtu, " +
                     std::to_string(IBV_MTU_256) + " to " + std::to_string(IBV_MTU_4096)};
  }
  asked.retries = std::min<std::uint8_t>(asked.retries, 7);
  asked.receiver_not_ready_retries = std::min<std::uint8_t>(asked.receiver_not_ready_retries, 7);
  const auto clamp_reads = [](std::uint8_t wanted, int most) {
    return static_cast<std::uint8_t>(std::min<int>(wanted, std::max(most, 0)));
  };
  asked.reads_asked = clamp_reads(asked.reads_asked, limits.max_qp_init_rd_atom);
  asked.reads_answered = clamp_reads(asked.reads_answered, limits.max_qp_rd_atom);
  return success();
}

/// Lowers or refuses depths that no completion queue of the device can hold together.
inline result<void> to_completion_queue(const verbs::device& device, options& asked) {
  const auto most = static_cast<std::uint32_t>(device.attributes().max_cqe);
  if (asked.send_depth + asked.receive_depth <= most) return success();
  if (asked.capacity == capacity::exact || most < 2) {
    return error{errc::capacity, "send_depth " + std::to_string(asked.send_depth) +
                                     " and receive_depth " + std::to_string(asked.receive_depth) +
                                     "; a completion queue of " + device.name() + " holds " +
                                     std::to_string(most)};
  }
  asked.receive_depth = std::min(asked.receive_depth, most - std::min(asked.send_depth, most / 2));
  asked.send_depth = std::min(asked.send_depth, most - asked.receive_depth);
  return success();
}

/// Refuses a queue pair that was granted less than was asked.
inline result<void> to_grant(const verbs::device& device, const options& asked,
                             const ibv_qp_cap& granted) {
  struct {
    const char* name;
    std::uint32_t wanted;
    std::uint32_t got;
  } const fields[] = {{"send_depth", asked.send_depth, granted.max_send_wr},
                      {"receive_depth", asked.receive_depth, granted.max_recv_wr},
                      {"send_pieces", asked.send_pieces, granted.max_send_sge},
                      {"receive_pieces", asked.receive_pieces, granted.max_recv_sge}};
  for (const auto& field : fields) {
    if (field.got >= field.wanted) continue;
    if (asked.capacity == capacity::at_most && field.got != 0) continue;
    return error{errc::capacity, std::string{field.name} + " " + std::to_string(field.wanted) +
                                     "; " + device.name() + " granted " +
                                     std::to_string(field.got)};
  }
  return success();
}

}  // namespace verbena::fit

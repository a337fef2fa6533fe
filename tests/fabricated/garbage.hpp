// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <random>

#include <verbena/verbs/ibverbs.hpp>

namespace fabricated {

/// What stands in fields that the verbs leave undefined. The same in every run.
class garbage {
 public:
  ibv_wc completion() {
    ibv_wc made{};
    made.wr_id = bits_();
    made.status = IBV_WC_SUCCESS;
    made.opcode = static_cast<ibv_wc_opcode>(bits_() & 0xff);
    made.vendor_err = word();
    made.byte_len = word();
    made.imm_data = word();
    made.qp_num = word();
    made.src_qp = word();
    made.wc_flags = word() & 0xff;
    made.pkey_index = static_cast<std::uint16_t>(bits_());
    made.slid = static_cast<std::uint16_t>(bits_());
    made.sl = static_cast<std::uint8_t>(bits_());
    made.dlid_path_bits = static_cast<std::uint8_t>(bits_());
    return made;
  }

 private:
  std::uint32_t word() { return static_cast<std::uint32_t>(bits_()); }
  std::mt19937_64 bits_{0x76657262656e61};
};

}  // namespace fabricated

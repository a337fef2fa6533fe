// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include <verbena/memory/descriptor.hpp>
#include <verbena/verbs/cm_id.hpp>

namespace verbena {

/// What a rejection carries: the common header, which tells the version of the end that rejects,
/// and bytes of its program. An rdma_reject carries 148 bytes (rdma_reject(3)).
struct refusal {
  static constexpr std::size_t most_bytes = 148 - descriptor_header::wire_size;

  std::array<std::byte, 148> bytes{};
  std::size_t size = descriptor_header::wire_size;

  /// Cuts off what does not fit.
  explicit refusal(std::span<const std::byte> reason = {}) noexcept {
    const std::size_t count = std::min(reason.size(), most_bytes);
    std::copy_n(reason.begin(), count, bytes.begin() + descriptor_header::wire_size);
    size += count;
    descriptor_header{descriptor_header::kind::refusal, static_cast<std::uint16_t>(size), 0, 0}
        .write(bytes);
  }

  result<void> send(const verbs::cm_id& to) const {
    return to.reject(std::span{bytes}.first(size));
  }

  /// What a program's rejection says to the one that is rejected: errc::wire_version where the
  /// versions are the reason, else errc::rejected with the bytes, as text when they are text.
  static error read(std::span<const std::byte> in) {
    const auto header = descriptor_header::read(in, descriptor_header::kind::refusal, 0);
    if (!header && header.error() == errc::wire_version) return header.error();
    if (!header || header.value().length < descriptor_header::wire_size ||
        header.value().length > in.size()) {
      return {errc::rejected, {}};
    }
    const auto reason = in.first(header.value().length).subspan(descriptor_header::wire_size);
    if (reason.empty()) return {errc::rejected, {}};
    const auto is_text = [](std::byte each) {
      return each >= std::byte{' '} && each < std::byte{0x7f};
    };
    if (!std::all_of(reason.begin(), reason.end(), is_text)) {
      return {errc::rejected, "with " + std::to_string(reason.size()) + " bytes"};
    }
    return {errc::rejected,
            "with \"" + std::string{reinterpret_cast<const char*>(reason.data()), reason.size()} +
                "\""};
  }
};

}  // namespace verbena

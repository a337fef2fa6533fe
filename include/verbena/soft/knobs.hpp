// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <string_view>

#include <verbena/soft/knob.hpp>

namespace verbena::soft {

/// Faults and limits that a test brings about, per opened device; docs/software-device.md says
/// what each does. All are deterministic. Set them when the device is opened, before the objects
/// they concern are made, or between calls; they are read with each call.
struct alignas(64) knobs {
  /// How many of the data path's faults are set: one look tells that there is none.
  std::atomic<std::uint32_t> faults{0};

  // What a device of this kind can do.
  knob iwarp{0U};
  knob max_message{1U << 30};
  knob mtu{5U};
  knob max_qp_wr{16384U};
  knob max_sge{16U};
  knob max_inline{256U};
  knob max_reads{16U};
  knob gid_holes{0U};
  knob undefined_grh{1U};
  knob round_up_depths{0U};
  knob extra_pieces{0U};
  knob grant_no_inline{0U};
  knob reuse_numbers{0U};
  knob negative_errno{0U};
  knob poison_errors{0U};

  // Faults of the data path.
  knob drop_message{faults};
  knob kill_at_message{faults};
  knob partitioned{faults};
  knob hold_completions{faults};
  knob delay_completions{faults};
  knob faulty_queue{0U};
  knob refuse_early{faults};
  knob strict_reads{faults};
  knob zero_length_2g{faults};

  // RDMA CM.
  knob cm_timeout_ms{20'000U};
  knob cm_delay_ms{0U};
  knob cm_drop_event{0U};
  knob cm_duplicate_event{0U};
  knob cm_drop_request{0U};
  knob cm_refuse{0U};
  knob cm_pad_data{1U};
};

/// A knob as it is set by name and described.
struct knob_description {
  std::string_view name;
  knob knobs::* member;
  std::string_view unit;
  std::uint32_t least;
  std::uint32_t most;
  std::string_view effect;
};

inline constexpr std::array knob_table{
    knob_description{"iwarp", &knobs::iwarp, "flag", 0, 1,
                     "an iWARP device: RC by RDMA CM alone, no immediates, no atomics, reads into "
                     "one piece whose memory peers may write; for the device's transport, set it "
                     "when opening"},
    knob_description{"max_message", &knobs::max_message, "bytes", 1, 1U << 31,
                     "`max_msg_sz` of the port; a longer message fails with `local_length`"},
    knob_description{"mtu", &knobs::mtu, "`ibv_mtu`", 1, 5,
                     "`active_mtu` of the port: 1 is 256 bytes, 5 is 4096; the longest datagram"},
    knob_description{"max_qp_wr", &knobs::max_qp_wr, "requests", 1, 1U << 16,
                     "the deepest queue that may be asked for"},
    knob_description{"max_sge", &knobs::max_sge, "pieces", 1, 64,
                     "the most pieces of a request that may be asked for"},
    knob_description{"max_inline", &knobs::max_inline, "bytes", 0, 1024,
                     "the most inline data that may be asked for; there is no query for it"},
    knob_description{"max_reads", &knobs::max_reads, "requests", 0, 128,
                     "`max_qp_rd_atom` and `max_qp_init_rd_atom` of the device"},
    knob_description{"gid_holes", &knobs::gid_holes, "bits", 0, 15,
                     "GIDs that are not there, bit 0 for the first of: link-local v1, link-local "
                     "v2, 127.0.0.1 v1, 127.0.0.1 v2"},
    knob_description{"undefined_grh", &knobs::undefined_grh, "flag", 0, 1,
                     "the first 20 of a datagram's 40 bytes of GRH hold garbage, as on RoCE v2 "
                     "over IPv4; else zeros"},
    knob_description{"round_up_depths", &knobs::round_up_depths, "flag", 0, 1,
                     "queues are granted deeper than asked for: the next power of two"},
    knob_description{"extra_pieces", &knobs::extra_pieces, "pieces", 0, 16,
                     "so many more pieces of a request are granted than asked for"},
    knob_description{"grant_no_inline", &knobs::grant_no_inline, "flag", 0, 1,
                     "queue pairs are granted no inline data whatever was asked for"},
    knob_description{"reuse_numbers", &knobs::reuse_numbers, "flag", 0, 1,
                     "the next queue pair gets the number of the one destroyed before it"},
    knob_description{"negative_errno", &knobs::negative_errno, "flag", 0, 1,
                     "posts fail with `-errno`, as rxe's and siw's do"},
    knob_description{"poison_errors", &knobs::poison_errors, "flag", 0, 1,
                     "the fields of an error completion that are undefined hold garbage"},
    knob_description{"drop_message", &knobs::drop_message, "n-th", 0, ~0U,
                     "the n-th message from now on is lost, each try of it counted; RC tries "
                     "again"},
    knob_description{"kill_at_message", &knobs::kill_at_message, "n-th", 0, ~0U,
                     "the process is killed (SIGKILL) instead of sending the n-th message from "
                     "now on"},
    knob_description{"partitioned", &knobs::partitioned, "flag", 0, 1,
                     "nothing of this device reaches another queue pair, nor another program by "
                     "RDMA CM"},
    knob_description{"hold_completions", &knobs::hold_completions, "flag", 0, 1,
                     "completions stay in the queue; set to 0 it gives them"},
    knob_description{"delay_completions", &knobs::delay_completions, "µs", 0, 60'000'000,
                     "completions can be got so much later than they are first looked for"},
    knob_description{"faulty_queue", &knobs::faulty_queue, "n-th", 0, ~0U,
                     "the completion queue that the two above concern, counted from 1 as they are "
                     "made on the device; 0: all"},
    knob_description{"refuse_early", &knobs::refuse_early, "requests", 0, 1U << 16,
                     "a queue is full with so many requests fewer than it was granted"},
    knob_description{"strict_reads", &knobs::strict_reads, "flag", 0, 1,
                     "a read or atomic fails with `remote_invalid_request` where the queue pair's "
                     "`max_rd_atomic` is over the peer's `max_dest_rd_atomic`"},
    knob_description{"zero_length_2g", &knobs::zero_length_2g, "flag", 0, 1,
                     "a piece of length 0 in a list means 2^31 bytes"},
    knob_description{"cm_timeout_ms", &knobs::cm_timeout_ms, "ms", 1, ~0U,
                     "how long a peer's answer, or its goodbye, is waited for"},
    knob_description{"cm_delay_ms", &knobs::cm_delay_ms, "ms", 0, 60'000,
                     "each event can be got so much later; the order stays"},
    knob_description{"cm_drop_event", &knobs::cm_drop_event, "n-th", 0, ~0U,
                     "the n-th event from now on is lost; requests are not counted"},
    knob_description{"cm_duplicate_event", &knobs::cm_duplicate_event, "n-th", 0, ~0U,
                     "the n-th event from now on comes twice; requests are not counted"},
    knob_description{"cm_drop_request", &knobs::cm_drop_request, "n-th", 0, ~0U,
                     "a listener ignores the n-th request from now on"},
    knob_description{"cm_refuse", &knobs::cm_refuse, "reason", 0, 0xffff,
                     "a listener refuses every request with this reason, such as 10 (stale "
                     "connection)"},
    knob_description{"cm_pad_data", &knobs::cm_pad_data, "flag", 0, 1,
                     "private data comes padded with zeros to the maximum, as on RoCE; else as "
                     "long as it was sent, as on iWARP"},
};

}  // namespace verbena::soft

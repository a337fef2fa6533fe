// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include <verbena/soft/seal.hpp>

/// What stands in the shared segment of a fabric: fixed tables, everything addressed by index.
/// Whoever reads a shared word copies it once and checks the copy. Words that more than one
/// process writes are atomics; the rest belongs to the process that owns the entry. Entries that
/// lead to memory are sealed: what does not match its seal is taken for gone.
namespace verbena::soft {

inline constexpr std::uint64_t segment_magic = 0x736f6674'766265ULL;
inline constexpr std::uint32_t segment_version = 5;

inline constexpr std::uint32_t process_limit = 64;
inline constexpr std::uint32_t queue_pair_limit = 4096;
inline constexpr std::uint32_t completion_queue_limit = 4096;
inline constexpr std::uint32_t receive_queue_limit = 4096;
inline constexpr std::uint32_t region_limit = 16384;
inline constexpr std::uint32_t arena_limit = 16384;
inline constexpr std::uint32_t none = 0xffff'ffff;

static_assert(std::atomic<std::uint64_t>::is_always_lock_free);

/// A process (one opened device of it) on the fabric. Its `owner` number, place and how often that
/// has been taken together, is never used again, so what a dead process left is known by it.
struct process_entry {
  std::atomic<std::uint32_t> owner;  ///< 0 free; else taken << 8 | place + 1
  std::atomic<std::uint32_t> pid;
  std::atomic<std::uint64_t> started;  ///< by /proc/PID/stat: tells a reused pid apart
  std::atomic<std::uint64_t> seal;
};

/// Memory that other processes can map: a file of its own beside the segment.
struct arena_entry {
  std::atomic<std::uint32_t> owner;
  std::atomic<std::uint32_t> generation;
};

/// Which arena, as what leads to it says.
struct arena_name {
  std::uint32_t index = none;
  std::uint32_t generation = 0;
};

/// A memory region. Its keys carry the place and the low bits of the generation.
struct region_entry {
  std::atomic<std::uint32_t> owner;
  std::atomic<std::uint32_t> generation;  ///< odd: alive
  std::atomic<std::uint32_t> domain;
  std::atomic<std::uint32_t> access;
  std::atomic<std::uint64_t> base;
  std::atomic<std::uint64_t> length;
  std::atomic<std::uint32_t> arena;  ///< none: other memory, reached through its process
  std::atomic<std::uint32_t> arena_generation;
  std::atomic<std::uint64_t> offset;  ///< in the arena
  std::atomic<std::uint64_t> seal;
};

/// Where a queue's ring lies; sealed. The ring is in an arena of the owner's.
struct ring_place {
  std::atomic<std::uint32_t> arena;
  std::atomic<std::uint32_t> arena_generation;
  std::atomic<std::uint32_t> mask;    ///< slots less one
  std::atomic<std::uint32_t> stride;  ///< bytes from slot to slot
  std::atomic<std::uint64_t> seal;
};

/// The longest message that travels in its completion: the owner copies it when it polls, and one
/// cache line is all that has to come from the sender.
inline constexpr std::uint32_t carried_limit = 16;

/// One completion as it waits to be polled: one cache line, which its owner only reads. `turn` is
/// written last; the slot is full when that has the position the owner looks for. Who may write the
/// slot is claimed elsewhere (see completion_claim): the owner, who looks here all the time, would
/// otherwise fetch the line in between.
struct alignas(64) completion_slot {
  std::atomic<std::uint64_t> turn;
  std::uint64_t wr_id;
  /// Of a send: its position in the send queue. Of a receive: where the bytes carried belong.
  std::uint64_t place;
  std::uint32_t key;  ///< of that memory; of what failed: its cause
  std::uint32_t byte_length;
  std::uint32_t immediate;  ///< network order
  std::uint32_t queue_pair;
  std::uint32_t source_queue_pair;
  std::uint8_t status;
  std::uint8_t opcode;
  std::uint8_t flags;
  std::uint8_t marks;  ///< see completion_mark
  std::array<std::uint64_t, carried_limit / 8> bytes;
};

enum completion_mark : std::uint8_t {
  is_solicited = 1,
  is_of_send = 2,
  carries_bytes = 4,
};

/// Who writes a slot, or has written it last: a turn word. The claims of a ring follow its slots.
using completion_claim = std::atomic<std::uint64_t>;
inline constexpr std::uint32_t completion_stride =
    sizeof(completion_slot) + sizeof(completion_claim);

/// What a completion queue's armed word says: one event for one arming, whoever fires it.
enum arming : std::uint32_t {
  disarmed = 0,
  any = 1,
  solicited = 2,
  fired = 3,  ///< the event waits to be got; the rest: and the queue has been armed again
  fired_any = 4,
  fired_solicited = 5,
};

/// A turn word: whose a slot is. Position 48 bits | the process that claimed it 14 | what 2.
enum turn : std::uint64_t { vacant = 0, claimed = 1, full = 2 };
/// What a turn word keeps of an owner number: 7 bits of the place, 7 of how often it was taken, so
/// that whoever takes the place of a dead process is not taken for it.
constexpr std::uint32_t claimer_tag(std::uint32_t owner) noexcept {
  return (owner >> 8 & 0x7f) << 7 | (owner & 0x7f);
}
constexpr std::uint64_t make_turn(std::uint64_t position, std::uint32_t owner, turn what) noexcept {
  return position << 16 | std::uint64_t{claimer_tag(owner)} << 2 | what;
}
constexpr std::uint64_t position_of(std::uint64_t word) noexcept { return word >> 16; }
constexpr std::uint32_t claimer_of(std::uint64_t word) noexcept { return (word >> 2) & 0x3fff; }
constexpr turn what_of(std::uint64_t word) noexcept { return static_cast<turn>(word & 3); }

/// The shared part of a completion queue. A cache line for what does not change, one for what
/// seldom does, and one for each side.
struct alignas(64) completion_queue_entry {
  std::atomic<std::uint32_t> owner;
  std::atomic<std::uint32_t> generation;
  ring_place ring;
  std::atomic<std::uint32_t> limit;  ///< completions it holds before it overruns
  std::atomic<std::uint32_t> wake;   ///< number of the owner's wake-up address; 0: never sleeps
  alignas(64) std::atomic<std::uint32_t> armed;  ///< see arming
  std::atomic<std::uint32_t> failed;
  std::atomic<std::uint32_t> look;  ///< set by a peer: something has happened to a queue pair here
  alignas(64) std::atomic<std::uint64_t> tail;  ///< all before it have been claimed
  std::atomic<std::uint64_t> head_seen;         ///< as those who complete last looked
  alignas(64) std::atomic<std::uint64_t> head;  ///< written by the owner
};

/// One scatter/gather entry of a receive.
struct shared_piece {
  std::uint64_t address;
  std::uint32_t length;
  std::uint32_t key;
};

/// One receive as the sender finds it; the pieces follow.
struct receive_slot {
  std::atomic<std::uint64_t> turn;
  std::uint64_t wr_id;
  std::uint32_t pieces;
  std::atomic<std::uint32_t> queue_pair;  ///< that it has been taken for; 0 until that is known
  std::atomic<std::uint64_t> told;        ///< where its completion is; see make_told
};

/// Whole cache lines, so that one side can post a slot while the other takes the next.
inline constexpr std::uint32_t receive_stride_limit = 4096;
constexpr std::uint64_t receive_stride(std::uint32_t pieces) noexcept {
  constexpr std::uint64_t line = 64;
  return (sizeof(receive_slot) + std::uint64_t{pieces} * sizeof(shared_piece) + line - 1) / line *
         line;
}

/// Completion queue 16 bits | place in it, plus 1. 0 for nowhere.
constexpr std::uint64_t make_told(std::uint32_t queue, std::uint64_t place) noexcept {
  return std::uint64_t{queue} << 48 | (place + 1);
}

/// Beside an SRQ's limit: one has been reached, and the owner has not been told yet.
inline constexpr std::uint32_t limit_reached = 0x8000'0000;

/// A receive queue, of a queue pair or shared (SRQ).
struct alignas(64) receive_queue_entry {
  std::atomic<std::uint32_t> owner;
  std::atomic<std::uint32_t> generation;
  ring_place ring;
  std::atomic<std::uint32_t> domain;
  std::atomic<std::uint32_t> limit;    ///< SRQ limit, 0 not armed; see limit_reached
  std::atomic<std::int64_t> searched;  ///< when somebody last looked for what the dead hold
  alignas(64) std::atomic<std::uint64_t> posted;
  alignas(64) std::atomic<std::uint64_t> taken;  ///< all before it have been
};

/// The shared part of a queue pair: what the peer must know to do its work.
struct alignas(64) queue_pair_entry {
  std::atomic<std::uint32_t> owner;
  std::atomic<std::uint32_t> number;  ///< 24 bits; place in the low 12
  std::atomic<std::uint32_t> type;
  std::atomic<std::uint32_t> state;  ///< an ibv_qp_state
  std::atomic<std::uint32_t> domain;
  std::atomic<std::uint32_t> access;
  std::atomic<std::uint32_t> peer;  ///< destination number
  std::atomic<std::uint32_t> qkey;
  std::atomic<std::uint32_t> receive_queue;
  std::atomic<std::uint32_t> completion_queue;  ///< of receives
  std::atomic<std::uint32_t> rnr_timer;
  std::atomic<std::uint32_t> reads_answered;
  std::atomic<std::uint32_t> mtu;
  std::atomic<std::uint32_t> trouble;  ///< set by the peer: an ibv_event_type for the owner, 0 none
  /// 1 while its owner may be touching the memory of its peer's process (of a datagram queue pair:
  /// of any). Written all the time, hence not beside what others read.
  alignas(64) std::atomic<std::uint32_t> visiting;
};

struct segment {
  std::uint64_t magic;
  std::uint32_t version;
  std::uint32_t size;
  std::uint64_t pid_namespace;  ///< which the process numbers are of; its inode, 0 unknown
  std::atomic<std::uint32_t> next_generation;  ///< of queue-pair numbers; begins anywhere
  std::array<std::atomic<std::uint32_t>, process_limit> places_taken;  ///< how often, each
  std::array<process_entry, process_limit> processes;
  std::array<arena_entry, arena_limit> arenas;
  std::array<region_entry, region_limit> regions;
  std::array<completion_queue_entry, completion_queue_limit> completion_queues;
  std::array<receive_queue_entry, receive_queue_limit> receive_queues;
  std::array<queue_pair_entry, queue_pair_limit> queue_pairs;
};

static_assert(sizeof(completion_slot) == 64);
static_assert(offsetof(queue_pair_entry, visiting) == 64);

}  // namespace verbena::soft

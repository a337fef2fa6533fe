// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <pthread.h>

#include <cerrno>
#include <mutex>
#include <vector>

#include <verbena/soft/objects.hpp>

namespace verbena::soft {

/// The devices of this process. In one that fork() makes of it, their copies post, poll and arm
/// nothing: the queues are the parent's.
class forked {
 public:
  static void watch(context& of) {
    static const int once = ::pthread_atfork(before, in_parent, in_child);
    (void)once;
    const std::scoped_lock held{guard};
    opened.push_back(&of);
  }
  static void forget(const context& of) noexcept {
    const std::scoped_lock held{guard};
    std::erase(opened, &of);
  }

 private:
  static void before() { guard.lock(); }
  static void in_parent() { guard.unlock(); }
  static void in_child() {
    for (context* each : opened) {
      ibv_context_ops& calls = each->native.ops;
      calls.post_send = [](ibv_qp*, ibv_send_wr* work, ibv_send_wr** refused) {
        *refused = work;
        return ENODEV;
      };
      calls.post_recv = [](ibv_qp*, ibv_recv_wr* work, ibv_recv_wr** refused) {
        *refused = work;
        return ENODEV;
      };
      calls.post_srq_recv = [](ibv_srq*, ibv_recv_wr* work, ibv_recv_wr** refused) {
        *refused = work;
        return ENODEV;
      };
      calls.poll_cq = [](ibv_cq*, int, ibv_wc*) { return -ENODEV; };
      calls.req_notify_cq = [](ibv_cq*, int) { return ENODEV; };
      for (const auto& place : each->queue_pairs) {
        queue_pair* const pair = place.load();
        if (pair != nullptr && pair->extended) {
          pair->native.wr_complete = [](ibv_qp_ex* native) {
            queue_pair::of(&native->qp_base).building.unlock();
            return ENODEV;
          };
        }
      }
    }
    guard.unlock();
  }

  static inline std::mutex guard;
  static inline std::vector<context*> opened;
};

}  // namespace verbena::soft

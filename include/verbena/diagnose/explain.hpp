// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <verbena/connection/failed.hpp>
#include <verbena/soft/cause.hpp>
#include <verbena/verbs/status.hpp>

namespace verbena {

/// What usually lies behind a status, and what to look at: one sentence, static text. Sources:
/// ibv_poll_cq(3), IBA 11.6.2, the kernel's rxe and siw.
constexpr const char* explain(status of) noexcept {
  switch (of) {
    case status::success: return "nothing is wrong";
    case status::local_length:
      return "the message was longer than the receive posted for it, or than the port allows: post "
             "larger "
             "receives, or agree on a maximum";
    case status::local_operation:
      return "the adapter found the request malformed, or not allowed on this kind of queue pair";
    case status::local_protection:
      return "the local memory is not registered for this: key unknown, range outside the "
             "registration, no local "
             "write, or another protection domain";
    case status::flushed:
      return "the queue pair had failed, or was closing, before this request's turn: look for the "
             "failure that came "
             "first";
    case status::memory_window:
      return "a memory window could not be bound, or a key not invalidated";
    case status::bad_response:
      return "the peer's adapter answered with something unexpected: reconnect";
    case status::local_access: return "the peer wrote with immediate to memory it may not write";
    case status::remote_invalid_request:
      return "the peer's adapter refused the kind of request: the operation is not allowed on its "
             "queue pair (see "
             "options::peer_may), its receive is shorter than the message, an atomic is not "
             "aligned, or it answers no "
             "reads";
    case status::remote_access:
      return "the peer's memory may not be used so: key wrong or withdrawn, range outside the "
             "region, or its role does "
             "not grant the operation";
    case status::remote_operation:
      return "the peer's adapter failed to finish the request: look at the peer's completions";
    case status::retry_exceeded:
      return "the peer did not answer: its process or host is gone, its queue pair is not "
             "connected, or packets do not "
             "get through (address, MTU, link)";
    case status::receiver_not_ready:
      return "the peer had no receive posted for longer than options::receiver_not_ready_retries "
             "allows: post receives "
             "earlier, or more of them";
    case status::aborted: return "the receive was given up by the adapter: post it again";
    case status::fatal: return "the completion queue or the adapter is lost: make a new connection";
    case status::response_timeout: return "the peer's adapter took too long to answer";
    case status::general: return "the adapter knows more: failed::vendor_error() has its code";
  }
  return "a status that only this adapter's vendor can explain";
}

/// The same for a failed request; more exactly where the software device knows the cause.
inline const char* explain(const failed& request) noexcept {
  const char* const known = soft::explain_vendor_error(request.vendor_error());
  return known != nullptr ? known : explain(request.status());
}

}  // namespace verbena

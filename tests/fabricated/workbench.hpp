// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include <verbena/connection/handlers.hpp>
#include <verbena/operation/send.hpp>
#include <verbena/operation/work_request_id.hpp>

#include "device.hpp"
#include "link.hpp"
#include "memory.hpp"

namespace fabricated {

/// A device, a domain in it, a link and memory to post with: what most tests need.
template <class... Policies>
struct workbench {
  explicit workbench(link_options options = {}) : link{domain, nullptr, options} {}

  device adapter;
  verbena::verbs::device opened = adapter.open();
  verbena::verbs::protection_domain domain =
      verbena::verbs::protection_domain::create(opened).value();
  fabricated::link<verbena::policies<Policies...>> link;
  scratch memory = fabricated::memory(domain);

  auto message(std::size_t size = 8) const { return verbena::send(memory.first(size)); }

  queue_pair& behind() const { return machine::of(link.native()); }
  const std::vector<posted_send>& sends() const { return behind().sends.posted; }
  const std::vector<posted_receive>& receives() const { return behind().receives.posted; }
  verbena::work_request_id send_id(std::size_t at) const { return {sends().at(at).request.wr_id}; }

  /// Polls until nothing is left; how many completions that were.
  unsigned drain() const {
    unsigned count = 0;
    const auto nobody = verbena::on([](const verbena::failed&) {});
    while (const verbena::polled found = link.queue->poll(nobody)) count += found.count();
    return count;
  }
};

}  // namespace fabricated

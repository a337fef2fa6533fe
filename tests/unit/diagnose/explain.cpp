// SPDX-License-Identifier: BSL-1.0
#include <set>
#include <string>

#include <verbena/diagnose/explain.hpp>

#include "../../catch.hpp"

namespace vb = verbena;

TEST_CASE("every status is explained, each in its own words") {
  std::set<std::string> said;
  for (const vb::status each :
       {vb::status::success, vb::status::local_length, vb::status::local_operation,
        vb::status::local_protection, vb::status::flushed, vb::status::memory_window,
        vb::status::bad_response, vb::status::local_access, vb::status::remote_invalid_request,
        vb::status::remote_access, vb::status::remote_operation, vb::status::retry_exceeded,
        vb::status::receiver_not_ready, vb::status::aborted, vb::status::fatal,
        vb::status::response_timeout, vb::status::general}) {
    const std::string text = vb::explain(each);
    CHECK(text.size() > 10);
    CHECK(said.insert(text).second);
  }
  CHECK(said.count(vb::explain(static_cast<vb::status>(200))) == 0);
}

TEST_CASE("a failed request is explained by its status") {
  const vb::failed request{vb::work_request_id::make(vb::operation::send, 0, 0, 0),
                           vb::status::retry_exceeded, 0, true};
  CHECK(vb::explain(request) == vb::explain(vb::status::retry_exceeded));
}

TEST_CASE("what the software device knows of a failure goes before its status") {
  std::set<std::string> said{vb::explain(vb::status::remote_operation)};
  for (const vb::soft::cause each :
       {vb::soft::cause::memory_forbidden, vb::soft::cause::atomic_not_shared,
        vb::soft::cause::memory_unmapped}) {
    const vb::failed request{vb::work_request_id::make(vb::operation::send, 0, 0, 0),
                             vb::status::remote_operation, static_cast<std::uint32_t>(each), true};
    const std::string text = vb::explain(request);
    CHECK(text.find("software device") != std::string::npos);
    CHECK(said.insert(text).second);
  }
  const vb::failed other{vb::work_request_id::make(vb::operation::send, 0, 0, 0),
                         vb::status::remote_operation, 129, true};
  CHECK(vb::explain(other) == vb::explain(vb::status::remote_operation));
}

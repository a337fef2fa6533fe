// SPDX-License-Identifier: BSL-1.0
#include <verbena/memory/rights.hpp>
#include <verbena/memory/role.hpp>

#include "catch.hpp"

using verbena::rights;

TEST_CASE("FC-17 every set of roles gives flags that registration accepts") {
  const auto legal = [](rights of) {
    const int flags = verbena::access_flags(of);
    const bool written = (flags & (IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC)) != 0;
    return !written || (flags & IBV_ACCESS_LOCAL_WRITE) != 0;
  };
  using namespace verbena;
  CHECK(legal(grants_of<source>));
  CHECK(legal(grants_of<sink>));
  CHECK(legal(grants_of<remote_readable>));
  CHECK(legal(grants_of<remote_writable>));
  CHECK(legal(grants_of<remote_atomic>));
  CHECK(legal(grants_of<source, remote_readable, remote_writable, remote_atomic>));
}

TEST_CASE("FC-17 roles give no more than they need") {
  using namespace verbena;
  CHECK(access_flags(grants_of<source>) == 0);
  CHECK(access_flags(grants_of<sink>) == IBV_ACCESS_LOCAL_WRITE);
  CHECK(access_flags(grants_of<remote_readable>) == IBV_ACCESS_REMOTE_READ);
  CHECK(access_flags(grants_of<remote_writable>) ==
        (IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE));
  CHECK(access_flags(grants_of<remote_atomic>) ==
        (IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_ATOMIC));
  CHECK(access_flags(grants_of<source, remote_readable>) == IBV_ACCESS_REMOTE_READ);
  CHECK(access_flags(grants_of<>) == 0);
}

TEST_CASE("rights are a set") {
  const rights both = rights::remote_read | rights::local_write;
  CHECK(verbena::allows(both, rights::remote_read));
  CHECK(verbena::allows(both, both));
  CHECK(verbena::allows(both, rights::local_read));
  CHECK_FALSE(verbena::allows(both, rights::remote_write));
  CHECK_FALSE(verbena::allows(rights::remote_read, both));
  CHECK(verbena::remote_part(both) == rights::remote_read);
  CHECK(verbena::remote_part(rights::local_write) == rights{});
}

TEST_CASE("rights have words for messages") {
  CHECK(to_string(rights{}) == "local read");
  CHECK(to_string(rights::remote_read | rights::remote_write) == "remote read, remote write");
  CHECK(to_string(rights::local_write | rights::remote_atomic) == "local write, remote atomic");
}

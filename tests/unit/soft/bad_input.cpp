// SPDX-License-Identifier: BSL-1.0
#include <dirent.h>
#include <fcntl.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstdio>
#include <fstream>
#include <set>
#include <string>
#include <vector>

#include <verbena/memory/buffer.hpp>
#include <verbena/verbs/memory_region.hpp>
#include <verbena/verbs/queue_pair.hpp>

#include "../../mentions.hpp"
#include "child.hpp"
#include "side.hpp"

using namespace soft_test;
namespace soft = verbena::soft;

namespace {

std::string path_of(const std::string& name) {
  return "/dev/shm/verbena-" + std::to_string(::geteuid()) + "-" + name.substr(5);
}

/// The files of a fabric that are there.
std::set<std::string> files_of(const std::string& name) {
  const std::string start = path_of(name).substr(9);
  std::set<std::string> found;
  DIR* const folder = ::opendir("/dev/shm");
  REQUIRE(folder != nullptr);
  while (const dirent* each = ::readdir(folder)) {
    if (std::string{each->d_name}.rfind(start, 0) == 0) found.insert(each->d_name);
  }
  ::closedir(folder);
  return found;
}

verbena::error refusal_of(const std::string& name) {
  auto opened = verbena::verbs::open(name);
  REQUIRE(!opened);
  return opened.error();
}

/// The error that the library makes of a call that has just returned null.
verbena::error said(const side& of) {
  const auto known = of.calls.why(of.native);
  REQUIRE(known.has_value());
  return *known;
}

/// How long files of this process may become, as long as it lives.
struct file_limit {
  explicit file_limit(rlim_t bytes) {
    ::getrlimit(RLIMIT_FSIZE, &before);
    rlimit now = before;
    now.rlim_cur = bytes;
    ::setrlimit(RLIMIT_FSIZE, &now);
  }
  ~file_limit() { ::setrlimit(RLIMIT_FSIZE, &before); }
  rlimit before{};
};

/// All free places of a table, as long as it lives.
template <class Table>
struct taken_places {
  taken_places(soft::fabric& on, Table& table) {
    while (auto* place = on.claim(table)) places.push_back(place);
  }
  ~taken_places() {
    for (auto* place : places) place->owner = 0;
  }
  std::vector<typename Table::value_type*> places;
};

template <class Table>
std::size_t owned(const Table& table) {
  return static_cast<std::size_t>(std::count_if(
      table.begin(), table.end(), [](const auto& each) { return each.owner.load() != 0; }));
}

std::vector<std::size_t> all_owned(const soft::segment& of) {
  return {owned(of.arenas), owned(of.regions), owned(of.completion_queues),
          owned(of.receive_queues), owned(of.queue_pairs)};
}

}  // namespace

TEST_CASE("soft: a fabric's name that can not be one", "[soft]") {
  for (const std::string name : {"soft:a/b", "soft:../x", "soft:a.b", "soft:a b", "soft:\xc3\xa4",
                                 "soft:123456789012345678901234567890123", "soft:a:b"}) {
    const verbena::error why = refusal_of(name);
    CHECK(why == std::errc::invalid_argument);
    CHECK(mentions(why, "\"" + name.substr(5) + "\""));
    CHECK(mentions(why, "32"));
  }
}

TEST_CASE("soft: a fabric's name that is taken", "[soft]") {
  const std::string name = fabric_name();
  const std::string path = path_of(name);
  const auto file = [&](mode_t mode) {
    const int made = ::open(path.c_str(), O_RDWR | O_CREAT | O_EXCL, 0600);
    REQUIRE(made >= 0);
    REQUIRE(::fchmod(made, mode) == 0);
    return made;
  };
  SECTION("by a file that others may read") {
    ::close(file(0644));
    const verbena::error why = refusal_of(name);
    CHECK(why == std::errc::permission_denied);
    CHECK(mentions(why, path));
    CHECK(mentions(why, "mode 644"));
    CHECK(mentions(why, "mode 600"));
  }
  SECTION("by another user's file") {
    const int made = file(0600);
    const bool changed = ::fchown(made, 12345, static_cast<gid_t>(-1)) == 0;
    ::close(made);
    if (!changed) {
      ::unlink(path.c_str());
      WARN("skipped: only root can give a file to another user");
      return;
    }
    const verbena::error why = refusal_of(name);
    CHECK(why == std::errc::permission_denied);
    CHECK(mentions(why, "user 12345"));
    CHECK(mentions(why, "must be of user " + std::to_string(::geteuid())));
  }
  SECTION("by a folder") {
    REQUIRE(::mkdir(path.c_str(), 0700) == 0);
    const verbena::error why = refusal_of(name);
    CHECK(mentions(why, path));
    CHECK(mentions(why, "no regular file"));
    REQUIRE(::rmdir(path.c_str()) == 0);
    return;
  }
  SECTION("by a link") {
    REQUIRE(::symlink("/etc/passwd", path.c_str()) == 0);
    CHECK(mentions(refusal_of(name), "no regular file"));
  }
  CHECK(files_of(name).size() == 1);
  ::unlink(path.c_str());
}

TEST_CASE("soft: processes of different versions", "[soft]") {
  const std::string name = fabric_name();
  const std::string path = path_of(name);
  const int file = ::open(path.c_str(), O_RDWR | O_CREAT | O_EXCL, 0600);
  REQUIRE(file >= 0);
  const auto put = [&](const auto& word, std::size_t at) {
    REQUIRE(::pwrite(file, &word, sizeof word, static_cast<off_t>(at)) == sizeof word);
  };
  put(soft::segment_magic, offsetof(soft::segment, magic));
  put(std::uint32_t{77}, offsetof(soft::segment, version));
  put(std::uint32_t{4096}, offsetof(soft::segment, size));
  std::ofstream{path + ".3-1"} << "memory of that version";
  struct flock here{};
  here.l_type = F_RDLCK;
  here.l_whence = SEEK_SET;
  here.l_len = 1;
  REQUIRE(::fcntl(file, F_OFD_SETLK, &here) == 0);  // as a process that is on the fabric does
  {
    const verbena::error why = refusal_of(name);
    CHECK(why == verbena::errc::mismatch);
    CHECK(mentions(why, path));
    CHECK(mentions(why, "version 77"));
    CHECK(mentions(why, "version " + std::to_string(soft::segment_version)));
  }
  put(std::uint64_t{0}, offsetof(soft::segment, magic));
  CHECK(refusal_of(name) == verbena::errc::mismatch);
  CHECK(mentions(refusal_of(name), "damaged"));
  struct stat found{};
  REQUIRE(::fstat(file, &found) == 0);
  CHECK(found.st_size < 4096);  // and nothing done to it
  CHECK(files_of(name).size() == 2);
  ::close(file);
  {
    const auto opened = verbena::verbs::open(name);  // nobody is on it any more: it is made anew
    CHECK(opened.has_value());
    CHECK(files_of(name).size() == 1);
  }
  CHECK(files_of(name).empty());
}

TEST_CASE("soft: files of this process may not be long enough", "[soft]") {
  const std::string name = fabric_name();
  {
    const file_limit low{65536};
    const verbena::error why = refusal_of(name);
    CHECK(why == verbena::errc::capacity);
    CHECK(mentions(why, path_of(name)));
    CHECK(mentions(why, std::to_string(sizeof(soft::segment)) + " bytes"));
    CHECK(mentions(why, "65536 (RLIMIT_FSIZE"));
  }
  CHECK(files_of(name).empty());
  side here{name};
  const auto before = files_of(name);
  const auto places = all_owned(context::of(here.native).fabric->shared());
  const file_limit low{65536};
  auto domain = verbena::verbs::protection_domain::create(here.device).value();
  auto made = verbena::buffer<std::byte, verbena::rights::local_write>::create(
      domain, std::size_t{1} << 20);
  REQUIRE(!made);
  CHECK(made.error() == verbena::errc::capacity);
  CHECK(mentions(made.error(), "1048576 bytes"));
  CHECK(mentions(made.error(), "65536 (RLIMIT_FSIZE"));
  CHECK(here.calls.create_cq(here.native, 10'000, nullptr, nullptr, 0) == nullptr);
  CHECK(said(here) == verbena::errc::capacity);
  CHECK(files_of(name) == before);
  CHECK(all_owned(context::of(here.native).fabric->shared()) == places);
}

TEST_CASE("soft: more memory than there is", "[soft]") {
  const std::string name = fabric_name();
  side here{name};
  const auto before = files_of(name);
  for (const std::size_t length : {std::size_t{1} << 45, std::size_t{1} << 62}) {
    errno = 0;
    CHECK(here.calls.allocate(here.native, length) == nullptr);
    CHECK(errno != 0);
    const verbena::error why = said(here);
    CHECK(why == verbena::errc::capacity);
    CHECK(mentions(why, std::to_string(length) + " bytes"));
    CHECK(mentions(why, "are left of the shared memory in /dev/shm"));
  }
  CHECK(files_of(name) == before);
}

TEST_CASE("soft: a shared memory that is small", "[soft]") {
  // In a mount namespace of its own; 77 where the system does not let us have one.
  const auto small = [](child& parent, const char* options) {
    const std::string outside = std::to_string(::geteuid());
    if (::unshare(CLONE_NEWNS) != 0) {
      if (::unshare(CLONE_NEWUSER | CLONE_NEWNS) != 0) ::_exit(77);
      std::ofstream{"/proc/self/uid_map"} << outside << " " << outside << " 1";
    }
    if (::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
        ::mount("none", "/dev/shm", "tmpfs", 0, options) != 0)
      ::_exit(77);
    (void)parent;
  };
  const std::string name = fabric_name();
  SECTION("too small for a fabric") {
    child with{[&](child& parent) {
      small(parent, "size=64k");
      auto opened = verbena::verbs::open(name);
      const bool right = !opened && opened.error() == verbena::errc::capacity &&
                         mentions(opened.error(), "65536 are left") && files_of(name).empty();
      ::_exit(right ? 0 : 1);
    }};
    const int ended = with.wait();
    if (ended == 77) {
      WARN("skipped: no mount namespace");
      return;
    }
    CHECK(ended == 0);
  }
  SECTION("too small for a buffer") {
    const std::string options = "size=" + std::to_string(sizeof(soft::segment) + 256 * 1024);
    child with{[&](child& parent) {
      small(parent, options.c_str());
      auto opened = verbena::verbs::open(name);
      if (!opened) ::_exit(1);
      ibv_context* const on = opened.value().native_handle();
      const auto& calls = opened.value().table();
      if (calls.allocate(on, 1 << 20) != nullptr) ::_exit(2);
      const auto why = calls.why(on);
      if (!why || *why != verbena::errc::capacity || !mentions(*why, "are left")) ::_exit(3);
      if (files_of(name).size() != 1) ::_exit(4);
      ::_exit(calls.allocate(on, 1 << 16) != nullptr ? 0 : 5);
    }};
    const int ended = with.wait();
    if (ended == 77) {
      WARN("skipped: no mount namespace");
      return;
    }
    CHECK(ended == 0);
  }
}

TEST_CASE("soft: full tables", "[soft]") {
  side here{fabric_name()};
  soft::fabric& on = *context::of(here.native).fabric;
  soft::segment& shared = on.shared();
  auto domain = verbena::verbs::protection_domain::create(here.device).value();
  ibv_cq* const queue = here.calls.create_cq(here.native, 8, nullptr, nullptr, 0);
  ibv_qp_init_attr wanted{};
  wanted.send_cq = wanted.recv_cq = queue;
  wanted.qp_type = IBV_QPT_RC;
  wanted.cap = {4, 4, 1, 1, 0};
  const auto queue_pair = [&] {
    ibv_qp_init_attr asked = wanted;
    auto made = verbena::verbs::queue_pair::create(domain, asked, nullptr);
    REQUIRE(!made);
    return made.error();
  };
  const auto is = [&](const verbena::error& why, const std::string& table, std::uint32_t places) {
    CHECK(why == verbena::errc::capacity);
    CHECK(mentions(why, "the table of " + table + " of fabric " + on.path() + ", of " +
                            std::to_string(places) + " places, is full"));
  };
  const auto before = all_owned(shared);
  SECTION("of queue pairs") {
    const taken_places all{on, shared.queue_pairs};
    const auto full = all_owned(shared);
    is(queue_pair(), "queue pairs", soft::queue_pair_limit);
    CHECK(all_owned(shared) == full);
  }
  SECTION("of receive queues") {
    const taken_places all{on, shared.receive_queues};
    const auto full = all_owned(shared);
    is(queue_pair(), "receive queues", soft::receive_queue_limit);
    ibv_srq_init_attr asked{};
    asked.attr = {4, 1, 0};
    CHECK(here.calls.create_srq(here.domain, &asked) == nullptr);
    is(said(here), "receive queues", soft::receive_queue_limit);
    CHECK(all_owned(shared) == full);
  }
  SECTION("of completion queues") {
    const taken_places all{on, shared.completion_queues};
    CHECK(here.calls.create_cq(here.native, 8, nullptr, nullptr, 0) == nullptr);
    is(said(here), "completion queues", soft::completion_queue_limit);
  }
  SECTION("of shared memory") {
    const taken_places all{on, shared.arenas};
    const auto full = all_owned(shared);
    CHECK(here.calls.allocate(here.native, 4096) == nullptr);
    is(said(here), "shared memory", soft::arena_limit);
    CHECK(here.calls.create_cq(here.native, 8, nullptr, nullptr, 0) == nullptr);
    is(said(here), "shared memory", soft::arena_limit);
    is(queue_pair(), "shared memory", soft::arena_limit);
    CHECK(all_owned(shared) == full);
  }
  SECTION("of memory regions") {
    const taken_places all{on, shared.regions};
    auto made = verbena::verbs::memory_region::create(domain, here.memory, 64, 0);
    REQUIRE(!made);
    is(made.error(), "memory regions", soft::region_limit);
    CHECK(mentions(made.error(), "cannot register 64 bytes"));
    CHECK_FALSE(mentions(made.error(), "ulimit"));
  }
  CHECK(all_owned(shared) == before);
  here.calls.destroy_cq(queue);
}

TEST_CASE("soft: a fabric with as many processes as it can have", "[soft]") {
  const std::string name = fabric_name();
  {
    std::vector<verbena::verbs::device> all;
    for (std::uint32_t i = 0; i < soft::process_limit; ++i)
      all.push_back(verbena::verbs::open(name).value());
    const verbena::error why = refusal_of(name);
    CHECK(why == verbena::errc::capacity);
    CHECK(mentions(why, "the table of processes"));
    CHECK(mentions(why, "of 64 places"));
    all.pop_back();
    CHECK(verbena::verbs::open(name).has_value());
  }
  CHECK(files_of(name).empty());
}

TEST_CASE("soft: a failure without more to say has its errno alone", "[soft]") {
  side here{fabric_name()};
  const file_limit low{65536};
  CHECK(here.calls.allocate(here.native, 1 << 20) == nullptr);
  errno = 0;
  CHECK(here.calls.create_cq(here.native, 0, nullptr, nullptr, 0) == nullptr);
  CHECK(errno == EINVAL);
  CHECK_FALSE(here.calls.why(here.native).has_value());
}

// Not under the sanitizer of undefined behaviour, which itself opens a pipe to look at the type of
// an object, and takes one that it can not look at for none.
#if defined(__has_feature)
#if __has_feature(undefined_behavior_sanitizer)
#define VERBENA_SANITIZER_NEEDS_DESCRIPTORS 1
#endif
#endif
#if !defined(VERBENA_SANITIZER_NEEDS_DESCRIPTORS)
TEST_CASE("soft: without a descriptor left that is what is said", "[soft]") {
  const std::string name = fabric_name();
  side on{name};
  ibv_cq* const queue = on.calls.create_cq(on.native, 16, nullptr, nullptr, 0);
  REQUIRE(queue != nullptr);
  rlimit before{};
  ::getrlimit(RLIMIT_NOFILE, &before);
  rlimit now = before;
  now.rlim_cur = 3;  // those that are open stay so
  ::setrlimit(RLIMIT_NOFILE, &now);
  std::vector<int> numbers;
  const auto note = [&](const void* made) { numbers.push_back(made == nullptr ? errno : 0); };
  note(on.calls.create_cq(on.native, 16, nullptr, nullptr, 0));
  note(on.calls.create_comp_channel(on.native));
  ibv_qp_init_attr pair{};
  pair.send_cq = pair.recv_cq = queue;
  pair.cap = {4, 4, 1, 1, 0};
  pair.qp_type = IBV_QPT_RC;
  note(on.calls.create_qp(on.domain, &pair));
  ibv_srq_init_attr shared{};
  shared.attr = {4, 1, 0};
  note(on.calls.create_srq(on.domain, &shared));
  note(on.calls.allocate(on.native, 4096));
  const auto again = verbena::verbs::open(name);
  ::setrlimit(RLIMIT_NOFILE, &before);
  CHECK(numbers == std::vector<int>(5, EMFILE));
  REQUIRE(!again);
  CHECK(again.error() == std::errc::too_many_files_open);
  CHECK(!mentions(again.error(), "taken"));
  on.calls.destroy_cq(queue);
}
#endif

TEST_CASE("soft: a process that can not be looked up is not taken for dead", "[soft]") {
  child other{[](child& parent) {
    parent.say(static_cast<std::uint64_t>(::getpid()));
    parent.hear();
  }};
  const auto pid = static_cast<std::uint32_t>(other.hear());
  const std::uint64_t since = verbena::soft::started(pid).value();
  constexpr std::uint32_t owner = 0x101;
  verbena::soft::process_entry entry{};
  entry.pid = pid;
  entry.started = since;
  entry.seal = verbena::soft::seal_of(owner, pid, since);
  entry.owner = owner;
  rlimit before{};
  ::getrlimit(RLIMIT_NOFILE, &before);
  rlimit now = before;
  now.rlim_cur = 3;
  ::setrlimit(RLIMIT_NOFILE, &now);
  const bool without_descriptors = lives(entry);
  ::setrlimit(RLIMIT_NOFILE, &before);
  CHECK(without_descriptors);
  CHECK(lives(entry));
  other.end();
  CHECK_FALSE(lives(entry));
}

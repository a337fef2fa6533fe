// SPDX-License-Identifier: BSL-1.0
#include <cstdlib>
#include <optional>
#include <string>

#include <verbena/verbs/device_list.hpp>

#include "catch.hpp"
#include "mentions.hpp"

namespace verbs = verbena::verbs;

namespace {

// Other files of this program may bring the software device; these tests are without it.
class no_software_device {
 public:
  no_software_device() { verbs::soft_device = nullptr; }
  no_software_device(const no_software_device&) = delete;
  no_software_device& operator=(const no_software_device&) = delete;
  ~no_software_device() { verbs::soft_device = held_; }

 private:
  decltype(verbs::soft_device) held_ = verbs::soft_device;
};

class chosen_device {
 public:
  explicit chosen_device(const char* name) {
    if (const char* before = std::getenv("VERBENA_DEVICE")) before_ = before;
    ::setenv("VERBENA_DEVICE", name, 1);
  }
  chosen_device(const chosen_device&) = delete;
  chosen_device& operator=(const chosen_device&) = delete;
  ~chosen_device() {
    if (before_) {
      ::setenv("VERBENA_DEVICE", before_->c_str(), 1);
    } else {
      ::unsetenv("VERBENA_DEVICE");
    }
  }

 private:
  std::optional<std::string> before_;
};

}  // namespace

TEST_CASE("a device that is not there is named, with those present") {
  const auto opened = verbs::open("verbena_nobody0");
  REQUIRE_FALSE(opened.has_value());
  CHECK(opened.error() == verbena::errc::no_device);
  CHECK(mentions(opened.error(), "device \"verbena_nobody0\"; "));
  const bool none = mentions(opened.error(), "none is present");
  const bool some = mentions(opened.error(), "present: ");
  CHECK((none || some));
}

TEST_CASE("without a name the environment chooses the device") {
  const chosen_device chosen{"verbena_nobody1"};
  const auto opened = verbs::open("");
  REQUIRE_FALSE(opened.has_value());
  CHECK(mentions(opened.error(), "\"verbena_nobody1\""));
  CHECK(mentions(verbs::open("verbena_nobody2").error(), "\"verbena_nobody2\""));
}

TEST_CASE("the software device is opened only when it is named, and says which header it needs") {
  const no_software_device none;
  for (const char* name : {"soft", "soft:fabric"}) {
    const auto opened = verbs::open(name);
    REQUIRE_FALSE(opened.has_value());
    CHECK(opened.error() == verbena::errc::no_device);
    CHECK(mentions(opened.error(), "#include <verbena/soft.hpp>"));
    CHECK(mentions(opened.error(), name));
  }
  CHECK_FALSE(mentions(verbs::open("software").error(), "soft.hpp"));
}

TEST_CASE("the software device is asked for by its whole name") {
  const no_software_device none;
  static std::string asked;
  verbs::soft_device = [](std::string_view name) -> verbena::result<verbs::device> {
    asked = name;
    return verbena::system_failure(EIO, "test");
  };
  CHECK(verbs::open("soft:lab").error() == std::errc::io_error);
  CHECK(asked == "soft:lab");
  const chosen_device chosen{"soft"};
  CHECK(verbs::open("").error() == std::errc::io_error);
  CHECK(asked == "soft");
}

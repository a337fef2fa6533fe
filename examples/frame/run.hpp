// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <exception>
#include <filesystem>
#include <string>

#include <fmt/format.h>

#include <verbena/verbena.hpp>

#include "frame/arguments.hpp"
#include "frame/cm_meeting.hpp"
#include "frame/descriptor_meeting.hpp"
#include "frame/device.hpp"

namespace example {

/// Plays one of the two roles with the policies that the command line names.
template <template <class, class> class Connection, template <class> class Roles>
std::string play(const arguments& given, const verbena::device& device) {
  const auto with = [&]<class Setup, class Completion>(Setup, Completion) {
    using roles = Roles<Connection<Setup, Completion>>;
    return given.listens ? roles::listen(given, device) : roles::connect(given, device);
  };
  const auto over = [&](auto setup) {
    return given.completion == "busy_poll" ? with(setup, verbena::completion::busy_poll{})
                                           : with(setup, verbena::completion::event_driven{});
  };
  return given.setup == "cm" ? over(verbena::setup::cm{}) : over(verbena::setup::descriptor{});
}

/// The main function of an example: Roles<Connection>::listen and ::connect are its two roles,
/// which return what they did. Exit status 0 done, 1 failed, 2 wrong usage, 77 the device can not
/// do it.
template <template <class, class> class Connection, template <class> class Roles>
int run(int count, char** words, const std::string& about) {
  const std::string name = std::filesystem::path{words[0]}.filename();
  arguments given;
  if (const auto ended = given.read(count, words, name, about)) return *ended;
  try {
    const verbena::device device = open_device(given);
    const std::string did = play<Connection, Roles>(given, device);
    fmt::print("{} on {}, {}, {}: {}\n", name, device.name(), given.setup, given.completion, did);
    return 0;
  } catch (const verbena::failure& failed) {
    fmt::print(stderr, "{}: {}\n", name, failed.what());
    return failed.code() == verbena::errc::not_supported ? 77 : 1;
  } catch (const std::exception& failed) {
    fmt::print(stderr, "{}: {}\n", name, failed.what());
    return 1;
  }
}

}  // namespace example

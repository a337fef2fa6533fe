// SPDX-License-Identifier: BSL-1.0
#include "frame/arguments.hpp"

#include <CLI/CLI.hpp>

namespace example {

std::optional<int> arguments::read(int count, char** words, const std::string& name,
                                   const std::string& about) {
  CLI::App app{about + "\nStart it with --listen, then once more with --connect.\n", name};
  double seconds = std::chrono::duration<double>{timeout}.count();
  const auto option = [&](const char* flag, auto& value, const char* unit, const char* meaning) {
    return app.add_option(flag, value, meaning)->type_name(unit)->capture_default_str();
  };
  // CLI11 would add the checks to the help, where the units already say it.
  const auto within = [](auto low, auto high) { return CLI::Range(low, high).description(""); };
  const auto one_of = [](const char* first, const char* second) {
    return CLI::IsMember({first, second}).description("");
  };

  auto* const listen = option("--listen", address, "[ADDRESS]", "Wait there for the other one");
  listen->expected(0, 1)->default_str(address);
  auto* const connect = app.add_option("--connect", address, "Connect to the one that waits there");
  connect->excludes(listen)->type_name("ADDRESS");
  option("--port", port, "NUMBER", "TCP port, or port of RDMA CM")->check(within(1, 65535));
  app.add_option("--device", device,
                 "RDMA device; otherwise what VERBENA_DEVICE names, or the only one there is")
      ->type_name("NAME");
  option("--setup", setup, "descriptor|cm",
         "How the two find each other, the same for both: by descriptors that TCP carries, or by "
         "RDMA CM")
      ->check(one_of("descriptor", "cm"));
  option("--completion", completion, "busy_poll|event_driven",
         "How this one waits for completions: it polls all the time, or sleeps")
      ->check(one_of("busy_poll", "event_driven"));
  option("--size", size, "BYTES", "How much at a time, the same for both")
      ->check(within(1, 1 << 30));
  option("--iterations", iterations, "COUNT", "How often, the same for both")
      ->check(within(1, 1 << 30));
  option("--timeout", seconds, "SECONDS", "The longest time to wait for anything")
      ->check(within(0.001, 86'400.0));

  try {
    app.parse(count, words);
    listens = listen->count() != 0;
    if (!listens && connect->count() == 0) throw CLI::RequiredError{"one of --listen, --connect"};
  } catch (const CLI::ParseError& ended) {
    return app.exit(ended) == 0 ? 0 : 2;
  }
  timeout =
      std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::duration<double>{seconds});
  return std::nullopt;
}

}  // namespace example

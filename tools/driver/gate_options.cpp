// Options of gates.

#include "tools/driver/options.h"

namespace mlc::driver {

std::vector<Option> GateTable(GateOptions& into) {
  const auto at_least_one = [](std::string_view option, auto& field) -> Field {
    return [option, &field](const std::string& text) {
      const int64_t count = ParseInt(option, text);
      if (count < 1) throw Error("usage", "{} {}", option, text).Expected("1 or more");
      field = std::remove_reference_t<decltype(field)>(count);
    };
  };
  std::vector<Option> table = {
      {"--units", "all|cpu|gpu|ane|reference",
       "compute units: Core ML's all (default where Core ML is available), cpu, gpu or "
       "ane; or reference, mlc's own CPU engine",
       [&into](const std::string& text) { into.units = UnitsNamed(text); }},
      {"--function", "NAME", "function to judge (default: the model's default function)",
       Into(into.function)},
      {"--timeout", "MS",
       "fail a prediction that takes longer than MS milliseconds (default 60000)",
       at_least_one("--timeout", into.timeout)},
      {"--load-timeout", "MS",
       "fail a compilation or load that takes longer than MS milliseconds (default 600000)",
       at_least_one("--load-timeout", into.load_timeout)},
      {"--cycles", "N", "a: number of compile/load cycles (default 10000)",
       at_least_one("--cycles", into.cycles)},
      {"--iterations", "N", "b, c: number of timed predictions (default 100)",
       at_least_one("--iterations", into.iterations)},
      {"--p99-ms", "MS", "b: budget for the p99 latency (required)",
       [&into](const std::string& text) {
         into.p99_ms =
             NumberWithin("--p99-ms", text, std::numeric_limits<double>::min(),
                          std::numeric_limits<double>::max(), "a number of milliseconds above 0");
       }},
      {"--source", "MODEL",
       "b: source model of the package, to compare with (default: outputs are not compared)",
       Into(into.source)},
      {"--coverage", "PCT", "c: minimum share of operations on the requested units (default 90)",
       [&into](const std::string& text) {
         into.coverage_percent = NumberWithin("--coverage", text, 0, 100, "0 to 100");
       }},
      {"--duration", "DURATION", "d: length of the soak, e.g. 90s or 30m (default 1h)",
       [&into](const std::string& text) { into.duration = ParseDuration("--duration", text); }},
  };
  for (Option& option : table) option = Common(std::move(option));
  Append(ImportTable(into.import), table);
  return table;
}

}  // namespace mlc::driver

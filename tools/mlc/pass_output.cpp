#include "tools/mlc/pass_output.h"

#include <cstdio>

#include "lib/ir/text.h"

namespace mlc::driver {

void ShowPasses(PassOptions& options) {
  options.print = [](std::string_view pass, const Program& program) {
    fmt::print(stderr, "// after {}\n{}\n", pass,
               PrintText(program, {.inline_limit = 8, .max_elements = 16}));
  };
  options.timed = [](const std::vector<passes::PassRun>& runs) {
    double total = 0;
    fmt::print(stderr, "{:<32} {:>9} {:>8}\n", "pass", "ms", "changed");
    for (const passes::PassRun& run : runs) {
      fmt::print(stderr, "{:<32} {:>9.2f} {:>8}\n", run.name, run.seconds * 1e3,
                 run.changed ? "yes" : "no");
      total += run.seconds;
    }
    fmt::print(stderr, "{:<32} {:>9.2f}\n", "total", total * 1e3);
  };
}

}  // namespace mlc::driver

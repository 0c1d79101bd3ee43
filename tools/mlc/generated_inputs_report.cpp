#include "tools/mlc/generated_inputs_report.h"

#include "lib/support/counted.h"
#include "tools/driver/model_interface.h"

namespace mlc::driver {

std::string GeneratedInputsText(const Function& function,
                                const std::map<std::string, analysis::InputRange>& made,
                                const analysis::GeneratedInputOptions& options, int samples) {
  constexpr size_t kShown = 12;
  if (made.empty()) return "";
  std::string text =
      fmt::format("inputs generated from seed {}, {}:\n", options.seed, Counted(samples, "sample"));
  size_t shown = 0;
  for (const auto& [name, range] : made) {
    if (++shown > kShown) break;
    text += fmt::format("  {}: {}{}\n", InputNameOf(function, name), Describe(range),
                        range.why.empty() ? "" : fmt::format(" ({})", range.why));
  }
  if (made.size() > kShown) text += fmt::format("  and {} more\n", made.size() - kShown);
  return text;
}

}  // namespace mlc::driver

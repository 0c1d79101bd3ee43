// Options of explanations.
#include <fmt/ranges.h>

#include "tools/driver/options.h"

namespace mlc::driver {

std::string ChipNames() {
  std::vector<std::string_view> names;
  for (const analysis::Chip& chip : analysis::Chips()) names.push_back(chip.name);
  return fmt::format("{}", fmt::join(names, ", "));
}

std::vector<Option> ExplainTable(ExplainOptions& into) {
  std::vector<Option> table = Grouped(
      OptionGroup::kUnits,
      {Common({"--units", "ane|gpu|cpu",
               "compute unit to explain (default: ane, the Neural Engine)",
               [&into](const std::string& text) { into.unit = ParseUnit("--units", text); }}),
       Common({"--chip", "NAME",
               "chip to explain (default: A14, whose Neural Engine is that of M1)",
               [&into](const std::string& text) {
                 const analysis::Chip* chip = analysis::ChipNamed(text);
                 if (!chip) {
                   std::vector<std::string_view> names;
                   for (const analysis::Chip& each : analysis::Chips()) names.push_back(each.name);
                   throw UnknownWord("--chip", text, names);
                 }
                 into.chip = *chip;
               }})});
  Append(
      Grouped(OptionGroup::kComparison, {Common({"--fail-under", "PCT",
                                                 "fail (exit code 3) if less than PCT % of the "
                                                 "work of a function can run there (default: none)",
                                                 [&into](const std::string& text) {
                                                   into.fail_under = NumberWithin(
                                                       "--fail-under", text, 0, 100, "0 to 100");
                                                 }}),
                                         {"--measured", "FILE",
                                          "list where the rules contradict a device: the output of "
                                          "mlc run --json on a Mac (default: none)",
                                          Into(into.measured)}}),
      table);
  Append(ProgramTable(into.compile), table);
  return table;
}

}  // namespace mlc::driver

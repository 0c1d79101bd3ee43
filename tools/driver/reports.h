// tools/driver/reports.h - the results of the driver as reports for readers (lib/report).
#pragma once

#include <filesystem>
#include <functional>
#include <string>

#include "lib/report/document.h"
#include "tools/driver/benchmark_report.h"
#include "tools/driver/build_history.h"
#include "tools/driver/diff.h"
#include "tools/driver/inspect.h"
#include "tools/driver/verify.h"

namespace mlc::driver {

// The worst comparison of each output and state, the worst first. `several`: names include those of
// functions.
report::Table ComparedTable(const std::vector<verify::Compared>& outputs, bool several);
// One check for each of them, and one more if nothing was compared.
std::vector<report::Check> ComparedChecks(const std::vector<verify::Compared>& outputs,
                                          bool several, const std::string& group);

// One check for each output and state; one more if nothing was compared.
report::Document VerifyReport(const std::filesystem::path& source,
                              const std::filesystem::path& package, const VerifyResult& result,
                              const VerifyOptions& options);
// Checks of predictions, and of whatever the options compare. `check` may be null.
report::Document RunReport(const std::filesystem::path& model, const BenchmarkResult& result,
                           const BenchmarkOptions& options, const BaselineCheck* check);
// Nothing is checked.
report::Document InspectReport(const std::filesystem::path& model, const InspectResult& result,
                               const InspectOptions& options);
// Checks the interface, operations and weights for differences.
report::Document DiffReport(const std::filesystem::path& a, const std::filesystem::path& b,
                            const DiffResult& result);

// Checks each variant: that it was built, and what its recipe checks. `figures` are those of all
// variants of the build; `history` begins with the oldest build.
report::Document FleetReport(const BuildReport& build,
                             const std::map<std::string, VariantFigures>& figures,
                             const std::vector<PastBuild>& history);

// The executed operations of a function with its inputs and outputs; weights and small constants
// are facts of the operations that use them. Nested blocks and repetitions are groups. `annotate` may
// be empty.
report::Graph GraphOfFunction(
    const Function& function,
    const std::function<void(const Operation&, report::Graph::Node&)>& annotate = {});
// The default function of a model with precision, decisions and placement by the rules of `mlc
// explain`. A source model is shown as `mlc compile` would write it by default, with its nodes; `what`
// says if it is shown as imported instead, because it cannot be compiled or has large weights.
struct DrawnModel {
  report::Graph graph;
  std::string what;  // a sentence
};
DrawnModel GraphOfModel(const std::filesystem::path& model, const InspectResult& result,
                        const InspectOptions& options);

}  // namespace mlc::driver

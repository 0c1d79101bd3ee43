// tools/driver/reports.h - the results of the driver as reports for readers (lib/report).
#pragma once

#include <filesystem>
#include <functional>
#include <string>

#include "lib/report/document.h"
#include "tools/driver/benchmark_report.h"
#include "tools/driver/build_history.h"
#include "tools/driver/diff.h"
#include "tools/driver/generate.h"
#include "tools/driver/inspect.h"
#include "tools/driver/measure_perplexity.h"
#include "tools/driver/parity.h"
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
// The same of parity bundles, by their names, the worst first. A bundle that could not be run has
// errors instead of a result.
struct CheckedBundle {
  std::string name;
  verify::ParityResult result = {};
  std::vector<Error> errors = {};
};
report::Document ParityReport(std::string_view command, const std::vector<CheckedBundle>& bundles);
// Checks that there is an answer or a perplexity, or the agreement of a package with its source.
report::Document PromptReport(const std::filesystem::path& model, const GenerateResult& result);
report::Document PerplexityReport(const std::filesystem::path& model,
                                  const std::filesystem::path& text,
                                  const PerplexityResult& result);
report::Document AgreementReport(const std::filesystem::path& source,
                                 const std::filesystem::path& package,
                                 const std::filesystem::path& text, const AgreementResult& result);
// One failed check for each error. `subject`: what the command was given.
report::Document ErrorReport(std::string_view command, const std::string& subject,
                             const std::vector<Error>& errors);
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
// The functions of a model with precision, decisions and placement by the rules of `mlc
// explain`. A source model is shown as `mlc compile` would write it by default, with its nodes; `what`
// says if it is shown as imported instead, because it cannot be compiled or has large weights.
struct DrawnModel {
  std::vector<report::Graph> graphs;  // titled by the names of the functions
  std::string what;                   // a sentence
};
DrawnModel GraphOfModel(const std::filesystem::path& model, const InspectResult& result,
                        const InspectOptions& options);

}  // namespace mlc::driver

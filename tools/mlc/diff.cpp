#include "tools/driver/diff.h"

#include <fmt/ranges.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "tools/driver/json_results.h"
#include "tools/driver/reports.h"
#include "tools/mlc/command.h"
#include "tools/mlc/progress_line.h"
#include "tools/mlc/terminal.h"

namespace mlc::driver {
namespace {

std::string Describe(const Operation& op) {
  std::string function = FunctionInDiff(op);
  return fmt::format("{} \"{}\"{}", op.def->name, NameInDiff(op),
                     function.empty() ? "" : " of function " + function);
}

std::string WeightText(const verify::WeightPair& weight) {
  std::string text =
      fmt::format("{} {}: {}", Describe(*weight.a), weight.param, StateText(weight.state));
  Tensor a = weight.a->constant(weight.param), b = weight.b->constant(weight.param);
  if (a && b && a.dims() != b.dims())
    return fmt::format("{}, {} [{}] -> {} [{}]", text, Name(a.dtype()), fmt::join(a.dims(), ", "),
                       Name(b.dtype()), fmt::join(b.dims(), ", "));
  if (a && b && a.dtype() != b.dtype())
    text += fmt::format(", {} -> {}", Name(a.dtype()), Name(b.dtype()));
  return fmt::format("{}, largest difference {:.3g}", text, weight.largest_difference);
}

std::string ChangesText(const std::vector<std::string>& changes, size_t limit) {
  size_t shown = std::min(limit, changes.size());
  std::string text = fmt::format(
      "{}", fmt::join(changes.begin(), changes.begin() + static_cast<ptrdiff_t>(shown), "; "));
  return shown < changes.size()
             ? fmt::format("{}; ... {} more, see --all", text, changes.size() - shown)
             : text;
}

struct DiffArguments {
  std::filesystem::path a, b;
  bool all = false;
  std::vector<std::filesystem::path> reports;
};

int RunDiff(const DiffArguments& given, Session& session) {
  const DiffResult result = [&] {
    ProgressLine line(session);
    return Diff(given.a, given.b, session.diagnostics, line.Showing());
  }();
  const verify::ProgramDiff& diff = result.found;
  int code = diff.same() ? 0 : 3;
  if (!given.reports.empty()) WriteReports(DiffReport(given.a, given.b, result), given.reports);
  if (session.json) {
    PrintDocument(DiffJson(result));
    return code;
  }
  size_t limit = given.all ? SIZE_MAX : 20, shown = 0, hidden = 0;
  auto line = [&](const std::string& text) {
    ++shown <= limit ? fmt::print("  {}\n", text) : void(++hidden);
  };
  auto rest = [&] {
    if (hidden > 0) fmt::print("  ... {} more, see --all\n", hidden);
    shown = hidden = 0;
  };
  if (!diff.interface.empty()) fmt::print("interface\n");
  for (const std::string& text : diff.interface) line(text);
  rest();
  fmt::print("operations  {} matched, {} differ\n", diff.matched, diff.operations.size());
  for (const verify::OperationPair& pair : diff.operations) {
    if (!pair.b)
      line("- " + Describe(*pair.a));
    else if (!pair.a)
      line("+ " + Describe(*pair.b));
    else
      line(fmt::format("~ {}: {}", Describe(*pair.a), ChangesText(pair.changes, limit)));
  }
  rest();
  int64_t count[3] = {};
  double largest = 0;
  for (const verify::WeightPair& weight : diff.weights) {
    ++count[static_cast<int>(weight.state)];
    if (std::isfinite(weight.largest_difference))
      largest = std::max(largest, weight.largest_difference);
  }
  fmt::print("weights     {} equal, {} close, {} changed{}\n", count[0], count[1], count[2],
             largest > 0 ? fmt::format(", largest difference {:.3g}", largest) : "");
  for (const verify::WeightPair& weight : diff.weights)
    if (weight.state != verify::WeightPair::State::kEqual) line(WeightText(weight));
  rest();
  PrintColored(stdout, diff.same() ? "identical\n" : "different\n");
  return code;
}

}  // namespace

Command DiffCommand() {
  auto given = std::make_shared<DiffArguments>();
  return {"diff",
          "Compare the interface, operations and weights of two models",
          {"mlc diff old.mlpackage new.mlpackage",
           "mlc diff old.mlpackage new.mlpackage --all --report diff.html"},
          {{"A", "", "package, compiled bundle, MIL text or source model", Into(given->a), true},
           {"B", "", "model to compare it with", Into(given->b), true},
           {"--all", "", "show all differences (default: 20 of each kind)", Switch(given->all)},
           ReportOption(given->reports, true),
           JsonOption()},
          [given](Session& session) { return RunDiff(*given, session); },
          {},
          {"verify", "inspect"}};
}

}  // namespace mlc::driver

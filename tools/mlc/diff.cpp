#include "tools/driver/diff.h"

#include <fmt/ranges.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "tools/mlc/command.h"

namespace mlc::driver {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::string_view kStates[] = {"equal", "close", "changed"};

// Operations in MIL text may be unnamed; those without a result are named after the state that they
// write.
std::string NameOf(const Operation& op) {
  if (!op.name.empty()) return op.name;
  if (!op.results.empty()) return op.result()->name;
  return op.def->effect == Effect::kWritesState ? op.value("input")->name : "";
}

// Returns the name of the operation's function, or "" if the program has only one.
std::string FunctionOf(const Operation& op) {
  const Function& function = *op.block->function;
  return function.program->functions.size() > 1 ? function.name : "";
}

std::string Describe(const Operation& op) {
  std::string function = FunctionOf(op);
  return fmt::format("{} \"{}\"{}", op.def->name, NameOf(op),
                     function.empty() ? "" : " of function " + function);
}

Json OperationJson(const Operation* op) {
  if (!op) return nullptr;
  Json json{{"op", op->def->name}, {"name", NameOf(*op)}};
  if (std::string function = FunctionOf(*op); !function.empty()) json["function"] = function;
  return json;
}

Json ToJson(const verify::ProgramDiff& diff) {
  Json operations = Json::array(), weights = Json::array();
  for (const verify::OperationPair& pair : diff.operations)
    operations.push_back({{"first", OperationJson(pair.a)},
                          {"second", OperationJson(pair.b)},
                          {"changes", pair.changes}});
  for (const verify::WeightPair& weight : diff.weights) {
    double difference = weight.largest_difference;
    weights.push_back({{"operation", NameOf(*weight.a)},
                       {"parameter", weight.param},
                       {"state", kStates[static_cast<int>(weight.state)]},
                       {"largest_difference", std::isfinite(difference) ? Json(difference) : "inf"},
                       {"bytes", {weight.bytes_a, weight.bytes_b}}});
    if (std::string function = FunctionOf(*weight.a); !function.empty())
      weights.back()["function"] = function;
  }
  return {{"same", diff.same()},
          {"interface", diff.interface},
          {"matched_operations", diff.matched},
          {"operations", operations},
          {"weights", weights}};
}

std::string WeightText(const verify::WeightPair& weight) {
  std::string text = fmt::format("{} {}: {}", Describe(*weight.a), weight.param,
                                 kStates[static_cast<int>(weight.state)]);
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
};

int RunDiff(const DiffArguments& given, Session& session) {
  const DiffResult result = Diff(given.a, given.b, session.diagnostics);
  const verify::ProgramDiff& diff = result.found;
  int code = diff.same() ? 0 : 3;
  if (session.json) {
    PrintDocument(ToJson(diff));
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
  fmt::print("{}\n", diff.same() ? "identical" : "different");
  return code;
}

}  // namespace

Command DiffCommand() {
  auto given = std::make_shared<DiffArguments>();
  return {"diff",
          "Compare the interface, operations and weights of two models",
          "mlc diff old.mlpackage new.mlpackage",
          {{"A", "", "package, compiled bundle, MIL text or source model", Into(given->a), true},
           {"B", "", "model to compare it with", Into(given->b), true},
           {"--all", "", "show all differences (default: 20 of each kind)", Switch(given->all)},
           JsonOption()},
          [given](Session& session) { return RunDiff(*given, session); }};
}

}  // namespace mlc::driver

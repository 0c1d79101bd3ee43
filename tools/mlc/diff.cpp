#include "lib/verify/diff.h"

#include <cmath>
#include <nlohmann/json.hpp>

#include "tools/mlc/model.h"

namespace mlc {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::string_view kStates[] = {"equal", "close", "changed"};

// MIL text need not name operations.
std::string NameOf(const Operation& op) {
  return op.name.empty() && !op.results.empty() ? op.result()->name : op.name;
}

Json OperationJson(const Operation* op) {
  if (!op) return nullptr;
  return {{"op", op->def->name}, {"name", NameOf(*op)}};
}

Json ToJson(const ProgramDiff& diff) {
  Json operations = Json::array(), weights = Json::array();
  for (const OperationPair& pair : diff.operations)
    operations.push_back({{"first", OperationJson(pair.a)},
                          {"second", OperationJson(pair.b)},
                          {"changes", pair.changes}});
  for (const WeightPair& weight : diff.weights) {
    double difference = weight.largest_difference;
    weights.push_back({{"operation", NameOf(*weight.a)},
                       {"parameter", weight.param},
                       {"state", kStates[static_cast<int>(weight.state)]},
                       {"largest_difference", std::isfinite(difference) ? Json(difference) : "inf"},
                       {"bytes", {weight.bytes_a, weight.bytes_b}}});
  }
  return {{"same", diff.same()},
          {"interface", diff.interface},
          {"matched_operations", diff.matched},
          {"operations", operations},
          {"weights", weights}};
}

std::string WeightText(const WeightPair& weight) {
  std::string text = fmt::format("{} \"{}\" {}: {}", weight.a->def->name, NameOf(*weight.a),
                                 weight.param, kStates[static_cast<int>(weight.state)]);
  Tensor a = weight.a->constant(weight.param), b = weight.b->constant(weight.param);
  if (a && b && a.dims() != b.dims())
    return fmt::format("{}, {} [{}] -> {} [{}]", text, Name(a.dtype()), fmt::join(a.dims(), ", "),
                       Name(b.dtype()), fmt::join(b.dims(), ", "));
  if (a && b && a.dtype() != b.dtype())
    text += fmt::format(", {} -> {}", Name(a.dtype()), Name(b.dtype()));
  return fmt::format("{}, largest difference {:.3g}", text, weight.largest_difference);
}

int DiffRun(const Invocation& invocation) {
  Program a = ImportModel(invocation.get("A"), {}, invocation.diagnostics),
          b = ImportModel(invocation.get("B"), {}, invocation.diagnostics);
  ProgramDiff diff = Diff(a, b);
  int code = diff.same() ? 0 : 3;
  if (invocation.json()) {
    fmt::print("{}\n", ToJson(diff).dump(2, ' ', false, Json::error_handler_t::replace));
    return code;
  }
  size_t limit = invocation.has("--all") ? SIZE_MAX : 20;
  size_t shown = 0, hidden = 0;
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
  for (const OperationPair& pair : diff.operations) {
    if (!pair.b)
      line(fmt::format("- {} \"{}\"", pair.a->def->name, NameOf(*pair.a)));
    else if (!pair.a)
      line(fmt::format("+ {} \"{}\"", pair.b->def->name, NameOf(*pair.b)));
    else
      line(fmt::format("~ {} \"{}\": {}", pair.a->def->name, NameOf(*pair.a),
                       fmt::join(pair.changes, "; ")));
  }
  rest();
  int64_t count[3] = {};
  double largest = 0;
  for (const WeightPair& weight : diff.weights) {
    ++count[static_cast<int>(weight.state)];
    if (std::isfinite(weight.largest_difference))
      largest = std::max(largest, weight.largest_difference);
  }
  fmt::print("weights     {} equal, {} close, {} changed{}\n", count[0], count[1], count[2],
             largest > 0 ? fmt::format(", largest difference {:.3g}", largest) : "");
  for (const WeightPair& weight : diff.weights)
    if (weight.state != WeightPair::State::kEqual) line(WeightText(weight));
  rest();
  fmt::print("{}\n", diff.same() ? "the same" : "different");
  return code;
}

}  // namespace

Command DiffCommand() {
  std::vector<Flag> flags = {{"A", "", "a package, bundle, MIL text or source model", true},
                             {"B", "", "another", true},
                             {"--all", "", "every difference (default: 20 of a kind)"},
                             {"--json", "", "one JSON document on stdout"}};
  return {"diff",
          "Compare two programs: interface, operations, weights; exit code 3 when they differ",
          "mlc diff old.mlpackage new.mlpackage", flags, DiffRun};
}

}  // namespace mlc

#include "tools/driver/operators.h"

#include <algorithm>
#include <map>

namespace mlc::driver {

ModelOperators CheckOperators(const std::filesystem::path& model, const ImportOptions& options,
                              Diagnostics& diagnostics) {
  onnx::OnnxFacts facts = onnx::ReadOnnxFacts(model);
  std::map<std::string, onnx::OnnxOperator> known;
  for (const onnx::OnnxOperator& row : onnx::OnnxOperators()) {
    auto opset = facts.opsets.find(std::string(row.domain));
    int64_t version = opset == facts.opsets.end() ? 1 : opset->second;
    if (version >= row.since && (row.until == 0 || version <= row.until))
      known.emplace(
          row.domain.empty() ? std::string(row.name) : fmt::format("{}::{}", row.domain, row.name),
          row);
  }
  ModelOperators operators;
  for (const auto& [name, count] : facts.operators) {
    auto row = known.find(name);
    operators.rows.push_back(
        {name, count, row == known.end() ? std::nullopt : std::optional(row->second)});
  }
  try {
    onnx::ImportOnnx(model, options, diagnostics);
  } catch (const Errors& several) {
    operators.errors = several.errors();
  } catch (const Error& error) {
    operators.errors = {error};
  }
  return operators;
}

namespace {

constexpr std::string_view kOnnxTitle = R"(# ONNX operators

Operators that `mlc` compiles, and from which opset version on. Written by `mlc ops --frontend onnx --markdown`.

| class | meaning |
|---|---|
| direct | one MIL operation |
| decomposed | several MIL operations |
| folded | evaluated while compiling |
| conditional | supported under the given condition; otherwise an error says why not |
| impossible | Core ML cannot express it; constant operands work where the condition says so |

)";

}  // namespace

Listing ListOnnxOperators() {
  Listing table{kOnnxTitle, {"operator", "domain", "versions", "class", "condition"}, {}};
  const onnx::OnnxOperator* last = nullptr;
  int begin = 0;
  std::string done;  // versions before the range that begins at `begin`
  std::vector<onnx::OnnxOperator> operators = onnx::OnnxOperators();
  for (const onnx::OnnxOperator& row : operators) {
    bool same = last && last->name == row.name && last->domain == row.domain &&
                last->kind == row.kind && last->condition == row.condition;
    bool follows = same && last->until + 1 == row.since;
    if (!follows) begin = row.since;
    std::string versions =
        row.until ? fmt::format("{}-{}", begin, row.until) : fmt::format("{}+", begin);
    if (!same) {
      table.rows.push_back({std::string(row.name),
                            row.domain.empty() ? "ai.onnx" : std::string(row.domain), "",
                            std::string(row.kind), std::string(row.condition)});
      done.clear();
    }
    if (!follows && same) done = table.rows.back()[2] + ", ";
    table.rows.back()[2] = done + versions;
    last = &row;
  }
  return table;
}

std::map<std::string, std::string> OnnxOperatorNames() {
  std::map<std::string, std::string> names;
  for (const onnx::OnnxOperator& row : onnx::OnnxOperators())
    names[fmt::format("{}.{}", row.domain.empty() ? "onnx" : row.domain, row.name)] =
        row.kind == "impossible" ? row.condition : "";
  return names;
}

Listing ListArchitectures(std::string_view title,
                          const std::map<std::string, std::set<std::string>>& networks) {
  Listing list{title, {"architecture", "network"}, {}};
  for (const auto& [kind, names] : networks)
    for (const std::string& name : names) list.rows.push_back({name, kind});
  std::ranges::sort(list.rows);
  return list;
}

}  // namespace mlc::driver

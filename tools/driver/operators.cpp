#include "tools/driver/operators.h"

namespace mlc {

ModelOperators CheckOperators(const std::filesystem::path& model, const ImportOptions& options,
                              Diagnostics& diagnostics) {
  OnnxFacts facts = ReadOnnxFacts(model);
  std::map<std::string, OnnxOperator> known;
  for (const OnnxOperator& row : OnnxOperators()) {
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
    ImportOnnx(model, options, diagnostics);
  } catch (const Errors& several) {
    operators.errors = several.errors();
  } catch (const Error& error) {
    operators.errors = {error};
  }
  return operators;
}

}  // namespace mlc

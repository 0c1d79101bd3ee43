#include "tools/driver/diff.h"

#include "tools/driver/import.h"

namespace mlc::driver {

DiffResult Diff(const std::filesystem::path& a, const std::filesystem::path& b,
                Diagnostics& diagnostics, const Progress& progress) {
  const auto report = [&](std::string_view step, const std::string& item = {}) {
    if (progress) progress({.name = step, .share = kUnknownShare, .item = item});
  };
  DiffResult result;
  report("importing", a.string());
  result.a = std::make_shared<Program>(Import(a, {}, diagnostics));
  report("importing", b.string());
  result.b = std::make_shared<Program>(Import(b, {}, diagnostics));
  report("comparing weights");
  result.found = verify::Diff(*result.a, *result.b);
  return result;
}

std::string_view StateText(verify::WeightPair::State state) {
  constexpr std::string_view kStates[] = {"equal", "close", "changed"};
  return kStates[static_cast<int>(state)];
}

std::string NameInDiff(const Operation& op) {
  if (!op.name.empty()) return op.name;
  if (!op.results.empty()) return op.result()->name;
  return op.def->effect == Effect::kWritesState ? op.value("input")->name : "";
}

std::string FunctionInDiff(const Operation& op) {
  const Function& function = *op.block->function;
  return function.program->functions.size() > 1 ? function.name : "";
}

}  // namespace mlc::driver

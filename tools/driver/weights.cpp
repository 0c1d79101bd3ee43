#include "tools/driver/weights.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <set>

#include "lib/ir/encoding.h"
#include "lib/ir/npy.h"
#include "lib/support/edit_distance.h"
#include "lib/support/percent_encoding.h"
#include "tools/driver/frontends.h"
#include "tools/driver/import.h"
#include "tools/driver/run_passes.h"

namespace fs = std::filesystem;

namespace mlc::driver {

namespace {

std::string WhyFixed(const Operation& op) {
  if (op.val.encoding()) return "it is compressed";
  for (const Operation* user : op.result()->users)
    if (user && user->def->is_constexpr())
      return fmt::format("it is a part of a compressed weight ({})", user->def->name);
  return "";
}

}  // namespace

std::vector<NamedWeight> WeightsOf(Program& program) {
  std::vector<NamedWeight> weights;
  for (const auto& function : program.functions)
    ForEachOperation(*function, [&](Operation* op) {
      if (op->val && op->val.dtype() != DType::kString && op->val.size() >= kLeastWeight)
        weights.push_back({op->result()->name, op, WhyFixed(*op)});
    });
  return weights;
}

NamedWeight FindWeight(Program& program, const std::string& name) {
  std::set<std::string> names;
  for (const NamedWeight& weight : WeightsOf(program)) {
    if (weight.name == name) return weight;
    names.insert(weight.name);
  }
  throw Error("bad-name", "the model has no weight \"{}\"", name)
      .Expected("{}", fmt::join(NearNames(names, name), ", "));
}

void SetWeight(Program& program, const std::string& name, const Tensor& tensor) {
  const NamedWeight first = FindWeight(program, name);
  const Tensor before = first.operation->val;
  if (!first.why_fixed.empty())
    throw Error("bad-input", "weight \"{}\" cannot be replaced: {}", name, first.why_fixed)
        .Help("replace it in the source model, or in a package that is not compressed");
  const bool rounds = IsFloat(tensor.dtype()) && IsFloat(before.dtype());
  if (tensor.dims() != before.dims() || (tensor.dtype() != before.dtype() && !rounds))
    throw Error("bad-input", "weight \"{}\": a tensor of {} [{}] is given", name,
                Name(tensor.dtype()), fmt::join(tensor.dims(), ", "))
        .Expected("{} [{}]", Name(before.dtype()), fmt::join(before.dims(), ", "));
  const Tensor converted = tensor.Cast(before.dtype());
  const std::string hash = before.hash();
  for (const NamedWeight& weight : WeightsOf(program))
    if (weight.name == name && weight.why_fixed.empty() &&
        weight.operation->val.dims() == before.dims() &&
        weight.operation->val.dtype() == before.dtype() && weight.operation->val.hash() == hash)
      weight.operation->val = converted;
}

std::vector<ExportedWeight> ExportWeights(const fs::path& model,
                                          const ExportWeightsOptions& options,
                                          Diagnostics& diagnostics) {
  Program program = Import(model, {}, diagnostics);
  std::vector<NamedWeight> chosen;
  if (options.names.empty()) {
    std::set<std::string> names;
    for (NamedWeight& weight : WeightsOf(program))
      if (names.insert(weight.name).second) chosen.push_back(std::move(weight));
  }
  for (const std::string& name : options.names) chosen.push_back(FindWeight(program, name));
  std::vector<ExportedWeight> exported;
  for (const NamedWeight& weight : chosen) {
    const fs::path file = options.output / (FileStem(weight.name) + ".npy");
    std::error_code none;
    if (fs::exists(file, none))
      throw Error("file-exists", "\"{}\" exists", file.string()).Help("choose an empty folder");
    exported.push_back({weight.name, weight.operation->val.dtype(), weight.operation->val.dims(),
                        file, weight.why_fixed});
  }
  std::error_code error;
  fs::create_directories(options.output, error);
  if (error)
    throw Error("file-io", "cannot create folder \"{}\": {}", options.output.string(),
                error.message());
  for (size_t i = 0; i < chosen.size(); ++i) {
    const Tensor& tensor = chosen[i].operation->val;
    const bool known = Bits(tensor.dtype()) >= 8 && tensor.dtype() != DType::kBf16 &&
                       tensor.dtype() != DType::kFp8E4M3FN && tensor.dtype() != DType::kFp8E5M2;
    WriteNpy(exported[i].file, known ? tensor : tensor.Cast(DType::kFp32));
  }
  return exported;
}

std::vector<std::string> SetWeights(const fs::path& model, const SetWeightsOptions& options,
                                    Diagnostics& diagnostics) {
  if (FrontendOf(model).IsSource())
    throw Error("usage", "\"{}\" is {}", model.string(), FrontendOf(model).what)
        .Expected("a package, a compiled bundle or MIL text")
        .Help("`mlc compile` makes a package from it");
  const fs::path& output = options.output;
  if (output.extension() != ".mlpackage" && output.extension() != ".mil")
    throw Error("usage", "-o: \"{}\" ends neither in .mil nor in .mlpackage", output.string());
  Program program = Import(model, {}, diagnostics);
  std::map<std::string, std::string> by_stem;
  for (const NamedWeight& weight : WeightsOf(program)) by_stem[FileStem(weight.name)] = weight.name;
  std::vector<fs::path> files;
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(options.weights, error))
    if (entry.path().extension() == ".npy") files.push_back(entry.path());
  if (error)
    throw Error("file-io", "cannot list \"{}\": {}", options.weights.string(), error.message());
  if (files.empty())
    throw Error("usage", "\"{}\" contains no .npy files", options.weights.string());
  std::ranges::sort(files);
  std::vector<std::string> set;
  std::vector<Error> errors;
  for (const fs::path& file : files) {
    const std::string stem = file.stem().string();
    const auto named = by_stem.find(stem);
    try {
      SetWeight(program, named == by_stem.end() ? stem : named->second, ReadNpy(file));
      set.push_back(named->second);
    } catch (Error& refused) {
      if (!refused.has_location()) refused.At({file.string(), ""});
      errors.push_back(refused);
    }
  }
  if (!errors.empty()) throw Errors(std::move(errors));
  WriteProgram(program, output, options.force, diagnostics);
  return set;
}

}  // namespace mlc::driver

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

// A smaller constant is rarely a weight.
constexpr int64_t kLeastWeight = 10;

std::string WhyCompressed(const Operation& op) {
  if (op.val.encoding()) return "it is compressed";
  for (const Operation* user : op.result()->users)
    if (user && user->def->is_constexpr())
      return fmt::format("it is a part of a compressed weight ({})", user->def->name);
  return "";
}

// The constants that were computed from tensors of the source, by the names of these.
using Computed = std::map<std::string, std::string>;
Computed ComputedConstants(const Program& program) {
  Computed computed;
  for (const auto& function : program.functions)
    ForEachOperation(*function, [&](Operation* op) {
      const Tensor::Provenance* from = op->val ? op->val.provenance() : nullptr;
      if (!from || from->unchanged) return;
      for (const std::string& source : from->sources) computed.emplace(source, op->result()->name);
    });
  return computed;
}

std::string WhyFixed(const Operation& op, bool states_sources, const Computed& computed) {
  if (std::string why = WhyCompressed(op); !why.empty() || !states_sources) return why;
  const Tensor::Provenance* from = op.val.provenance();
  if (!from) return "it is not a tensor of the source model";
  if (!from->unchanged)
    return fmt::format("it was computed from {}", fmt::join(from->sources, ", "));
  const auto other = computed.find(from->sources[0]);
  return other == computed.end()
             ? ""
             : fmt::format("{} was also used to compute {}", other->first, other->second);
}

bool IsUnchanged(const Tensor& tensor) {
  return tensor.provenance() && tensor.provenance()->unchanged;
}

bool IsWeight(const Tensor& tensor, bool states_sources) {
  if (!tensor || tensor.dtype() == DType::kString) return false;
  if (tensor.size() >= kLeastWeight || IsUnchanged(tensor)) return true;
  return !states_sources && IsFloat(tensor.dtype()) && tensor.rank() > 0;
}

void Replace(Program& program, const NamedWeight& weight, const Tensor& tensor) {
  const Tensor before = weight.operation->val;
  const bool rounds = IsFloat(tensor.dtype()) && IsFloat(before.dtype());
  if (tensor.dims() != before.dims() || (tensor.dtype() != before.dtype() && !rounds))
    throw Error("bad-input", "weight \"{}\": a tensor of {} [{}] is given", weight.name,
                Name(tensor.dtype()), fmt::join(tensor.dims(), ", "))
        .Expected("{} [{}]", Name(before.dtype()), fmt::join(before.dims(), ", "));
  const auto same = [&](const NamedWeight& other) {
    const Tensor& its = other.operation->val;
    if (other.operation == weight.operation) return true;
    if (!weight.source.empty()) return other.source == weight.source;
    return other.name == weight.name && WhyCompressed(*other.operation).empty() &&
           its.dims() == before.dims() && its.dtype() == before.dtype() &&
           its.hash() == before.hash();
  };
  for (const NamedWeight& other : WeightsOf(program)) {
    if (!same(other)) continue;
    Tensor& its = other.operation->val;
    Tensor made = tensor.Cast(its.dtype()).Reshaped(its.dims());
    if (its.provenance()) made = made.From(*its.provenance());
    its = std::move(made);
  }
}

[[noreturn]] void Refuse(const NamedWeight& weight, const std::string& why) {
  throw Error("bad-input", "weight \"{}\" cannot be replaced: {}", weight.name, why)
      .Help("replace it in the source model, and compile that");
}

}  // namespace

std::vector<NamedWeight> WeightsOf(Program& program) {
  const bool states = program.interface.states_sources;
  const Computed computed = ComputedConstants(program);
  std::vector<NamedWeight> weights;
  for (const auto& function : program.functions)
    ForEachOperation(*function, [&](Operation* op) {
      if (IsWeight(op->val, states))
        weights.push_back({op->result()->name,
                           IsUnchanged(op->val) ? op->val.provenance()->sources[0] : "", op,
                           WhyFixed(*op, states, computed)});
    });
  return weights;
}

NamedWeight FindWeight(Program& program, const std::string& name) {
  std::set<std::string> names;
  std::vector<NamedWeight> weights = WeightsOf(program);
  for (auto member : {&NamedWeight::name, &NamedWeight::source})
    for (NamedWeight& weight : weights) {
      if (weight.*member == name) return std::move(weight);
      names.insert(weight.*member);
    }
  names.erase("");
  const Computed computed = ComputedConstants(program);
  if (const auto used = computed.find(name); used != computed.end())
    throw Error("bad-input",
                "tensor \"{}\" of the source cannot be replaced: \"{}\" was computed "
                "from it",
                name, used->second)
        .Help("replace it in the source model, and compile that");
  throw Error("bad-name", "the model has no weight \"{}\"{}", name, DidYouMean(names, name))
      .Expected("{}", fmt::join(NearNames(names, name), ", "));
}

void SetWeight(Program& program, const std::string& name, const Tensor& tensor) {
  const NamedWeight weight = FindWeight(program, name);
  if (!weight.why_fixed.empty()) Refuse(weight, weight.why_fixed);
  Replace(program, weight, tensor);
}

void ChangeWeight(Program& program, const std::string& name, const Tensor& tensor) {
  const NamedWeight weight = FindWeight(program, name);
  if (const std::string why = WhyCompressed(*weight.operation); !why.empty()) Refuse(weight, why);
  Replace(program, weight, tensor);
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
    exported.push_back({weight.name, weight.source, weight.operation->val.dtype(),
                        weight.operation->val.dims(), file, weight.why_fixed});
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
  const std::vector<NamedWeight> weights = WeightsOf(program);
  for (const NamedWeight& weight : weights) by_stem[FileStem(weight.name)] = weight.name;
  for (const NamedWeight& weight : weights) by_stem.emplace(FileStem(weight.source), weight.source);
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

#include "tools/driver/weights.h"

#include <fmt/ranges.h>

#include <set>

#include "lib/ir/encoding.h"
#include "lib/support/edit_distance.h"

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

}  // namespace mlc::driver

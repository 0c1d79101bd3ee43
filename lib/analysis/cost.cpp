#include "lib/analysis/cost.h"

#include <algorithm>

#include "lib/ir/builder.h"

namespace mlc::analysis {

namespace {

constexpr double kUnknownTrips = 8;

void Add(const Cost& cost, double times, Cost& sum) {
  sum.multiply_adds += times * cost.multiply_adds;
  sum.elements += times * cost.elements;
}

int64_t SizeOf(const Dim& dim, const SymbolSizes& sizes) {
  return dim.is_constant() ? dim.constant() : std::max<int64_t>(dim.Evaluate(sizes).value_or(1), 0);
}

double ElementsOf(const Type& type, const SymbolSizes& sizes) {
  double elements = 1;
  for (const Dim& dim : type.shape) elements *= static_cast<double>(SizeOf(dim, sizes));
  return elements;
}

Cost CostOf(const Block& block, const SymbolSizes& sizes) {
  Cost sum;
  for (Operation* op : block.operations()) {
    if (op->def->is_const()) continue;
    if (op->def->effect == Effect::kLoop) {
      double trips = Trips(*op, sizes);
      for (const auto& nested : op->blocks) Add(CostOf(*nested, sizes), trips, sum);
      continue;
    }
    Cost own = analysis::CostOf(*op, sizes), dearest;
    for (const auto& nested : op->blocks) {
      Cost inner = CostOf(*nested, sizes);
      inner.elements = dearest.elements = std::max(dearest.elements, inner.elements);
      if (inner.multiply_adds > dearest.multiply_adds) dearest = inner;
    }
    Add(dearest, 1, sum);
    Add(own, 1, sum);
  }
  return sum;
}

void Visit(const Block& block, double times, const SymbolSizes& sizes,
           const std::function<void(const Operation&, double)>& visit) {
  for (Operation* op : block.operations()) {
    const double inner = op->def->effect == Effect::kLoop ? times * Trips(*op, sizes) : times;
    for (const auto& nested : op->blocks) Visit(*nested, inner, sizes, visit);
    visit(*op, times);
  }
}

}  // namespace

void ForEachExecution(const Function& function, const SymbolSizes& sizes,
                      const std::function<void(const Operation&, double)>& visit) {
  Visit(function.body, 1, sizes, visit);
}

std::vector<std::string> InputSymbols(const Function& function) {
  std::vector<std::string> names;
  for (const auto& input : function.body.inputs)
    for (const Dim& dim : input->type.shape) dim.CollectSymbols(names);
  return names;
}

double Trips(const Operation& loop, const SymbolSizes& sizes) {
  for (Operation* op : loop.blocks[0]->operations()) {
    if (!op->is("less")) continue;
    const Operand& limit = op->arg("y")[0];
    if (Tensor constant = limit.constant(); constant && constant.size() == 1)
      return std::max(0.0, constant.Double(0));
    if (limit.value && limit.value->elements && limit.value->elements->size() == 1)
      if (std::optional<int64_t> known = limit.value->elements->front().Evaluate(sizes))
        return static_cast<double>(std::max<int64_t>(*known, 0));
  }
  return kUnknownTrips;
}

Type Sized(Type type, const SymbolSizes& sizes) {
  for (Dim& dim : type.shape)
    if (!dim.is_constant()) dim = Dim(SizeOf(dim, sizes));
  for (Type& element : type.elements) element = Sized(std::move(element), sizes);
  return type;
}

Cost CostOf(const Operation& op, const SymbolSizes& sizes) {
  double work = 1;
  if (op.def->work) {
    OpContext::Args args(op.args().size());
    for (size_t p = 0; p < args.size(); ++p)
      for (const Operand& operand : op.args()[p])
        args[p].push_back({Sized(operand.type(), sizes), operand.constant()});
    work = WorkPerElement(OpContext(*op.def, std::move(args), &op));
  }
  Cost cost;
  for (const auto& result : op.results) {
    const double elements = ElementsOf(result->type, sizes);
    cost.elements += elements;
    cost.multiply_adds += elements * work;
  }
  return cost;
}

Cost CostOf(const Function& function, const SymbolSizes& sizes) {
  Cost cost = CostOf(function.body, sizes);
  for (const auto& input : function.body.inputs)
    if (input->type.is_tensor()) cost.inputs += ElementsOf(input->type, sizes);
  return cost;
}

}  // namespace mlc::analysis

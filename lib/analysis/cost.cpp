#include "lib/analysis/cost.h"

#include <algorithm>

#include "lib/ir/builder.h"

namespace mlc {

namespace {

constexpr double kUnknownTrips = 8;

Cost CostOf(const Block& block, const SymbolSizes& sizes) {
  Cost sum;
  for (const auto& op : block.operations()) {
    if (op->def->is_const()) continue;
    if (op->is("while_loop")) {
      double trips = Trips(*op, sizes);
      for (const auto& nested : op->blocks) {
        Cost inner = CostOf(*nested, sizes);
        sum.multiply_adds += trips * inner.multiply_adds;
        sum.elements += trips * inner.elements;
      }
      continue;
    }
    Cost own = CostOf(*op, sizes), dearest;
    for (const auto& nested : op->blocks) {
      Cost inner = CostOf(*nested, sizes);
      dearest.multiply_adds = std::max(dearest.multiply_adds, inner.multiply_adds);
      dearest.elements = std::max(dearest.elements, inner.elements);
    }
    sum.multiply_adds += own.multiply_adds + dearest.multiply_adds;
    sum.elements += own.elements + dearest.elements;
  }
  return sum;
}

}  // namespace

double Trips(const Operation& loop, const SymbolSizes& sizes) {
  for (const auto& op : loop.blocks[0]->operations()) {
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
    if (!dim.is_constant()) dim = Dim(std::max<int64_t>(dim.Evaluate(sizes).value_or(1), 0));
  for (Type& element : type.elements) element = Sized(std::move(element), sizes);
  return type;
}

Cost CostOf(const Operation& op, const SymbolSizes& sizes) {
  OpContext::Args args(op.args().size());
  for (size_t p = 0; p < args.size(); ++p)
    for (const Operand& operand : op.args()[p])
      args[p].push_back({Sized(operand.type(), sizes), operand.constant()});
  double work = WorkPerElement(OpContext(*op.def, std::move(args), &op));
  Cost cost;
  for (const auto& result : op.results) {
    double elements = 1;
    for (const Dim& dim : Sized(result->type, sizes).shape)
      elements *= static_cast<double>(dim.constant());
    cost.elements += elements;
    cost.multiply_adds += elements * work;
  }
  return cost;
}

Cost CostOf(const Function& function, const SymbolSizes& sizes) {
  return CostOf(function.body, sizes);
}

}  // namespace mlc

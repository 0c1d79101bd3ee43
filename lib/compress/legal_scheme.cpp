#include "lib/compress/legal_scheme.h"

#include <algorithm>

namespace mlc::compress {

namespace {

using Values = Scheme::Values;

// The largest divisor of a size that is at most `most` and at least `least`; otherwise the smallest
// above `most`.
int64_t NearestDivisor(int64_t size, int64_t most, int64_t least) {
  for (int64_t part = std::min(size, most); part >= least; --part)
    if (size % part == 0) return part;
  int64_t part = std::min(size, most);
  while (size % part != 0) ++part;
  return part;
}

}  // namespace

Scheme LegalScheme(const Scheme& scheme, const Dims& dims, const WeightOperand& axes,
                   std::string* stepped) {
  Scheme legal = scheme;
  auto step = [&](std::string text) {
    if (stepped) *stepped += (stepped->empty() ? "" : "; ") + std::move(text);
  };
  const int64_t outputs = dims[axes.output], inputs = dims[axes.input];
  if (scheme.values == Values::kInteger && scheme.block > 0) {
    constexpr int64_t kLeastShare = 4;
    const int64_t least = std::max<int64_t>(scheme.block / kLeastShare, 2);
    legal.block = NearestDivisor(inputs, scheme.block, std::min(least, inputs));
    if (legal.block == inputs) legal.block = Scheme::kRow;
    if (legal.block == Scheme::kRow && inputs != scheme.block)
      step(fmt::format("one scale per row, because blocks of {} do not divide {} inputs",
                       scheme.block, inputs));
    if (legal.block > 0 && legal.block != scheme.block)
      step(fmt::format("blocks of {}, because {} does not divide {} inputs", legal.block,
                       scheme.block, inputs));
  }
  if (scheme.values != Values::kPalette) return legal;
  const int64_t channels = scheme.input_groups ? inputs : outputs;
  while (outputs % legal.vector != 0) legal.vector /= 2;
  if (legal.vector != scheme.vector)
    step(fmt::format("vectors of {}, because {} does not divide {} outputs", legal.vector,
                     scheme.vector, outputs));
  if (scheme.group > 0) {
    // Vectors lie within a group.
    const int64_t units = channels / legal.vector,
                  wanted = std::max<int64_t>(scheme.group / legal.vector, 1);
    legal.group = NearestDivisor(units, wanted, (wanted + 1) / 2) * legal.vector;
    if (legal.group == channels && axes.batch == 0) legal.group = 0;
    if (legal.group == 0) legal.input_groups = false;
    if (legal.group == 0 && channels != scheme.group)
      step(fmt::format("one table, because groups of {} do not divide {} channels", scheme.group,
                       channels));
    if (legal.group > 0 && legal.group != scheme.group)
      step(fmt::format("groups of {}, because {} does not divide {} channels", legal.group,
                       scheme.group, channels));
  }
  return legal;
}

WeightOperand LegalAxes(const Scheme& scheme, const Dims& dims, const WeightOperand& axes,
                        Opset target, std::string* stepped) {
  WeightOperand legal = axes;
  const bool rows = scheme.values == Values::kInteger && scheme.block == Scheme::kRow;
  if (target >= Opset::kIos18 || !rows) return legal;
  if (ElementCount(Dims(dims.begin(), dims.begin() + axes.batch)) == 1) return legal;
  legal.batch = 0;
  if (stepped)
    *stepped += fmt::format(
        "{}the matrices of the batch share their scales, because {} has scales "
        "along one axis only",
        stepped->empty() ? "" : "; ", TargetName(target));
  return legal;
}

}  // namespace mlc::compress

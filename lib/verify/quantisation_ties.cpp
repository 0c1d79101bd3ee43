#include "lib/verify/quantisation_ties.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "lib/passes/fp16_sensitivity.h"

namespace mlc::verify {

namespace {

// Operators by name: operations that round to quantisation steps, and operations that undo the
// scaling.

// Returns the operand that the operation moves or scales element by element; null if there is none.
const Value* Through(const Operation& op) {
  if (op.is("dequantize")) return op.value("input");
  const Value* from = nullptr;
  return op.results.size() == 1 && passes::MadeOfOne(*op.result(), from) ? from : nullptr;
}

const Value* Rounded(const Operation& op) {
  return op.is("round") ? op.value("x") : op.is("quantize") ? op.value("input") : nullptr;
}

// Returns the last rounding before each output.
std::set<const Operation*> LastRoundings(const Function& function) {
  std::set<const Operation*> roundings;
  for (const Value* value : function.body.outputs())
    while (value && value->def) {
      if (Rounded(*value->def)) roundings.insert(value->def);
      value = Rounded(*value->def) ? nullptr : Through(*value->def);
    }
  return roundings;
}

// Returns the numbers before rounding, in units of quantisation steps.
std::vector<double> InSteps(const Operation& op, const Tensor& x) {
  std::vector<double> numbers = x.Doubles();
  if (!op.is("quantize")) return numbers;
  const std::vector<double> scales = op.constant("scale").Doubles();
  int64_t inner = 1;
  if (scales.size() > 1) {
    int64_t axis = op.constant("axis").Ints()[0];
    if (axis < 0) axis += x.rank();
    for (int64_t d = axis + 1; d < x.rank(); ++d) inner *= x.dims()[d];
  }
  for (size_t i = 0; i < numbers.size(); ++i)
    numbers[i] /= scales[i / static_cast<size_t>(inner) % scales.size()];
  return numbers;
}

void ToOtherSides(const std::vector<double>& numbers, double rmse, Tensor& result) {
  double low = INFINITY, high = -INFINITY, size = 0;
  for (const double number : numbers) {
    if (!std::isfinite(number)) continue;
    low = std::min(low, number);
    high = std::max(high, number);
    size = std::max({size, std::fabs(number), high - low});
  }
  const double margin = std::min(kWidestTie, rmse * size);
  std::vector<double> steps = result.Doubles();
  for (size_t i = 0; i < numbers.size(); ++i) {
    const double below = std::floor(numbers[i]), part = numbers[i] - below;
    if (!(std::fabs(part - 0.5) <= margin)) continue;
    const bool down = std::nearbyint(numbers[i]) == below;
    steps[i] += down ? 1 : -1;
  }
  // Casts do not clamp integers, so steps outside the range of the type are clamped here.
  if (result.dtype() == DType::kInt8 || result.dtype() == DType::kUint8) {
    const double least = result.dtype() == DType::kInt8 ? -128 : 0;
    for (double& step : steps) step = std::clamp(step, least, least + 255);
  }
  result = Tensor::Of<double>(result.dims(), steps).Cast(result.dtype());
}

}  // namespace

bool HasSteps(const Function& function) { return !LastRoundings(function).empty(); }

std::vector<StepResults> OtherSides(const Function& function, const std::vector<StepInputs>& steps,
                                    engine::EngineOptions options, double rmse) {
  const std::set<const Operation*> roundings = LastRoundings(function);
  std::set<const Operation*> makers;
  for (const Operation* op : roundings)
    if (Rounded(*op)->def) makers.insert(Rounded(*op)->def);
  std::vector<StepResults> results;
  std::map<const Value*, Tensor> known;
  options.observe = [&](const Operation& op, std::span<Tensor> made) {
    if (roundings.contains(&op))
      if (const auto it = known.find(Rounded(op)); it != known.end())
        ToOtherSides(InSteps(op, it->second), rmse, made[0]);
    if (makers.contains(&op))
      for (size_t i = 0; i < made.size(); ++i) known[op.result(static_cast<int>(i))] = made[i];
  };
  if (HasStates(function)) return RunSteps(function, steps, options);
  for (const StepInputs& inputs : steps) {
    for (const auto& input : function.body.inputs)
      if (const auto it = inputs.find(input->name); it != inputs.end())
        known[input.get()] = it->second;
    results.push_back(RunSteps(function, {inputs}, options)[0]);
  }
  return results;
}

std::vector<std::vector<int64_t>> TakeTies(const std::vector<StepResults>& values,
                                           const std::vector<StepResults>& own,
                                           const std::vector<StepResults>& other,
                                           std::vector<StepResults>& references) {
  std::vector<std::vector<int64_t>> ties;
  for (size_t step = 0; step < references.size(); ++step) {
    ties.emplace_back();
    for (size_t output = 0; output < references[step].outputs.size(); ++output) {
      int64_t& count = ties.back().emplace_back(0);
      Tensor& reference = references[step].outputs[output].second;
      const Tensor &value = values[step].outputs[output].second,
                   &one = own[step].outputs[output].second,
                   &two = other[step].outputs[output].second;
      if (!value || !reference || reference.dtype() == DType::kString ||
          value.dims() != reference.dims() || one.dims() != reference.dims() ||
          two.dims() != reference.dims())
        continue;
      std::vector<double> wanted = reference.Doubles();
      const std::vector<double> v = value.Doubles(), a = one.Doubles(), b = two.Doubles();
      for (size_t i = 0; i < wanted.size(); ++i) {
        const double apart = std::fabs(a[i] - b[i]);
        const auto at = [&](double number, double side) {
          return std::fabs(number - side) < apart / 2;
        };
        if (!(at(wanted[i], a[i]) && at(v[i], b[i])) && !(at(wanted[i], b[i]) && at(v[i], a[i])))
          continue;
        wanted[i] = at(v[i], a[i]) ? a[i] : b[i];
        ++count;
      }
      if (count > 0)
        reference = Tensor::Of<double>(reference.dims(), wanted).Cast(reference.dtype());
    }
  }
  return ties;
}

}  // namespace mlc::verify

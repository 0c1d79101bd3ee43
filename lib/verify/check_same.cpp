#include "lib/verify/check_same.h"

#include "lib/engine/engine.h"
#include "lib/engine/random.h"
#include "lib/verify/compare.h"

namespace mlc {

namespace {

bool Comparable(const Program& program) {
  bool random = false;
  ForEachOperation(*program.main(),
                   [&](Operation* op) { random = random || op->def->name.starts_with("random_"); });
  return !random;
}

bool ComputesInFp16(const Program& program) {
  bool half = false;
  ForEachOperation(*program.main(), [&](Operation* op) {
    for (const auto& result : op->results)
      half = half || (result->type.is_tensor() && result->type.dtype == DType::kFp16);
  });
  return half;
}

std::map<std::string, Tensor> RandomInputs(const Program& program, uint64_t seed) {
  std::map<std::string, int64_t> symbols;
  for (const auto& [name, symbol] : program.main()->symbols) symbols[name] = symbol.low;
  std::map<std::string, Tensor> inputs;
  uint64_t stream = 0;
  for (const auto& input : program.main()->body.inputs) {
    if (!input->type.is_tensor()) continue;
    Dims dims;
    for (const Dim& dim : input->type.shape) dims.push_back(dim.Evaluate(symbols).value_or(1));
    inputs[input->name] = RandomTensor(input->type.dtype, dims, seed, stream++);
  }
  return inputs;
}

}  // namespace

void CheckSame(const Program& before, const Program& after, uint64_t seed, std::string_view pass) {
  if (!Comparable(before) || !Comparable(after)) return;
  Budget budget =
      ParseBudgets(ComputesInFp16(after) && !ComputesInFp16(before) ? "fp16" : "fp32").all;
  std::map<std::string, Tensor> inputs = RandomInputs(before, seed);
  std::map<std::string, Tensor> expected = Execute(before, inputs), actual = Execute(after, inputs);
  for (size_t i = 0; i < before.main()->body.outputs().size(); ++i) {
    const std::string& name = before.main()->body.outputs()[i]->name;
    Comparison c = Compare(actual.at(after.main()->body.outputs()[i]->name), expected.at(name));
    if (!c.Within(budget))
      throw Error("check-failed",
                  fmt::format("pass {} changes output \"{}\": {}", pass, name,
                              c.mismatch.empty()
                                  ? fmt::format("max error {:.2e}, RMSE {:.2e}, {:.1f} % equal",
                                                c.max_error, c.rmse, c.equal_fraction * 100)
                                  : c.mismatch))
          .Help("--print-after shows the program before and after; --verify-each checks its form");
  }
}

}  // namespace mlc

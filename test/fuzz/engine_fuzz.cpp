// Execution: a small program that parses runs to completion or ends with an Error.
#include <chrono>

#include "lib/engine/engine.h"
#include "lib/ir/random_tensor.h"
#include "lib/ir/text.h"
#include "lib/ops/row.h"

namespace mlc {
namespace {

constexpr int64_t kMostElements = 1 << 16;  // of all values; open sizes count as 16

bool IsSmall(const Function& function) {
  int64_t total = 0;
  auto add = [&](const Type& type) {
    int64_t size = type.is_tensor() ? 1 : kMostElements;
    for (const Dim& dim : type.shape)
      size = std::min(size * std::min(dim.is_constant() ? dim.constant() : 16, kMostElements),
                      kMostElements);
    total += size;
  };
  for (const auto& input : function.body.inputs) add(input->type);
  ForEachOperation(const_cast<Function&>(function), [&](Operation* op) {
    for (const auto& result : op->results) add(result->type);
  });
  return total < kMostElements;
}

void Run(std::string_view text) {
  Program program =
      ParseText(text, "input", Ops(), [](auto&, uint64_t, DType dtype, const Dims& dims) {
        if (ElementCount(dims) > kMostElements) throw Error("resource-limit", "too large");
        return Tensor::Full(dtype, dims, 1);
      });
  const Function& function = *program.main();
  if (!IsSmall(function)) return;
  std::map<std::string, Tensor> inputs;
  for (const auto& input : function.body.inputs) {
    Dims dims;
    for (const Dim& dim : input->type.shape) dims.push_back(dim.is_constant() ? dim.constant() : 2);
    inputs[input->name] = RandomTensor(input->type.dtype, dims, 0, inputs.size());
  }
  engine::EngineOptions options;
  options.timeout = std::chrono::milliseconds(500);
  engine::Execute(program, inputs, options);
}

}  // namespace
}  // namespace mlc

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  try {
    mlc::Run({reinterpret_cast<const char*>(data), size});
  } catch (const mlc::Error&) {
  }
  return 0;
}

// test/frontends/onnx/run.h - imports and executes one-node models.
#pragma once

#include <map>
#include <numeric>
#include <set>
#include <string>
#include <vector>

#include "frontends/onnx/onnx.h"
#include "lib/engine/engine.h"
#include "test/expected_error.h"
#include "test/frontends/onnx/wire.h"
#include "test/lib/ir/tensors.h"

namespace mlc::test {

inline constexpr int kFloat = 1, kInt32 = 6, kInt64 = 7, kBool = 9;

// Returns 0, 1, 2, ... in the given shape.
inline Tensor Count(const Dims& dims) {
  std::vector<float> values(ElementCount(dims));
  std::iota(values.begin(), values.end(), 0.0f);
  return Tensor::Of(dims, values);
}

inline Program ImportBytes(const std::string& bytes) {
  Diagnostics diagnostics;
  Program program = onnx::ImportOnnx(AsBytes(bytes), {}, diagnostics);
  Verify(program);
  return program;
}

// Returns the names of the operations that the outputs depend on, without constants.
inline std::vector<std::string> OperatorsOf(const Program& program) {
  const Block& body = program.main()->body;
  std::set<const Value*> needed(body.outputs().begin(), body.outputs().end());
  std::vector<std::string> names;
  for (auto it = body.operations().rbegin(); it != body.operations().rend(); ++it) {
    const Operation& op = **it;
    bool used = false;
    for (const auto& result : op.results) used = used || needed.contains(result.get());
    if (!used || op.is("const")) continue;
    names.emplace(names.begin(), op.def->name);
    for (const Operands& operands : op.args())
      for (const Operand& operand : operands) needed.insert(operand.value);
  }
  return names;
}

// Returns the output "y".
inline Tensor RunOnnx(const std::string& bytes, const std::map<std::string, Tensor>& inputs) {
  Program program = ImportBytes(bytes);
  return engine::Execute(program, inputs, {.arithmetic = engine::EngineOptions::Arithmetic::kExact})
      .at("y");
}

// Returns the id of the first error of an import, or "".
inline std::string ErrorId(const std::string& bytes) {
  return RefusalId([&] { ImportBytes(bytes); });
}

}  // namespace mlc::test

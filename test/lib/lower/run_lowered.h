// test/lib/lower/run_lowered.h - runs a program that a function builds with the Builder on the
// engine.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "lib/engine/engine.h"
#include "lib/ir/builder.h"
#include "lib/ops/row.h"
#include "test/catch.h"
#include "test/expected_error.h"
#include "test/lib/ir/tensors.h"

namespace mlc::test {

using Lowering = std::function<std::vector<Value*>(Builder& b, const std::vector<Value*>& inputs)>;

// The results of `make` for these run-time inputs. The program is verified.
inline std::vector<Tensor> Lowered(const std::vector<Tensor>& inputs, const Lowering& make) {
  Program program{&Ops()};
  Function* main = program.Add("main");
  Diagnostics diagnostics;
  Builder b{main->body, diagnostics};
  std::vector<Value*> values;
  std::map<std::string, Tensor> given;
  for (const Tensor& input : inputs) {
    std::string name = fmt::format("x{}", values.size());
    values.push_back(main->AddInput(name, Type::Tensor(input.dtype(), ToShape(input.dims()))));
    main->inputs.push_back({.name = values.back()->name});
    given[name] = input;
  }
  std::vector<Value*> outputs = make(b, values);
  main->body.SetOutputs(outputs);
  for (const Value* output : outputs) main->outputs.push_back({.name = output->name});
  Verify(program);
  std::map<std::string, Tensor> results =
      engine::Execute(program, given, {.arithmetic = engine::EngineOptions::Arithmetic::kExact});
  std::vector<Tensor> tensors;
  for (const Value* output : outputs) tensors.push_back(results.at(output->name));
  return tensors;
}

// Checks that all elements are within `tolerance` of the expected ones.
inline void CheckNear(const Tensor& actual, const std::vector<double>& expected,
                      double tolerance = 1e-5) {
  std::vector<double> values = actual.Doubles();
  REQUIRE(values.size() == expected.size());
  for (size_t i = 0; i < values.size(); ++i) {
    INFO("element " << i);
    CHECK(std::abs(values[i] - expected[i]) <= tolerance);
  }
}

}  // namespace mlc::test

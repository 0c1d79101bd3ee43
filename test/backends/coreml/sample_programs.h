// test/backends/coreml/sample_programs.h - small programs that tests write as packages.
#pragma once

#include "lib/ir/builder.h"
#include "lib/ops/row.h"

namespace mlc::test {

// A conv with a bias, a linear and a reshape: weights in the file, immediate constants and
// defaults.
inline Program SmallNetwork(DType dtype = DType::kFp32) {
  Program program(&Ops());
  program.build_info = {{"mlc-version", "test"}};
  Function* main = program.Add("main");
  Value* x = main->AddInput("x", Type::Tensor(dtype, ToShape({1, 3, 8, 8})));
  Diagnostics diagnostics;
  Builder b(main->body, diagnostics);
  std::vector<float> weight(4 * 3 * 3 * 3), matrix(10 * 144);
  for (size_t i = 0; i < weight.size(); ++i) weight[i] = static_cast<float>(i % 7) / 7 - 0.5f;
  for (size_t i = 0; i < matrix.size(); ++i) matrix[i] = static_cast<float>(i % 11) / 11 - 0.5f;
  b.SetName("conv");
  Value* y = b.Make("conv", {{"x", x},
                             {"weight", Tensor::Of<float>({4, 3, 3, 3}, weight).Cast(dtype)},
                             {"bias", Tensor::Vector<float>({1, 2, 3, 4}).Cast(dtype)}});
  b.SetName("relu");
  y = b.Make("relu", {{"x", y}});
  b.SetName("flat");
  y = b.Make("reshape", {{"x", y}, {"shape", Ints({1, 144})}});
  b.SetName("scores");
  y = b.Make("linear", {{"x", y}, {"weight", Tensor::Of<float>({10, 144}, matrix).Cast(dtype)}});
  main->body.SetOutputs({y});
  return program;
}

// topk of x [4, 8], with or without indices.
inline Program TopK(bool indices) {
  Program program(&Ops());
  Function* main = program.Add("main");
  Value* x = main->AddInput("x", Type::Tensor(DType::kFp32, ToShape({4, 8})));
  Diagnostics diagnostics;
  Builder b(main->body, diagnostics);
  b.SetName("best");
  main->body.SetOutputs(b.MakeAll("topk", {{"x", x}, {"k", 3}, {"return_indices", indices}}));
  return program;
}

// add of two inputs [n, 4], where n is from 2 to 16 or one of `sizes`.
inline Program Flexible(std::vector<int64_t> sizes = {}) {
  Program program(&Ops());
  Function* main = program.Add("main");
  main->symbols["n"] = {2, 16, sizes};
  if (!sizes.empty()) main->symbols["n"] = {sizes.front(), sizes.back(), sizes};
  Shape shape = {Dim::Symbol("n"), Dim(4)};
  Value* x = main->AddInput("x", Type::Tensor(DType::kFp32, shape));
  Value* y = sizes.empty() ? main->AddInput("y", Type::Tensor(DType::kFp32, shape)) : x;
  Diagnostics diagnostics;
  Builder b(main->body, diagnostics);
  main->body.SetOutputs({b.Make("add", {{"x", x}, {"y", y}})});
  return program;
}

// Outputs that Core ML does not support: an input, a duplicate, a constant.
inline Program OddOutputs() {
  Program program(&Ops());
  Function* main = program.Add("main");
  Value* x = main->AddInput("x", Type::Tensor(DType::kFp32, ToShape({2})));
  Diagnostics diagnostics;
  Builder b(main->body, diagnostics);
  b.SetName("y");
  Value* y = b.Make("relu", {{"x", x}});
  Value* c = b.Const(Tensor::Vector<float>({1, 2}), "c");
  main->body.SetOutputs({x, y, y, c});
  for (const char* name : {"same", "y", "again", "c"}) {
    Port port;
    port.name = name;
    main->outputs.push_back(port);
  }
  return program;
}

}  // namespace mlc::test

// test/lib/ir/encoded_constant_program.h - a program that adds an encoded constant to its input.
#pragma once

#include "lib/ir/builder.h"
#include "lib/ir/encoding.h"
#include "lib/ops/row.h"

namespace mlc::test {

// y = x + w, where w is the constant.
inline Program AddsConstant(const Tensor& constant) {
  Program program(&Ops());
  Function* main = program.Add("main");
  Value* x = main->AddInput("x", Type::Tensor(constant.dtype(), ToShape(constant.dims())));
  Diagnostics diagnostics;
  Builder b(main->body, diagnostics);
  Value* w = b.Const(constant, "w");
  b.SetName("y");
  main->body.SetOutputs({b.Make("add", {{"x", x}, {"y", w}})});
  Port in, out;
  in.name = "x";
  out.name = "y";
  main->inputs = {in};
  main->outputs = {out};
  return program;
}

}  // namespace mlc::test

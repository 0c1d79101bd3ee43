// test/lib/ops/evaluate.h - infers and evaluates a single operator on given operands, without a
// program.
#pragma once

#include <limits>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "lib/ir/program.h"
#include "lib/ops/row.h"
#include "test/lib/ir/tensors.h"

namespace mlc::test {

inline constexpr double kInf = std::numeric_limits<double>::infinity();
inline constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

// An operand: a value, or a type with optional known elements. The operands of a variadic parameter
// repeat its name.
struct In {
  std::string_view param;
  Tensor value;
  Type type;
  std::optional<std::vector<Dim>> elements;  // if known symbolically
  In(std::string_view p, Tensor v)
      : param(p), value(v), type(Type::Tensor(v.dtype(), ToShape(v.dims()))) {}
  In(std::string_view p, Type t, std::vector<Dim> known = {}) : param(p), type(std::move(t)) {
    if (!known.empty()) elements = std::move(known);
  }
};

inline OpContext::Args ArgsOf(const OpDef& def, const std::vector<In>& in) {
  OpContext::Args args(def.canonical().params.size());
  for (const In& each : in) {
    int index = def.Find(each.param);
    MLC_CHECK(index >= 0, "{} has no parameter {}", def.name, each.param);
    args[index].push_back({each.type, each.value, each.elements});
  }
  return args;
}

inline InferContext Infer(std::string_view op, const std::vector<In>& in) {
  const OpDef& def = Ops().At(op);
  InferContext context(def, ArgsOf(def, in));
  def.infer(context);
  return context;
}

// Also checks that eval returns the types that infer states.
inline std::vector<Tensor> EvaluateAll(std::string_view op, const std::vector<In>& in) {
  InferContext inferred = Infer(op, in);
  const OpDef& def = Ops().At(op);
  EvalContext context(def, ArgsOf(def, in), inferred.results);
  def.eval(context);
  MLC_CHECK(context.results.size() == inferred.results.size(), "{}: number of results", op);
  for (size_t i = 0; i < context.results.size(); ++i)
    MLC_CHECK(context.results[i].dtype() == context.out_dtype(i) &&
                  context.results[i].dims() == context.out_dims(i),
              "{}: result {} is not {}", op, i, inferred.results[i].ToString());
  return context.results;
}
inline Tensor Evaluate(std::string_view op, const std::vector<In>& in) {
  return EvaluateAll(op, in).at(0);
}

// Returns whether values agree within a relative or absolute tolerance; NaN equals NaN, and
// infinities are exact.
inline bool Near(const std::vector<double>& got, const std::vector<double>& expected,
                 double tolerance) {
  if (got.size() != expected.size()) return false;
  for (size_t i = 0; i < got.size(); ++i) {
    double a = got[i], b = expected[i];
    if (a == b || (a != a && b != b)) continue;
    if (!(std::fabs(a - b) <= tolerance * std::max(1.0, std::fabs(b)))) return false;
  }
  return true;
}

}  // namespace mlc::test

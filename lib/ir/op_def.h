// lib/ir/op_def.h - what an operator is: its parameters in every version ("form"), inference and
// evaluation.
//
// The table itself is in lib/ops; here are the types through which builder, verifier, text and
// backends see it.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "lib/ir/tensor.h"
#include "lib/ir/type.h"
#include "lib/support/error.h"

namespace mlc {

class Operation;
class OpDef;
class Value;

// Core ML targets by specification version; the opset of an operator form is the first that has it.
enum class Opset : int { kIos15 = 6, kIos16 = 7, kIos17 = 8, kIos18 = 9, kIos26 = 10 };
std::string_view TargetName(Opset opset);                    // "iOS16"
std::string_view OpsetName(Opset opset);                     // "CoreML6"
std::optional<Opset> ParseTarget(std::string_view name);     // "iOS17", "macOS14", any case
std::optional<Opset> ParseOpsetName(std::string_view name);  // "CoreML7"

struct Param {
  enum class Default : uint8_t { kRequired, kOptional, kLiteral, kComputed };
  enum class Kind : uint8_t { kTensor, kList, kState, kAny };  // kAny: a tensor or a list
  std::string_view name;
  Kind kind = Kind::kTensor;
  bool is_const = false;  // must be a compile-time constant
  bool variadic = false;  // a tuple of values, e.g. concat's values; perhaps none
  char domain =
      0;  // 'T', 'U', ...: all parameters of one letter share a dtype; 0: `types` stands alone
  DTypeSet types = 0;  // allowed element types
  Default default_kind = Default::kRequired;
  std::string_view default_text;  // kLiteral: "1", "valid", "true", "1e-05"
};

// One version of an operator.
struct Form {
  Opset since;
  std::vector<Param> params;
  int Find(std::string_view name) const;  // index or -1
};

// Access to an operation's operands by name, for compile time (values may be unknown) and run time
// (all are known).
class OpContext {
 public:
  struct Arg {
    Type type;
    Tensor value;                 // empty when not known at compile time
    const Value* from = nullptr;  // the operand, at compile time, when it is not a literal
  };
  OpContext(const OpDef& def, std::vector<std::vector<Arg>> args, const Operation* op = nullptr)
      : def_(def), args_(std::move(args)), op_(op) {}

  const OpDef& def() const { return def_; }
  const Operation* operation() const { return op_; }  // null at run time
  bool has(std::string_view name) const;              // given explicitly
  int count(std::string_view name) const;             // operands of a variadic parameter
  const Type& type(std::string_view name, int i = 0) const;
  const Shape& shape(std::string_view name, int i = 0) const { return type(name, i).shape; }
  DType dtype(std::string_view name, int i = 0) const { return type(name, i).dtype; }
  int rank(std::string_view name, int i = 0) const { return type(name, i).rank(); }
  // The constant, or the row's literal default; an empty Tensor when it is absent or not known.
  Tensor value(std::string_view name, int i = 0) const;
  // As value(), for operands that must be constant: Error "needs-constant" when unknown.
  int64_t Int(std::string_view name) const;
  double Double(std::string_view name) const;
  bool Bool(std::string_view name) const;
  std::string String(std::string_view name) const;
  std::vector<int64_t> Ints(std::string_view name) const;
  // Elements of an integer operand of rank 0 or 1, as far as they are known; nothing when they are
  // not.
  std::optional<std::vector<Dim>> Elements(std::string_view name, int i = 0) const;
  // Elements() one by one, nothing for each that is not known. The operand is a vector of known
  // length.
  std::vector<std::optional<Dim>> Parts(std::string_view name) const;
  // `axis` counted from the front; Error "bad-operand" outside [-rank, rank).
  static int Axis(int64_t axis, int rank);

  // Throws Error "bad-operand" that names the operator.
  [[noreturn]] void Fail(std::string text) const;

 protected:
  const Arg* arg(std::string_view name, int i) const;
  const OpDef& def_;
  std::vector<std::vector<Arg>> args_;  // by index of the canonical parameter
  const Operation* op_;
};

// Computes result types. Called by the builder, the verifier and, at run time, by the engine (then
// all operands are known).
class InferContext : public OpContext {
 public:
  // `symbols`: of the function, to outlive this; null: nothing is known of any.
  InferContext(const OpDef& def, std::vector<std::vector<Arg>> args, const Operation* op = nullptr,
               const Symbols* symbols = nullptr)
      : OpContext(def, std::move(args), op), symbols_(symbols) {}
  const Symbols& symbols() const;
  Dim::Range Bounds(const Dim& dim) const { return dim.Bounds(symbols()); }
  void Result(Type type) {
    results.push_back(std::move(type));
    dims.emplace_back();
  }
  void Result(DType dtype, Shape shape) { Result(Type::Tensor(dtype, std::move(shape))); }
  // Says that the last Result is an integer tensor with these elements.
  void Elements(std::vector<Dim> elements) { dims.back() = std::move(elements); }
  using OpContext::Elements;
  // A dimension that inference cannot express; `hint` names it. It is a placeholder, which whoever
  // stores the result type replaces by a symbol of the function (or by the one that stands there
  // already); IsPlaceholder tells.
  Dim Fresh(std::string_view hint);
  static bool HasPlaceholder(const Dim& dim);

  std::vector<Type> results;
  std::vector<std::optional<std::vector<Dim>>> dims;
  int fresh = 0;  // how many fresh symbols were made

 private:
  const Symbols* symbols_;
};

// Computes result values; every operand has a value. This is the definition of the operator.
class EvalContext : public OpContext {
 public:
  EvalContext(const OpDef& def, std::vector<std::vector<Arg>> args, std::vector<Type> result_types,
              const Operation* op = nullptr)
      : OpContext(def, std::move(args), op), result_types(std::move(result_types)) {}
  Tensor in(std::string_view name, int i = 0) const { return value(name, i); }
  // Static dims and dtype of result i.
  Dims out_dims(int i = 0) const { return StaticDims(result_types[i].shape); }
  DType out_dtype(int i = 0) const { return result_types[i].dtype; }
  void Set(Tensor tensor) { results.push_back(std::move(tensor)); }

  std::vector<Type> result_types;
  std::vector<Tensor> results;
};

using InferFn = void (*)(InferContext&);
using EvalFn = void (*)(EvalContext&);
// The value of a parameter whose default is computed (conv's strides: all ones); an empty Tensor:
// leave it out.
using DefaultFn = Tensor (*)(const OpContext&, std::string_view param);

// A row of the operator table, parsed.
class OpDef {
 public:
  std::string_view name;
  std::string_view doc;     // one line
  std::vector<Form> forms;  // oldest first; the last is canonical
  InferFn infer = nullptr;
  EvalFn eval = nullptr;     // null only with no_eval
  std::string_view no_eval;  // why there is no evaluation
  DefaultFn default_value = nullptr;
  bool pure =
      true;  // false: random, state, control flow; neither folded nor merged nor removed while used
  bool view =
      false;  // only moves elements (reshape, transpose, slice, concat): folds at any size, lazily
  const Form& canonical() const { return forms.back(); }
  int Find(std::string_view param) const { return canonical().Find(param); }
  // Newest form that `target` has; null when the operator is newer.
  const Form* FormFor(Opset target) const;
};

// Up to iOS17 the constexpr operators have their operands as attributes (bracket of the text,
// attribute map of the protobuf).
inline bool OperandsAreAttributes(const OpDef& def, const Form& form) {
  return def.name.starts_with("constexpr_") && form.since < Opset::kIos18;
}

class OpSet {
 public:
  explicit OpSet(std::vector<OpDef> defs);                 // names unique
  const OpDef* Find(std::string_view name) const;          // null when unknown
  const OpDef& At(std::string_view name) const;            // MLC_CHECKs
  const std::vector<OpDef>& all() const { return defs_; }  // sorted by name

 private:
  std::vector<OpDef> defs_;
  std::unordered_map<std::string_view, const OpDef*> by_name_;
};

}  // namespace mlc

// lib/ir/op_def.h - what an operator is: its parameters in every version ("form"), inference,
// evaluation and what else is known of it ("traits").
//
// The table itself is in lib/ops; here are the types through which builder, verifier, text and
// backends see it.
#pragma once

#include <array>
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
#include "lib/support/pointer_map.h"
#include "lib/support/short_vector.h"

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

// Of an operation: a value, or a literal, which is constant and has no name.
struct Operand {
  Value* value = nullptr;          // null: a literal
  Operand(Value* v) : value(v) {}  // NOLINT: operands are mostly values
  Operand(Tensor literal);         // NOLINT
  const Type& type() const;
  // The literal, or the tensor of the `const` that defines the value; an empty Tensor for all others.
  const Tensor& constant() const;

 private:
  friend class Operation;
  friend class Uses;
  struct Literal {
    Tensor tensor;
    Type type;
  };
  std::shared_ptr<const Literal> literal_;
  uint32_t place_ = 0;  // among the value's users
};

// Operands of a parameter, and of an operation by index of the canonical parameter.
using Operands = ShortVector<Operand>;
using OperandLists = std::vector<Operands>;

// Access to an operation's operands by name, for compile time (values may be unknown) and run time
// (all are known).
class OpContext {
 public:
  struct Arg {
    Type type;
    Tensor value;                                   // empty when not known ...
    std::optional<std::vector<Dim>> elements = {};  // ... but perhaps these sizes, of integers
  };
  using Args = std::vector<std::vector<Arg>>;
  using Values = PointerMap<Value, Arg>;
  // Operands of a program, or of an operation that is about to be made; nothing is copied: `operands`
  // outlive the context, or its last question.
  OpContext(const OpDef& def, const OperandLists& operands, const Operation* op = nullptr)
      : def_(def), operands_(&operands), op_(op) {}
  // The same, but for values that are `known` to be something else; it outlives the context likewise.
  OpContext(const OpDef& def, const OperandLists& operands, const Values& known)
      : def_(def), operands_(&operands), known_(&known) {}
  // Operands with types and values of the caller's.
  OpContext(const OpDef& def, Args args, const Operation* op = nullptr)
      : def_(def), args_(std::move(args)), op_(op) {}

  const OpDef& def() const { return def_; }
  const Operation* operation() const { return op_; }  // null at run time
  bool has(std::string_view name) const;              // given explicitly
  int count(std::string_view name) const;             // operands of a variadic parameter
  // An operand that is left out has no type, even where there is a default: ask has() first, else
  // these are Error "bad-operand".
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
  // The same of a value that is no constant, where it lies; null for all others.
  const std::vector<Dim>* KnownElements(std::string_view name, int i = 0) const;
  // Elements() one by one, nothing for each that is not known. The operand is a vector of known
  // length.
  std::vector<std::optional<Dim>> Parts(std::string_view name) const;
  // `axis` counted from the front; Error "bad-operand" outside [-rank, rank).
  static int Axis(int64_t axis, int rank);

  // Throws Error "bad-operand" that names the operator.
  [[noreturn]] void Fail(std::string text) const;

 protected:
  // Null when it is left out, and where the caller says what it is.
  const Operand* operand(std::string_view name, int i) const { return Find(name, i).operand; }
  // What the caller handed over; null for operands of a program.
  Arg* own(std::string_view name) {
    return operands_ ? nullptr : const_cast<Arg*>(Find(name, 0).arg);
  }
  const OpDef& def_;

 private:
  // An operand as the program has it or as the caller says; neither where it is left out.
  struct Found {
    const Operand* operand = nullptr;
    const Arg* arg = nullptr;
  };
  Found Find(std::string_view name, int i) const;
  size_t Index(std::string_view name) const;
  // As value(); `fallback` keeps it where it is the row's default.
  const Tensor& ValueOf(std::string_view name, int i, Tensor& fallback) const;
  // The same of what must be known: anything, or a number.
  const Tensor& Known(std::string_view name, Tensor& fallback) const;
  const Tensor& Number(std::string_view name, Tensor& fallback) const;
  const OperandLists* operands_ = nullptr;  // null: args_ stand for them
  const Values* known_ = nullptr;
  Args args_;  // by index of the canonical parameter
  const Operation* op_ = nullptr;
};

// Computes result types. Called by the builder, the verifier and, at run time, by the engine (then
// all operands are known).
class InferContext : public OpContext {
 public:
  // `symbols`: of the function, to outlive this; null: nothing is known of any.
  InferContext(const OpDef& def, const OperandLists& operands, const Operation* op,
               const Symbols* symbols)
      : OpContext(def, operands, op), symbols_(symbols) {}
  InferContext(const OpDef& def, const OperandLists& operands, const Values& known)
      : OpContext(def, operands, known) {}
  InferContext(const OpDef& def, Args args) : OpContext(def, std::move(args)) {}
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
  const Symbols* symbols_ = nullptr;
};

// Computes result values; every operand has a value. This is the definition of the operator.
class EvalContext : public OpContext {
 public:
  EvalContext(const OpDef& def, const OperandLists& operands, std::vector<Type> result_types,
              const Operation* op = nullptr)
      : OpContext(def, operands, op), result_types(std::move(result_types)) {}
  EvalContext(const OpDef& def, const OperandLists& operands, const Values& known,
              std::vector<Type> result_types)
      : OpContext(def, operands, known), result_types(std::move(result_types)) {}
  EvalContext(const OpDef& def, Args args, std::vector<Type> result_types,
              const Operation* op = nullptr)
      : OpContext(def, std::move(args), op), result_types(std::move(result_types)) {}
  Tensor in(std::string_view name, int i = 0) const { return value(name, i); }
  // Static dims and dtype of result i.
  Dims out_dims(int i = 0) const { return StaticDims(result_types[i].shape); }
  DType out_dtype(int i = 0) const { return result_types[i].dtype; }
  void Set(Tensor tensor) { results.push_back(std::move(tensor)); }
  // For results that differ from an operand in some elements: a tensor of its elements, which are
  // changed at `out` before it is Set. It is the operand itself, which the context then has no more,
  // where nobody else holds its memory.
  Tensor Change(std::string_view name, std::byte** out);

  std::vector<Type> result_types;
  std::vector<Tensor> results;
  // How many hold an operand that Change may give all the same, as they see to it themselves, and
  // who gets what puts its elements back.
  int holders = 1;
  std::function<void(std::function<void()>)> on_change;
};

using InferFn = void (*)(InferContext&);
using EvalFn = void (*)(EvalContext&);
// The value of a parameter whose default is computed (conv's strides: all ones); an empty Tensor:
// leave it out.
using DefaultFn = Tensor (*)(const OpContext&, std::string_view param);

// Traits: what passes, analyses and the engine ask of an operator, instead of knowing it by name.

// What an operation does besides computing its results from its operands. Only those of kNone are
// folded and merged; only those of kWritesState stay when nobody uses their results.
enum class Effect : uint8_t {
  kNone,
  kRandom,       // draws numbers
  kReadsState,   //
  kWritesState,  //
  kList,         // makes, reads or writes a list: there are no constants of that type
  kBranch,       // runs one of its blocks, and has the effects of what is in them
  kLoop,         // runs them again and again, likewise
};

// Whether the results are constants of the program, and which.
enum class ConstantKind : uint8_t { kNone, kDense, kEncoded };  // const; constexpr operators

// Whether the results consist of elements of the operands.
enum class Moves : uint8_t {
  kNone,
  kShape,   // all of x, in their order, under another shape
  kView,    // some or all of them, elsewhere: slice, transpose, concat
  kCopies,  // perhaps several times: tile, gather
};

// What stays true when dimensions are held in another order. An operator without `data` knows its
// dimensions by their places.
struct Layout {
  // Parameters that share one order of dimensions, which is that of the results too.
  std::array<std::string_view, 3> data;
  std::string_view axes;  // parameter that names dimensions of the first of `data`
  // Parameters with one number (pad: two) per dimension.
  std::array<std::string_view, 6> per_dimension;
};

// What a result is the sum of, over dimensions or windows; kNone: it is no sum.
struct Sums {
  enum Of : uint8_t { kNone, kElements, kMagnitudes, kSquares } of = kNone;
  bool mean = false;  // divided by how many there are
  bool root = false;  // of that
};

// The operand that the result equals where all of another one is `number`: the x of a product where
// y is 1.
struct Neutral {
  std::string_view param;  // the other one; empty: none
  double number = 0;
  std::string_view result;
};

// What a result in fp16, with its 11 bits from 6e-8 to 65504, means.
struct Fp16 {
  // Why more digits are needed than fp16 has, for the operands and what makes them.
  enum Digits : uint32_t {
    kAngles = 1 << 0,      // places and angles: fp16 keeps an angle of 100 to within 0.03 only
    kLogarithms = 1 << 1,  // numbers near zero that a logarithm tells apart
    kSteps = 1 << 2,       // the last digits choose between two steps of quantised numbers
    kSelections = 1 << 3,  // which boxes are kept hangs on the last digits
    kWholeSums = 1 << 4,   // sums of products of whole numbers are exact in fp32
    kCounts = 1 << 5,      // fp16 counts to 2048
  };
  enum Kind : uint32_t {
    kMakesWhole = 1 << 0,  // results are whole numbers
    kKeepsWhole = 1 << 1,  // results are whole numbers when the operands are
    kAsksWhole = 1 << 2,   // rounds, or asks how numbers compare with whole ones
    kKeepsSums = 1 << 3,   // a whole sum of products, added to or moved, is one still
    kProduct = 1 << 4,     // a constant operand of few digits leaves the result as few
    kMain = 1 << 5,        // most of the work: never wide for the sake of what comes after it
    kRough = 1 << 6,       // loses so much that --precision mixed keeps it fp32
  };
  uint32_t needs = 0;    // Digits that begin here
  uint32_t carries = 0;  // Digits that results ask of the operands where they are asked for
  uint32_t kind = 0;     // Kinds
  std::array<std::string_view, 2> wide = {};    // operands that stay fp32
  std::array<std::string_view, 2> bounds = {};  // operands of which infinity does as a great number
  bool IsWide(std::string_view param) const { return param == wide[0] || param == wide[1]; }
  bool IsBound(std::string_view param) const { return param == bounds[0] || param == bounds[1]; }
};

// Multiplications for each element of the result. Open dimensions count 1.
using WorkFn = double (*)(const OpContext&);

// The interval of a result from those of the operands: lib/ops/range.h.
struct Interval;
class RangeContext;
using RangeFn = Interval (*)(const RangeContext&, int result);

// What an operation asks of its operands of a parameter, of all where it is "": lib/ops/want.h.
struct Want;
class WantContext;
struct WantRule {
  std::string_view param;
  Want (*want)(const WantContext&) = nullptr;
};

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
  Effect effect = Effect::kNone;
  ConstantKind constant = ConstantKind::kNone;
  Moves moves = Moves::kNone;
  Layout layout;
  Sums sums;
  std::array<Neutral, 2> neutral = {};
  Fp16 fp16;
  WorkFn work = nullptr;      // null: looks at each element once
  RangeFn range = nullptr;    // null only with no_range
  std::string_view no_range;  // why nothing is known of the results' interval
  std::array<WantRule, 3> wants = {};
  bool pure = true;   // has no effect
  bool view = false;  // moves each element at most once: folds at any size, lazily

  bool runs_blocks() const { return effect == Effect::kBranch || effect == Effect::kLoop; }
  bool is_const() const { return constant == ConstantKind::kDense; }
  bool is_constexpr() const { return constant == ConstantKind::kEncoded; }
  // Computes each element from those at the same, broadcast, place of the operands.
  bool elementwise() const {
    return moves == Moves::kNone && !layout.data[0].empty() && layout.axes.empty() &&
           layout.per_dimension[0].empty();
  }
  const Form& canonical() const { return forms.back(); }
  int Find(std::string_view param) const { return canonical().Find(param); }
  // Newest form that `target` has; null when the operator is newer.
  const Form* FormFor(Opset target) const;
};

// Up to iOS17 the constexpr operators have their operands as attributes (bracket of the text,
// attribute map of the protobuf).
inline bool OperandsAreAttributes(const OpDef& def, const Form& form) {
  return def.is_constexpr() && form.since < Opset::kIos18;
}

inline double WorkPerElement(const OpContext& context) {
  return context.def().work ? context.def().work(context) : 1;
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

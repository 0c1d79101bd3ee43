// lib/ir/op_def.h - the definition of an operator: its parameters in every version ("forms"), type
// inference, evaluation and traits.
//
// The table of operators is in lib/ops; this header declares the types through which the builder,
// verifier, text format and backends use it.
#pragma once

#include <array>
#include <functional>
#include <memory>
#include <optional>
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

// Core ML deployment targets by specification version. The opset of an operator form is the first
// that supports it.
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
  bool variadic = false;  // any number of values, possibly zero, e.g. concat's values
  char domain = 0;        // 'T', 'U', ...: parameters with the same letter share a dtype; 0: none
  DTypeSet types = 0;     // allowed element types
  Default default_kind = Default::kRequired;
  std::string_view default_text;  // kLiteral: "1", "valid", "true", "1e-05"
};

// One version of an operator.
struct Form {
  Opset since;
  std::vector<Param> params;
  int Find(std::string_view name) const;  // index or -1
};

// One operand of an operation: a value, or a literal, which is constant and has no name.
struct Operand {
  Value* value = nullptr;          // null: a literal
  Operand(Value* v) : value(v) {}  // NOLINT: implicit, most operands are values
  Operand(Tensor literal);         // NOLINT
  const Type& type() const;
  // The literal, or the tensor of the `const` that defines the value; an empty Tensor otherwise.
  const Tensor& constant() const;

 private:
  friend class Operation;
  friend class Uses;
  struct Literal {
    Tensor tensor;
    Type type;
  };
  std::shared_ptr<const Literal> literal_;
  uint32_t place_ = 0;  // position among the uses of the value
};

// The operands of one parameter, and those of an operation, indexed by canonical parameter.
using Operands = ShortVector<Operand>;
using OperandLists = std::vector<Operands>;

// Access to the operands of an operation by name, both at compile time (values may be unknown) and
// at run time (all values are known).
class OpContext {
 public:
  struct Arg {
    Type type;
    Tensor value;  // empty if unknown
    std::optional<std::vector<Dim>> elements =
        {};  // known elements of an integer operand whose value is unknown
  };
  using Args = std::vector<std::vector<Arg>>;
  using Values = PointerMap<Value, Arg>;
  // Operands of an operation, existing or about to be created. Keeps a reference: `operands` must
  // outlive the context.
  OpContext(const OpDef& def, const OperandLists& operands, const Operation* op = nullptr);
  // The same, except that the values in `known` override operands. `known` must outlive the
  // context.
  OpContext(const OpDef& def, const OperandLists& operands, const Values& known);
  // Operands whose types and values the caller supplies.
  OpContext(const OpDef& def, Args args, const Operation* op = nullptr);

  const OpDef& def() const { return def_; }
  const Operation* operation() const { return op_; }  // null at run time
  bool has(std::string_view name) const;              // passed explicitly
  int count(std::string_view name) const;             // number of operands of a variadic parameter
  // An omitted operand has no type even if the parameter has a default: check has() first, or get
  // Error "bad-operand".
  const Type& type(std::string_view name, int i = 0) const;
  const Shape& shape(std::string_view name, int i = 0) const { return type(name, i).shape; }
  DType dtype(std::string_view name, int i = 0) const { return type(name, i).dtype; }
  int rank(std::string_view name, int i = 0) const { return type(name, i).rank(); }
  // The constant, or the literal default of the parameter; an empty Tensor if absent or unknown.
  Tensor value(std::string_view name, int i = 0) const;
  // Like value(), for operands that must be constant: Error "needs-constant" if unknown.
  int64_t Int(std::string_view name) const;
  double Double(std::string_view name) const;
  bool Bool(std::string_view name) const;
  std::string String(std::string_view name) const;
  std::vector<int64_t> Ints(std::string_view name) const;
  // The elements of an integer operand of rank 0 or 1; nullopt if they are unknown.
  std::optional<std::vector<Dim>> Elements(std::string_view name, int i = 0) const;
  // A reference to the stored elements of a non-constant value; null for any other operand.
  const std::vector<Dim>* KnownElements(std::string_view name, int i = 0) const;
  // The elements one by one, with nullopt for each unknown element. The operand must be a vector of
  // known length.
  std::vector<std::optional<Dim>> Parts(std::string_view name) const;
  // Normalises an axis to [0, rank); Error "bad-operand" outside [-rank, rank).
  static int Axis(int64_t axis, int rank);

  // Throws Error "bad-operand", which names the operator.
  [[noreturn]] void Fail(std::string text) const;
  template <class First, class... Rest>
  [[noreturn]] void Fail(TextFormat<First, Rest...> format, First&& first, Rest&&... rest) const {
    Fail(fmt::format(format, std::forward<First>(first), std::forward<Rest>(rest)...));
  }

 protected:
  // The operand; null if omitted or if the caller supplied its type and value.
  const Operand* operand(std::string_view name, int i) const { return Find(name, i).operand; }
  // The caller-supplied argument; null for operands of a program.
  Arg* own(std::string_view name) {
    return operands_ ? nullptr : const_cast<Arg*>(Find(name, 0).arg);
  }
  const OpDef& def_;

 private:
  // An operand of the program or an argument of the caller; both are null if omitted.
  struct Found {
    const Operand* operand = nullptr;
    const Arg* arg = nullptr;
  };
  Found Find(std::string_view name, int i) const;
  size_t Index(std::string_view name) const;
  // Like value(), by reference; `fallback` provides storage for a default.
  const Tensor& ValueOf(std::string_view name, int i, Tensor& fallback) const;
  // Like ValueOf, but throws if the value is unknown; Number also requires a number.
  const Tensor& Known(std::string_view name, Tensor& fallback) const;
  const Tensor& Number(std::string_view name, Tensor& fallback) const;
  const OperandLists* operands_ = nullptr;  // null: args_ is used
  const Values* known_ = nullptr;
  Args args_;  // by canonical parameter
  const Operation* op_ = nullptr;
};

// Computes result types. Used by the builder, the verifier and, at run time, the engine, which
// knows the value of every operand.
class InferContext : public OpContext {
 public:
  // `symbols` are those of the function and must outlive the context; null: no bounds are known.
  InferContext(const OpDef& def, const OperandLists& operands, const Operation* op,
               const Symbols* symbols);
  InferContext(const OpDef& def, const OperandLists& operands, const Values& known);
  InferContext(const OpDef& def, Args args);
  const Symbols& symbols() const;
  Dim::Range Bounds(const Dim& dim) const { return dim.Bounds(symbols()); }
  void Result(Type type);
  void Result(DType dtype, Shape shape);
  // Sets the elements of the last Result, which must be an integer tensor.
  void Elements(std::vector<Dim> elements);
  using OpContext::Elements;
  // A placeholder for a dimension that inference cannot express; `hint` is a name for it. When a
  // result type is stored, the placeholder is replaced by a symbol of the function, or by the
  // symbol already stored there. HasPlaceholder recognises it.
  Dim Fresh(std::string_view hint);
  static bool HasPlaceholder(const Dim& dim);

  std::vector<Type> results;
  std::vector<std::optional<std::vector<Dim>>> dims;
  int fresh = 0;  // number of placeholders created

 private:
  const Symbols* symbols_ = nullptr;
};

// Computes result values; every operand has a value. eval is the definition of the operator.
class EvalContext : public OpContext {
 public:
  EvalContext(const OpDef& def, const OperandLists& operands, std::vector<Type> result_types,
              const Operation* op = nullptr);
  EvalContext(const OpDef& def, const OperandLists& operands, const Values& known,
              std::vector<Type> result_types);
  EvalContext(const OpDef& def, Args args, std::vector<Type> result_types,
              const Operation* op = nullptr);
  Tensor in(std::string_view name, int i = 0) const { return value(name, i); }
  // The static dims and the dtype of result i.
  Dims out_dims(int i = 0) const { return StaticDims(result_types[i].shape); }
  DType out_dtype(int i = 0) const { return result_types[i].dtype; }
  void Set(Tensor tensor);
  // For results that change only some elements of an operand: returns a tensor with the operand's
  // elements and sets `out` to its writable memory, to be modified before Set. The operand's own
  // memory is reused, and removed from the context, if nothing else refers to it.
  Tensor Change(std::string_view name, std::byte** out);

  std::vector<Type> result_types;
  std::vector<Tensor> results;
  // The number of references to an operand that still permit Change to reuse its memory; their
  // owners tolerate the modification. on_change receives a function that restores the original
  // elements.
  int holders = 1;
  std::function<void(std::function<void()>)> on_change;
};

using InferFn = void (*)(InferContext&);
using EvalFn = void (*)(EvalContext&);
// The value of a parameter with a computed default (conv's strides: all ones); an empty Tensor if
// the parameter is to be omitted.
using DefaultFn = Tensor (*)(const OpContext&, std::string_view param);

// Traits: the properties of operators that passes, analyses and the engine query, so that they need
// not know operators by name.

// Side effects. Only operations with kNone are folded and merged; only those with kWritesState are
// kept when their results are unused.
enum class Effect : uint8_t {
  kNone,
  kRandom,       // draws numbers
  kReadsState,   //
  kWritesState,  //
  kList,         // creates, reads or writes a list; lists are never constant
  kBranch,       // executes one of its blocks, with the effects of that block
  kLoop,         // executes its blocks repeatedly, with their effects
};

// The kind of constant that the results are, if they are constants of the program.
enum class ConstantKind : uint8_t { kNone, kDense, kEncoded };  // const; constexpr operators

// The way in which results consist of elements of the operands, if they do.
enum class Moves : uint8_t {
  kNone,
  kShape,   // all elements of x, in order, in another shape
  kView,    // some or all elements, rearranged: slice, transpose, concat
  kCopies,  // elements that may occur several times: tile, gather
};

// What is preserved when the order of dimensions changes. An operator without `data` depends on the
// order of its dimensions.
struct Layout {
  // Parameters that share one order of dimensions with each other and with the results.
  std::array<std::string_view, 3> data;
  std::string_view axes;  // parameter with axes of the first of `data`
  // Parameters with one number (pad: two) per dimension.
  std::array<std::string_view, 6> per_dimension;
};

// What a result sums up over dimensions or windows; kNone: it is not a sum.
struct Sums {
  enum Of : uint8_t { kNone, kElements, kMagnitudes, kSquares } of = kNone;
  bool mean = false;  // divided by the number of terms
  bool root = false;  // square root of the sum or mean
};

// An operand that the result equals if every element of another operand is `number`: x of a
// multiplication by 1.
struct Neutral {
  std::string_view param;  // the other operand; empty: none
  double number = 0;
  std::string_view result;
};

// How an operation behaves in fp16, which has 11 significant bits and a range of 6e-8 to 65504.
struct Fp16 {
  // Reasons why the operands, and the operations that produce them, need more precision than fp16
  // has.
  enum Digits : uint32_t {
    kAngles = 1 << 0,      // positions and angles: fp16 resolves 100 rad to within 0.03
    kLogarithms = 1 << 1,  // numbers near zero whose logarithm matters
    kSteps = 1 << 2,       // low-order bits choose between adjacent quantisation steps
    kSelections = 1 << 3,  // the selected boxes depend on the low-order bits
    kWholeSums = 1 << 4,   // sums of products of integers, exact in fp32
    kCounts = 1 << 5,      // counts: fp16 is exact up to 2048
  };
  enum Kind : uint32_t {
    kMakesWhole = 1 << 0,  // results are integers
    kKeepsWhole = 1 << 1,  // results are integers if the operands are
    kAsksWhole = 1 << 2,   // rounds, or compares with integers
    kKeepsSums = 1 << 3,   // preserves an integer sum of products: adds to it or moves it
    kProduct = 1 << 4,     // a constant operand with few bits keeps the result's bits few
    kMain = 1 << 5,        // most of the work: never kept in fp32 for the sake of its users
    kRough = 1 << 6,       // loses so much precision that --precision mixed keeps it in fp32
  };
  uint32_t needs = 0;                         // Digits required by this operation
  uint32_t carries = 0;                       // Digits passed on from results to operands
  uint32_t kind = 0;                          // Kinds
  std::array<std::string_view, 2> wide = {};  // operands that stay in fp32
  std::array<std::string_view, 2> bounds =
      {};  // operands for which a large number is equivalent to infinity
  bool IsWide(std::string_view param) const { return param == wide[0] || param == wide[1]; }
  bool IsBound(std::string_view param) const { return param == bounds[0] || param == bounds[1]; }
};

// Multiplications per element of the result. Symbolic dimensions count as 1.
using WorkFn = double (*)(const OpContext&);

// Computes the interval of a result from those of the operands (lib/ops/range_rules.h).
struct Interval;
class RangeContext;
using RangeFn = Interval (*)(const RangeContext&, int result);

// An operand that holds weights if it is constant: matrices that the operator multiplies by, or a
// table that it reads rows of. The other axes are those of a kernel, which belong to the input, or
// those of a batch of matrices, each with its own outputs.
struct WeightOperand {
  std::string_view param;
  int output = 0, input = 1;  // axes: output channels or rows of a table; elements of each
  int batch = 0;              // number of leading axes that are a batch
};
// Returns the operands that hold weights.
using WeightsFn = std::vector<WeightOperand> (*)(const OpContext&);

// The role of an operator in a chain of 8-bit activations. Core ML computes these operators in integers
// between dequantize and quantize (coremltools' activation quantisation,
// coremltools/optimize/coreml/experimental).
enum class EightBit : uint8_t {
  kNone,
  kLayer,       // multiplies x by a weight
  kJoin,        // pools x, or adds two values, if they are in 8 bits
  kActivation,  // a function of x that belongs to the layer before it
};

// What an operation requires of the operands of a parameter, or of all operands if the name is ""
// (lib/ops/operand_constraint.h).
struct OperandConstraint;
class ConstraintContext;
struct ConstraintRule {
  std::string_view param;
  OperandConstraint (*constraint)(const ConstraintContext&) = nullptr;
};

// The text of one form (lib/ops/row.h describes signatures).
struct FormRow {
  Opset since = Opset::kIos15;
  std::string_view signature;
  std::string_view domains = {};  // the type domains, if they are not part of `signature`
};

// What is known of an operator: a row of the operator table, as the family files of lib/ops write
// it.
struct OpRow {
  std::string_view name;
  std::string_view doc;               // one line, for `mlc ops`
  std::array<FormRow, 4> signatures;  // oldest first; unused entries have an empty signature
  InferFn infer = nullptr;
  EvalFn eval = nullptr;  // null only with no_eval
  DefaultFn default_value = nullptr;
  std::string_view no_eval = {};  // reason why there is no evaluation
  Effect effect = Effect::kNone;
  ConstantKind constant = ConstantKind::kNone;
  Moves moves = Moves::kNone;
  Layout layout = {};
  Sums sums = {};
  std::array<Neutral, 2> neutral = {};
  Fp16 fp16 = {};
  WorkFn work = nullptr;        // null: reads each element once
  WeightsFn weights = nullptr;  // null: none
  EightBit eight_bit = EightBit::kNone;
  // A positive factor of x, by channel, is a factor of the result.
  bool homogeneous = false;
  RangeFn range = nullptr;         // null only with no_range
  std::string_view no_range = {};  // reason why no interval is known
  std::array<ConstraintRule, 3> constraints = {};
};

// A row with its signatures parsed, and what follows from its fields.
class OpDef : public OpRow {
 public:
  OpDef() = default;
  OpDef(const OpRow& row, std::vector<Form> parsed);

  std::vector<Form> forms;  // oldest first; the last is canonical
  bool pure = true;         // no side effects
  bool view = false;        // moves each element at most once: folded lazily at any size

  bool runs_blocks() const { return effect == Effect::kBranch || effect == Effect::kLoop; }
  bool is_const() const { return constant == ConstantKind::kDense; }
  bool is_constexpr() const { return constant == ConstantKind::kEncoded; }
  // Returns whether each result element depends only on the operand elements at the same
  // (broadcast) position.
  bool elementwise() const {
    return moves == Moves::kNone && !layout.data[0].empty() && layout.axes.empty() &&
           layout.per_dimension[0].empty();
  }
  const Form& canonical() const { return forms.back(); }
  int Find(std::string_view param) const { return canonical().Find(param); }
  // The newest form that `target` supports; null if the operator is newer.
  const Form* FormFor(Opset target) const;
};

// Up to iOS17, the operands of constexpr operators are attributes: bracketed in MIL text, in the
// attribute map of the protobuf.
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

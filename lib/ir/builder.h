// lib/ir/builder.h - how frontends and passes make operations: types inferred, types legalised,
// constants folded at once.
//
//   Builder b(block, diagnostics);
//   Value* y = b.Make("conv", {{"x", x}, {"weight", w}, {"strides", Ints({2, 2})},
//                              {"pad_type", "valid"}});
//
// Operands given as C++ values become `const` operations in the dtype that the parameter's domain
// asks for. When every operand is constant the result is a `const` with the evaluated value, in the
// operands' own type (int64 stays int64, fp64 fp64). Otherwise an operand type outside the row's
// domain is legalised: constants are narrowed exactly, values are cast in, and results are cast
// back.
#pragma once

#include <initializer_list>
#include <string>
#include <unordered_map>
#include <variant>
#include <vector>

#include "lib/ir/program.h"

namespace mlc {

// Results of non-view operations above this many elements are not folded.
inline constexpr int64_t kFoldLimit = int64_t{1} << 22;

inline Tensor Ints(const std::vector<int64_t>&
                       values) {  // int32 vector; Error "constant-range" outside int32 at emission
  return Tensor::Vector<int64_t>(values).Cast(DType::kInt32);
}

class Builder {
 public:
  struct Arg {
    std::string_view param;
    Operands operands;     // empty: left out
    bool untyped = false;  // a C++ number: takes the dtype that the parameter wants
    Arg(std::string_view p, Value* v) : param(p) {
      if (v) operands.emplace_back(v);
    }
    Arg(std::string_view p, std::vector<Value*> vs) : param(p), operands(vs.begin(), vs.end()) {}
    Arg(std::string_view p, Tensor t) : param(p) {
      if (t) operands.emplace_back(std::move(t));
    }
    Arg(std::string_view p, Operand o) : param(p) { operands.push_back(std::move(o)); }
    Arg(std::string_view p, bool v) : Arg(p, Tensor::Scalar<bool>(v)) {}
    Arg(std::string_view p, int v) : Arg(p, static_cast<int64_t>(v)) {}
    Arg(std::string_view p, int64_t v) : Arg(p, Tensor::Scalar<int64_t>(v)) { untyped = true; }
    Arg(std::string_view p, double v) : Arg(p, Tensor::Scalar<double>(v)) { untyped = true; }
    Arg(std::string_view p, const char* v) : Arg(p, Tensor::String(v)) {}
    Arg(std::string_view p, const std::string& v) : Arg(p, Tensor::String(v)) {}
  };
  using Args = std::vector<Arg>;

  Builder(Block& block, Diagnostics& diagnostics, Operation* before = nullptr)
      : block_(block), diagnostics_(diagnostics), before_(before) {}

  // The first result.
  Value* Make(std::string_view op, Args args);
  std::vector<Value*> MakeAll(std::string_view op, Args args);
  // An operation with nested blocks (cond, while_loop) of this function; their values have MIL's own
  // types.
  std::vector<Value*> MakeNested(std::string_view op, Args args,
                                 std::vector<std::unique_ptr<Block>> blocks);
  Value* Const(Tensor value, std::string_view name_hint = "");
  // x as dtype: itself when it has it, a folded const, or a cast.
  Value* Cast(Value* x, DType dtype);

  // What follows is made with this name (made unique) and location.
  void SetName(std::string name) { name_ = std::move(name); }
  const std::string& name() const { return name_; }
  void SetLocation(std::shared_ptr<const Location> location) { location_ = std::move(location); }
  const std::shared_ptr<const Location>& location() const { return location_; }
  Block& block() { return block_; }
  Program& program() { return *block_.function->program; }
  Symbols& symbols() { return block_.function->symbols; }
  Diagnostics& diagnostics() { return diagnostics_; }

  int64_t fold_limit = kFoldLimit;

 private:
  class Making;  // one operation's way from arguments to results
  // The constant for an operation's parameter: one that an earlier operation has where it is small and
  // this builder appends, so that great programs do not begin as constants for the most part.
  Value* ConstFor(std::string_view op, std::string_view param, const Tensor& value);
  std::unordered_map<std::string, Value*> shared_;  // by type and bytes; nobody erases them
  Block& block_;
  Diagnostics& diagnostics_;
  Operation* before_;
  std::string name_;
  std::shared_ptr<const Location> location_;
};

// What infer sees of an operation that is in a block, before it has run.
InferContext ContextOf(const Operation& op);
// Whether a pure operation on constants is worth evaluating at compile time: static results of at
// most `limit` elements (any number where the operation only moves them, OpDef::view), and no more
// than about a second of work.
bool Folds(const OpContext& context, const std::vector<Type>& results, int64_t limit = kFoldLimit);
// Whether a stored type is what infer says, for symbols within these bounds; a placeholder
// (InferContext::Fresh) matches any dimension.
bool Matches(const Type& inferred, const Type& stored, const Symbols& symbols);
// Runs infer again and stores result types and elements. True when something changed. Throws Error
// as infer does, located.
bool InferTypes(Operation& op);
// The results of a pure operation whose operands are all constant, or an empty vector. Throws like
// infer.
std::vector<Tensor> Evaluate(const Operation& op);
// Narrows an exact constant to what MIL holds (int64 to int32, fp64 and bf16 to fp32, ...);
// saturates the customary sentinels (INT64_MAX, INT64_MIN and their neighbours); Error
// "constant-range" when a value does not fit.
Tensor NarrowForMil(const Tensor& tensor, DType to);

}  // namespace mlc

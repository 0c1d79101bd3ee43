// lib/ir/builder.h - creates operations for frontends and passes: infers types, legalises operand
// types and folds constants immediately.
//
//   Builder b(block, diagnostics);
//   Value* y = b.Make("conv", {{"x", x}, {"weight", w}, {"strides", Ints({2, 2})},
//                              {"pad_type", "valid"}});
//
// An operand given as a C++ value becomes a `const` operation in the dtype of the parameter's
// domain. If every operand is constant, the result is a `const` with the evaluated value in the
// operands' own dtype (int64 stays int64, fp64 stays fp64). Otherwise an operand whose dtype is
// outside the domain is legalised: constants are narrowed exactly, values are cast, and results are
// cast back.
#pragma once

#include <string>
#include <unordered_map>
#include <vector>

#include "lib/ir/program.h"

namespace mlc {

// Maximum number of result elements for folding; view operations fold at any size.
inline constexpr int64_t kFoldLimit = int64_t{1} << 22;

// An int32 vector; Error "constant-range" at emission if a value exceeds int32.
Tensor Ints(const std::vector<int64_t>& values);

class Builder {
 public:
  struct Arg {
    std::string_view param;
    Operands operands;     // empty: omitted
    bool untyped = false;  // a C++ number, which takes the dtype of the parameter
    Arg(std::string_view p, Value* v);
    Arg(std::string_view p, std::vector<Value*> vs);
    Arg(std::string_view p, Tensor t);
    Arg(std::string_view p, Operand o);
    Arg(std::string_view p, bool v);
    Arg(std::string_view p, int v);
    Arg(std::string_view p, int64_t v);
    Arg(std::string_view p, double v);
    Arg(std::string_view p, const char* v);
    Arg(std::string_view p, const std::string& v);
  };
  using Args = std::vector<Arg>;

  Builder(Block& block, Diagnostics& diagnostics, Operation* before = nullptr);

  // Creates an operation and returns its first result.
  Value* Make(std::string_view op, Args args);
  std::vector<Value*> MakeAll(std::string_view op, Args args);
  // Creates an operation with nested blocks (cond, while_loop) of the same function. The values of
  // the blocks must have dtypes that MIL supports.
  std::vector<Value*> MakeNested(std::string_view op, Args args,
                                 std::vector<std::unique_ptr<Block>> blocks);
  Value* Const(Tensor value, std::string_view name_hint = "");
  // Converts x to dtype: returns x itself if it already has that dtype, a folded const if x is
  // constant, otherwise a cast.
  Value* Cast(Value* x, DType dtype);

  // The name (made unique) and the location of the operations created from now on.
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
  class Making;  // builds one operation from its arguments
  // Returns the constant for an operation's parameter. A small constant is shared with earlier
  // operations of this builder if it appends, so that large programs do not start out as mostly
  // constants.
  Value* ConstFor(std::string_view op, std::string_view param, const Tensor& value);
  std::unordered_map<std::string, Value*> shared_;  // keyed by dtype and bytes; never erased
  Block& block_;
  Diagnostics& diagnostics_;
  Operation* before_;
  std::string name_;
  std::shared_ptr<const Location> location_;
};

// The inference context of an operation that is already in a block.
InferContext ContextOf(const Operation& op);
// Returns whether a pure operation on constants is worth evaluating at compile time: its result
// shapes are static, have at most `limit` elements (no limit for OpDef::view), and need at most
// about a second of work.
bool Folds(const OpContext& context, const std::vector<Type>& results, int64_t limit = kFoldLimit);
// Returns whether a stored type agrees with the inferred one, given the bounds of the symbols. A
// placeholder (InferContext::Fresh) matches any dimension.
bool Matches(const Type& inferred, const Type& stored, const Symbols& symbols);
// Repeats inference and stores the result types and known elements. Returns true if anything
// changed. Throws the errors of infer, with a location.
bool InferTypes(Operation& op);
// Evaluates a pure operation whose operands are all constant; returns an empty vector if they are
// not. Throws the errors of infer.
std::vector<Tensor> Evaluate(const Operation& op);
// Narrows a constant exactly to a dtype that MIL supports (int64 to int32, fp64 and bf16 to fp32,
// ...). Saturates the usual sentinels (INT64_MAX, INT64_MIN and their neighbours). Error
// "constant-range" if any other value does not fit.
Tensor NarrowForMil(const Tensor& tensor, DType to);

}  // namespace mlc

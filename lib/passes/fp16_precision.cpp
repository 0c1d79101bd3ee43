// Computes in fp16 what the program computes in fp32, but for what fp16 cannot hold.
//
//   y: fp32 = conv(x: fp32, w: fp32)   ->   x16 = cast(x); y16 = conv(x16, w16); y = cast(y16 ->
//   fp32)
//
// Casts stand at model inputs and outputs and around operations that stay fp32:
//   - operations with a constant whose finite values do not fit (65520 and above would become
//   infinity);
//   - sin, cos and tan with the arithmetic that makes their angles: fp16 keeps an angle of 100 to
//   within 0.03 only;
//   - log with what makes its operand, convolutions included: fp16 has nothing below 6e-8, where a
//   logarithm still differs by much;
//   - the small last operations before a model output (results of at most 16384 elements, constants
//   of at most 65536): scores near
//     zero and near ties keep their digits, and the output is fp32 anyway;
//   - operations that Core ML has in fp32 only;
//   - with --precision mixed: reductions, normalisations, softmax, exp, log, pow and roots as well.
// Each is a decision in the manifest. A scalar below half the smallest fp16 number becomes that
// number (an epsilon must not vanish). Must not fire on integers, on programs compiled with
// --precision fp32, on programs that are fp16 already. Numeric effect: fp16 rounding, budget
// "fp16".
#include <set>
#include <unordered_map>
#include <unordered_set>

#include "lib/passes/match.h"

namespace mlc {
namespace {

constexpr double kOverflow = 65520;    // rounds to infinity in binary16
constexpr double kSmallest = 0x1p-24;  // smallest binary16 above zero

// A reason to stay fp32 that goes back from an operation to those that make its operands, as far as
// nothing else uses their results.
struct Chain {
  std::string_view reason;
  bool (*starts)(const Operation&);
  bool (*carries)(const Operation&);
};

bool StartsAngle(const Operation& op) { return op.is("sin") || op.is("cos") || op.is("tan"); }

bool CarriesAngle(const Operation& op) {
  static const std::set<std::string_view> kCarriers = {
      "add",           "sub",  "mul",    "real_div",       "matmul",
      "einsum",        "cast", "concat", "reshape",        "expand_dims",
      "squeeze",       "tile", "gather", "slice_by_index", "select",
      "slice_by_size", "pow",  "cumsum", "range_1d",       "transpose",
      "linear"};
  return kCarriers.contains(op.def->name);
}

bool StartsLogarithm(const Operation& op) { return op.is("log") || op.is("reduce_log_sum"); }

bool CarriesLogarithm(const Operation& op) {
  static const std::set<std::string_view> kCarriers = {"abs",     "clip",
                                                       "maximum", "minimum",
                                                       "square",  "sqrt",
                                                       "conv",    "reduce_sum",
                                                       "pad",     "reduce_max",
                                                       "relu",    "reduce_l2_norm",
                                                       "split",   "reduce_sum_square",
                                                       "rsqrt",   "reduce_mean"};
  return CarriesAngle(op) || kCarriers.contains(op.def->name);
}

constexpr int64_t kTailElements = 16384, kTailConstant = 65536;

// Sizes that are not known count with their lower bounds.
bool IsSmall(const Operation& op) {
  for (const std::vector<Operand>& operands : op.args())
    for (const Operand& operand : operands)
      if (Tensor constant = operand.constant(); constant && constant.size() > kTailConstant)
        return false;
  std::map<std::string, int64_t> low;
  for (const auto& [name, symbol] : op.block->function->program->symbols)
    low[name] = std::max<int64_t>(symbol.low, 1);
  for (const std::unique_ptr<Value>& result : op.results)
    if (!result->type.is_tensor() ||
        Product(result->type.shape).Evaluate(low).value_or(kTailElements + 1) > kTailElements)
      return false;
  return true;
}

bool StartsTail(const Operation& op) {
  for (const std::unique_ptr<Value>& result : op.results)
    if (result->output_uses == 0) return false;
  return IsSmall(op);
}

constexpr Chain kChains[] = {
    {"fp16 angles lose the digits that sin and cos need", StartsAngle, CarriesAngle},
    {"fp16 loses the small numbers that a logarithm tells apart", StartsLogarithm,
     CarriesLogarithm},
    {"a small last operation, fp32 like the output", StartsTail, IsSmall},
};

bool StaysWideWhenMixed(const Operation& op) {
  static const std::set<std::string_view> kWide = {
      "softmax", "layer_norm", "instance_norm", "batch_norm", "l2_norm",
      "exp",     "exp2",       "log",           "pow",        "sqrt",
      "rsqrt",   "inverse",    "cumsum",        "real_div",   "local_response_norm"};
  return op.def->name.starts_with("reduce_") || kWide.contains(op.def->name);
}

bool TakesFp16(const Operation& op) {
  for (size_t i = 0; i < op.args().size(); ++i)
    for (const Operand& operand : op.args()[i])
      if (operand.type().is_tensor() && operand.type().dtype == DType::kFp32 &&
          !Contains(op.def->canonical().params[i].types, DType::kFp16))
        return false;
  return true;
}

// The largest finite magnitude of a constant, read block by block and given back to the system.
double MaxMagnitude(const Tensor& tensor) {
  int64_t step = tensor.BlockElements(1 << 20);
  std::vector<float> block(static_cast<size_t>(std::min(step, tensor.size())));
  float largest = 0;
  for (int64_t first = 0; first < tensor.size(); first += step) {
    int64_t count = std::min(step, tensor.size() - first);
    tensor.Read(first, count, reinterpret_cast<std::byte*>(block.data()));
    tensor.Release(first, count);
    for (int64_t i = 0; i < count; ++i) {
      float magnitude = std::fabs(block[i]);
      largest = magnitude > largest && magnitude <= std::numeric_limits<float>::max() ? magnitude
                                                                                      : largest;
    }
  }
  return largest;
}

class Narrowing {
 public:
  Narrowing(Function& function, PassContext& context) : function_(function), context_(context) {}

  bool Run() {
    for (const Chain& chain : kChains) Follow(chain);
    bool changed = false;
    std::vector<Operation*> operations;
    for (const std::unique_ptr<Operation>& op : function_.body.operations())
      operations.push_back(op.get());
    for (Operation* op : operations) changed |= Convert(op);
    return changed;
  }

 private:
  static bool HasFp32(const Operation& op) {
    for (const std::vector<Operand>& operands : op.args())
      for (const Operand& operand : operands)
        if (operand.type().is_tensor() && operand.type().dtype == DType::kFp32) return true;
    for (const std::unique_ptr<Value>& result : op.results)
      if (result->type.is_tensor() && result->type.dtype == DType::kFp32) return true;
    return false;
  }

  void Follow(const Chain& chain) {
    std::unordered_set<const Operation*> members;
    const Block::Operations& operations = function_.body.operations();
    for (auto it = operations.rbegin(); it != operations.rend(); ++it) {
      const Operation& op = **it;
      if (op.is("const") || !HasFp32(op)) continue;
      bool member = chain.starts(op);
      if (!member && chain.carries(op)) {
        member = true;
        for (const std::unique_ptr<Value>& result : op.results) {
          member = member && result->output_uses == 0;
          for (const Operation* user : result->users) member = member && members.contains(user);
        }
      }
      if (!member) continue;
      members.insert(&op);
      wide_.emplace(&op, chain.reason);
    }
  }

  // Why the operation must stay fp32; empty when it need not.
  std::string Reason(const Operation& op) {
    if (!op.blocks.empty()) return "control flow stays fp32";
    if (auto it = wide_.find(&op); it != wide_.end()) return std::string(it->second);
    if (!TakesFp16(op)) return "Core ML has this operator in fp32 only";
    if (context_.precision == PassContext::Precision::kMixed && StaysWideWhenMixed(op))
      return "--precision mixed";
    for (size_t i = 0; i < op.args().size(); ++i)
      for (const Operand& operand : op.args()[i]) {
        if (!operand.value || !operand.value->is_constant() ||
            operand.value->type.dtype != DType::kFp32)
          continue;
        auto [it, inserted] = magnitudes_.try_emplace(operand.value, 0.0);
        if (inserted) it->second = MaxMagnitude(operand.value->constant());
        if (it->second >= kOverflow)
          return fmt::format("constant {} holds {:g}, which fp16 cannot",
                             op.def->canonical().params[i].name, it->second);
      }
    return "";
  }

  Value* Half(Value* value, Operation* before) {
    auto it = halves_.find(value);
    if (it != halves_.end()) return it->second;
    Value* half = nullptr;
    if (value->is_constant()) {
      Tensor tensor = value->constant();
      if (tensor.size() == 1 && tensor.Double(0) != 0 && std::fabs(tensor.Double(0)) < kSmallest)
        tensor =
            Tensor::Full(DType::kFp32, tensor.dims(), std::copysign(kSmallest, tensor.Double(0)));
      Builder builder(function_.body, context_.diagnostics, value->def);
      builder.SetLocation(value->def->location);
      half = builder.Const(tensor.Cast(DType::kFp16), value->name + "_to_fp16");
    } else {
      Operation* place = value->def ? function_.body.Next(value->def) : FirstOperation();
      Builder builder(function_.body, context_.diagnostics, place ? place : before);
      builder.SetName(value->name + "_to_fp16");
      half = builder.Make("cast", {{"x", value}, {"dtype", "fp16"}});
    }
    return halves_[value] = half;
  }

  Operation* FirstOperation() {
    return function_.body.operations().empty() ? nullptr
                                               : function_.body.operations().front().get();
  }

  bool Convert(Operation* op) {
    if (op->is("const") || op->is("identity") || !HasFp32(*op)) return false;
    if (op->is("cast")) return ConvertCast(op);
    if (std::string reason = Reason(*op); !reason.empty()) {
      context_.diagnostics.Decide("fp32", op->name, fmt::format("{}: {}", op->def->name, reason));
      return false;
    }
    bool narrowed = false;
    for (size_t i = 0; i < op->args().size(); ++i) {
      std::vector<Operand> operands = op->args()[i];
      bool changed = false;
      for (Operand& operand : operands) {
        if (!operand.type().is_tensor() || operand.type().dtype != DType::kFp32) continue;
        operand = operand.value ? Operand(Half(operand.value, op))
                                : Operand(operand.literal.Cast(DType::kFp16));
        changed = true;
      }
      if (changed) op->SetArg(static_cast<int>(i), std::move(operands));
      narrowed |= changed;
    }
    if (!narrowed) return false;
    InferTypes(*op);
    for (std::unique_ptr<Value>& result : op->results)
      if (result->type.is_tensor() && result->type.dtype == DType::kFp16) Widen(result.get());
    return true;
  }

  // A number that comes from integers or booleans is made as fp16 at once.
  bool ConvertCast(Operation* op) {
    if (op->result()->type.dtype != DType::kFp32 || wide_.contains(op)) return false;
    DType from = op->value("x")->type.dtype;
    if (IsFloat(from)) return false;
    Builder builder(function_.body, context_.diagnostics, op);
    op->SetArg("dtype", {builder.Const(Tensor::String("fp16"), op->name + "_dtype")});
    InferTypes(*op);
    Widen(op->result());
    return true;
  }

  // After `half`, which was fp32: a cast back for those who still want fp32.
  void Widen(Value* half) {
    Builder builder(function_.body, context_.diagnostics, function_.body.Next(half->def));
    builder.SetName(half->name + "_to_fp32");
    builder.SetLocation(half->def->location);
    Value* full = builder.Make("cast", {{"x", half}, {"dtype", "fp32"}});
    std::vector<Operation*> users = half->users;
    std::unordered_set<Operation*> done = {full->def};
    for (Operation* user : users)
      if (done.insert(user).second) user->ReplaceOperand(half, full);
    if (half->output_uses > 0) {
      for (size_t i = 0; i < function_.body.outputs().size(); ++i)
        if (function_.body.outputs()[i] == half)
          function_.body.SetOutput(static_cast<int>(i), full);
      std::string name = half->name;
      function_.Rename(half, name + "_fp16");
      function_.Rename(full, name);
    }
    halves_[full] = half;
  }

  Function& function_;
  PassContext& context_;
  std::unordered_map<Value*, Value*> halves_;
  std::unordered_map<Value*, double> magnitudes_;
  std::unordered_map<const Operation*, std::string_view> wide_;
};

bool Run(Program& program, PassContext& context) {
  if (context.precision == PassContext::Precision::kFp32) return false;
  bool changed = false;
  for (std::unique_ptr<Function>& function : program.functions)
    changed |= Narrowing(*function, context).Run();
  return changed;
}

}  // namespace

const PassDef kFp16Precision = {"fp16-precision", "compute in fp16, but for what fp16 cannot hold",
                                Run};

}  // namespace mlc

// Narrows the program from fp32 to fp16, except for values that fp16 cannot represent.
//
//   y: fp32 = conv(x: fp32, w: fp32)
//     ->   x16 = cast(x); y16 = conv(x16, w16); y = cast(y16 -> fp32)
//
// Casts are inserted at model inputs and outputs and around the operations that stay in fp32
// (precision_plan.h), each of which is a decision in the manifest. A scalar below half the smallest
// fp16 number becomes that number, so that an epsilon does not vanish. Nested blocks are narrowed
// too, but their inputs and outputs keep their types, so that loop-carried sums keep their
// precision. Must not fire on integers, with --precision fp32, or on programs that are in fp16
// already. Numeric effect: fp16 rounding, budget "fp16".
#include <algorithm>
#include <cmath>
#include <unordered_map>
#include <variant>

#include "lib/passes/fp16_sensitivity.h"
#include "lib/passes/precision_plan.h"
#include "lib/passes/rewriting.h"

namespace mlc::passes {
namespace {

constexpr double kSmallest = 0x1p-24;  // the smallest positive fp16 number

class Narrowing {
 public:
  Narrowing(Function& function, PassContext& context)
      : function_(function), context_(context), plan_(PlanPrecision(function, context)) {
    AddInputs(function.body);
    ForEachOperation(function, [&](Operation* op) {
      for (const std::unique_ptr<Block>& block : op->blocks) AddInputs(*block);
    });
  }

  bool Run() {
    std::vector<Operation*> operations;
    ForEachOperation(function_, [&](Operation* op) { operations.push_back(op); });
    bool changed = false;
    for (Operation* op : operations) changed |= Convert(op);
    const std::vector<Value*> outputs = function_.body.outputs();
    for (size_t i = 0; i < outputs.size(); ++i)
      if (narrowed_.contains(outputs[i])) GiveWide(static_cast<int>(i), outputs[i]);
    return changed;
  }

 private:
  void AddInputs(Block& block) {
    for (const std::unique_ptr<Value>& input : block.inputs) inputs_[input.get()] = &block;
  }

  // Returns the fp16 form of a value, which is created once, at its definition.
  Value* Half(Value* value) {
    auto it = halves_.find(value);
    if (it != halves_.end()) return it->second;
    Value* half = nullptr;
    if (value->is_constant()) {
      Tensor tensor = value->constant();
      if (tensor.size() == 1 && tensor.Double(0) != 0 && std::fabs(tensor.Double(0)) < kSmallest)
        tensor =
            Tensor::Full(DType::kFp32, tensor.dims(), std::copysign(kSmallest, tensor.Double(0)));
      Builder builder(*value->def->block, context_.diagnostics, value->def);
      builder.SetLocation(value->def->location);
      half = builder.Const(tensor.Cast(DType::kFp16), value->name + "_to_fp16");
    } else {
      // The operand of a cast to fp32 is cast to fp16 directly, or used as it is if it is fp16.
      Value* source = value;
      if (Operation* cast = DefinedBy(value, "cast"); cast && cast->value("x")) {
        DType from = cast->value("x")->type.dtype;
        if (from == DType::kFp16) return halves_[value] = cast->value("x");
        if (!IsFloat(from)) source = cast->value("x");
      }
      Block& block = value->def ? *value->def->block : *inputs_.at(value);
      Operation* place = value->def                   ? block.Next(value->def)
                         : block.operations().empty() ? nullptr
                                                      : block.operations().front();
      Builder builder(block, context_.diagnostics, place);
      builder.SetName(value->name + "_to_fp16");
      half = builder.Make("cast", {{"x", source}, {"dtype", "fp16"}});
    }
    return halves_[value] = half;
  }

  auto IsNarrowed() const {
    return [this](const Operand& operand) { return narrowed_.contains(operand.value); };
  }

  // Sets all operands of an operation at once, because an operation may have very many, and a value
  // very many users.
  bool Convert(Operation* op) {
    auto planned = plan_.find(op);
    bool wide = planned == plan_.end() || planned->second.fp32();
    if (wide && planned != plan_.end())
      context_.diagnostics.Decide("fp32", op->name,
                                  fmt::format("{}: {}", op->def->name, planned->second.text),
                                  std::string(Name(planned->second.reason)));
    if (wide) {
      TakeWide(*op);
      return false;
    }
    bool narrowed = false;
    for (size_t i = 0; i < op->args().size(); ++i) {
      const Param& param = op->def->canonical().params[i];
      bool takes = Contains(param.types, DType::kFp16) && !op->def->fp16.IsWide(param.name);
      Operands operands = op->args()[i];
      bool changed = false;
      for (Operand& operand : operands) {
        if (narrowed_.contains(operand.value)) {
          if (takes)
            narrowed = true;
          else
            operand = Full(operand.value);
          changed |= !takes;
        } else if (takes && IsFp32(operand.type())) {
          operand = operand.value ? Operand(Half(operand.value))
                                  : Operand(operand.constant().Cast(DType::kFp16));
          changed = narrowed = true;
        }
      }
      if (changed) op->SetArg(static_cast<int>(i), std::move(operands));
    }
    if (!narrowed) return false;
    InferTypes(*op);
    for (std::unique_ptr<Value>& result : op->results)
      if (result->type.is_tensor() && result->type.dtype == DType::kFp16)
        narrowed_.try_emplace(result.get());
    return true;
  }

  // Lets an operation that stays in fp32 read narrowed values in fp32, and lets its blocks return
  // them in fp32.
  void TakeWide(Operation& op) {
    for (int i = 0; i < std::ssize(op.args()); ++i) {
      const Operands& given = op.args()[i];
      if (std::ranges::none_of(given, IsNarrowed())) continue;
      Operands operands = given;
      for (Operand& operand : operands)
        if (narrowed_.contains(operand.value)) operand = Full(operand.value);
      op.SetArg(i, std::move(operands));
    }
    for (std::unique_ptr<Block>& block : op.blocks) {
      const std::vector<Value*> outputs = block->outputs();
      for (size_t i = 0; i < outputs.size(); ++i)
        if (narrowed_.contains(outputs[i])) block->SetOutput(static_cast<int>(i), Full(outputs[i]));
    }
  }

  // Returns a narrowed value cast back to fp32, for users that require it.
  Value* Full(Value* half) {
    Value*& full = fulls_[half];
    if (full) return full;
    Block& block = *half->def->block;
    Builder builder(block, context_.diagnostics, block.Next(half->def));
    builder.SetName(half->name + "_to_fp32");
    builder.SetLocation(half->def->location);
    return full = builder.Make("cast", {{"x", half}, {"dtype", "fp32"}});
  }

  // Replaces output `i` by its fp32 form, which takes over its name.
  void GiveWide(int i, Value* half) {
    Value* full = Full(half);
    std::string name = half->name;
    const std::vector<Use> uses = full->outputs.All();
    bool named =
        std::ranges::any_of(uses, [&](const Use& use) { return use.block == &function_.body; });
    function_.body.SetOutput(i, full);
    if (named) return;
    function_.Rename(half, name + "_fp16");
    function_.Rename(full, name);
  }

  Function& function_;
  PassContext& context_;
  const PrecisionPlan plan_;
  std::unordered_map<const Value*, Block*> inputs_;  // and the blocks that own them
  PointerMap<Value, Value*> halves_, fulls_;
  PointerMap<Value, std::monostate> narrowed_;  // fp16 results that were fp32 before
};

bool RunFp16Precision(Program& program, PassContext& context) {
  if (context.precision == PassContext::Precision::kFp32) return false;
  CheckNamedOperations(program, context);
  if (context.measure) context.measure(program, context);
  return OnEachFunction(program, [&](Function& f) { return Narrowing(f, context).Run(); });
}

}  // namespace

extern const PassDef kFp16Precision = {
    "fp16-precision", "narrow fp32 to fp16, except for values that fp16 cannot represent",
    RunFp16Precision};

}  // namespace mlc::passes

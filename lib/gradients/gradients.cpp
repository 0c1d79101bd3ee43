// Operators by name: state operations, which become values, and products with weights, whose weights
// become operands that may change.
#include "lib/gradients/gradients.h"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "lib/gradients/derivatives.h"
#include "lib/ir/arithmetic.h"
#include "lib/passes/pass.h"

namespace mlc::gradients {

namespace {

bool IsFloatTensor(const Type& type) { return type.is_tensor() && IsFloat(type.dtype); }

// Gives the inputs fixed sizes, makes every float fp32, and turns states into values that start as
// zero.
void Fix(Function& function, const std::map<std::string, Dims>& input_dims,
         Diagnostics& diagnostics) {
  for (const auto& input : function.body.inputs) {
    if (!input->type.is_tensor()) continue;
    if (const auto dims = input_dims.find(input->name); dims != input_dims.end())
      input->type.shape = Shape(dims->second.begin(), dims->second.end());
    if (IsFloatTensor(input->type)) input->type.dtype = DType::kFp32;
    input->stated = nullptr;
  }
  std::vector<Operation*> operations;
  ForEachOperation(function.body, [&](Operation* op) { operations.push_back(op); });
  std::unordered_map<const Value*, Value*> states;
  Builder start(function.body, diagnostics,
                function.body.operations().empty() ? nullptr : function.body.operations().front());
  Value* fp32 = start.Const(Tensor::String("fp32"));
  for (Operation* op : operations) {
    if (op->def->is_const()) {
      if (IsFloat(op->val.dtype()) && op->val.dtype() != DType::kFp32) {
        op->val = op->val.Cast(DType::kFp32).InMemory();
        op->result()->type.dtype = DType::kFp32;
      }
      continue;
    }
    if (op->is("read_state")) {
      Value*& current = states[op->value("input")];
      if (!current) {
        const Type& wrapped = op->value("input")->type.elements[0];
        current = start.Const(Tensor::Full(IsFloat(wrapped.dtype) ? DType::kFp32 : wrapped.dtype,
                                           StaticDims(wrapped.shape), 0));
      }
      ReplaceAllUses(op->result(), current);
      op->block->Erase(op);
      continue;
    }
    if (op->is("write_state")) {
      states[op->value("input")] = op->value("data");
      op->block->Erase(op);
      continue;
    }
    if (op->is("cast") && IsFloatTensor(op->result()->type)) op->SetArg("dtype", {Operand(fp32)});
    for (auto& result : op->results) result->stated = nullptr;
    InferTypes(*op);
  }
}

// Replaces a constant by an input of the function.
Value* AsInput(Function& function, Value* weight, Diagnostics& diagnostics) {
  Value* input = function.AddInput("weight", weight->type);
  for (const Use& use : weight->users.All()) {
    Operation* op = use.operation;
    if (!op || !op->is("linear") || op->value("weight") != weight) continue;
    Builder b(*op->block, diagnostics, op);
    Value* y = b.Make("matmul", {{"x", op->value("x")}, {"y", input}, {"transpose_y", true}});
    if (op->has("bias")) y = Binary(b, "add", y, Operand(op->arg("bias")[0]));
    ReplaceAllUses(op->result(), y);
    op->block->Erase(op);
  }
  ReplaceAllUses(weight, input);
  return input;
}

class Backward {
 public:
  Backward(const Function& function, Builder& b, const std::vector<Value*>& weights) : b_(b) {
    needed_.insert(weights.begin(), weights.end());
    for (Operation* op : function.body.operations()) {
      bool reaches = false;
      for (const Operands& operands : op->args())
        for (const Operand& operand : operands)
          reaches = reaches || needed_.contains(operand.value);
      // Integers and truth values do not change with a weight by little.
      if (!reaches) continue;
      for (const auto& result : op->results)
        if (IsFloatTensor(result->type)) needed_.insert(result.get());
      forward_.push_back(op);
    }
  }

  bool Needs(const Value* value) const { return value && needed_.contains(value); }

  void Add(Value* value, Value* gradient) {
    if (!Needs(value)) return;
    gradient = SummedTo(gradient, StaticDims(value->type.shape));
    Value*& sum = gradients_[value];
    sum = sum ? Binary(b_, "add", sum, gradient) : gradient;
  }

  // The gradients of everything that is needed, from those of the outputs.
  void Run() {
    std::set<std::string> missing;
    for (const Operation* op : forward_)
      if (Counts(*op) && !DerivativeOf(*op)) missing.insert(std::string(op->def->name));
    if (!missing.empty()) {
      std::string list;
      for (const std::string& name : missing) list += (list.empty() ? "" : ", ") + name;
      throw Error("unsupported-operator", "there is no derivative of {}", list);
    }
    for (auto at = forward_.rbegin(); at != forward_.rend(); ++at) {
      const Operation& op = **at;
      Chain chain{.b = b_,
                  .op = op,
                  .of_results = {},
                  .needs = [this](const Value* value) { return Needs(value); },
                  .add = [this](Value* value, Value* gradient) { Add(value, gradient); }};
      bool any = false;
      for (const auto& result : op.results) {
        const auto found = gradients_.find(result.get());
        chain.of_results.push_back(found == gradients_.end() ? nullptr : found->second);
        any = any || chain.of_results.back();
      }
      if (any) DerivativeOf(op)(chain);
    }
  }

  // Zero if the loss does not depend on the value.
  Value* Of(const Value* value) {
    Value*& gradient = gradients_[value];
    if (!gradient)
      gradient = b_.Const(Tensor::Full(DType::kFp32, StaticDims(value->type.shape), 0));
    return gradient;
  }

 private:
  // Returns whether a result of the operation needs a gradient.
  bool Counts(const Operation& op) const {
    return std::ranges::any_of(op.results,
                               [this](const auto& result) { return Needs(result.get()); });
  }

  // Sums the dimensions that an operation has broadcast.
  Value* SummedTo(Value* gradient, const Dims& dims) {
    const Dims from = StaticDims(gradient->type.shape);
    if (from == dims) return gradient;
    std::vector<int64_t> axes;
    const int64_t more = std::ssize(from) - std::ssize(dims);
    for (int64_t d = 0; d < std::ssize(from); ++d)
      if (from[d] != 1 && (d < more || dims[d - more] == 1)) axes.push_back(d);
    if (!axes.empty()) gradient = Reduced(b_, "reduce_sum", gradient, axes, true);
    return WithShape(b_, gradient, dims);
  }

  Builder& b_;
  std::unordered_set<const Value*> needed_;
  std::vector<Operation*> forward_;  // those that a weight reaches
  std::unordered_map<const Value*, Value*> gradients_;
};

}  // namespace

Differentiated Differentiate(const Request& request, Diagnostics& diagnostics) {
  Differentiated result{.program = Clone(*request.function.program)};
  Program& program = result.program;
  std::erase_if(program.functions,
                [&](const auto& function) { return function->name != request.function.name; });
  Function& function = *program.functions[0];
  program.interface.default_function = function.name;
  Fix(function, request.input_dims, diagnostics);

  std::unordered_map<std::string, Value*> constants;
  for (Operation* op : function.body.operations())
    if (op->def->is_const()) constants.emplace(op->result()->name, op->result());
  std::vector<Value*> weights;
  for (const Value* weight : request.weights) {
    const auto found = constants.find(weight->name);
    MLC_CHECK(found != constants.end(), "the weight is no constant of the function");
    weights.push_back(AsInput(function, found->second, diagnostics));
    result.weights.push_back(weights.back()->name);
  }
  passes::PassContext context{.diagnostics = diagnostics,
                              .precision = passes::PassContext::Precision::kFp32,
                              .target = Opset::kIos18};
  passes::RunPasses(program, passes::ParsePasses("static-shapes,fold-constants,dead-code"),
                    context);

  Builder b(function.body, diagnostics);
  b.fold_limit = 0;
  Backward backward(function, b, weights);
  Value* loss = nullptr;
  std::vector<Value*> outputs = function.body.outputs();
  for (Value* output : outputs) {
    if (!request.outputs.contains(output->name) || !backward.Needs(output)) continue;
    auto& names = result.references[output->name];
    Value* reference = function.AddInput("reference", output->type);
    names.reference = reference->name;
    Value* own = nullptr;
    if (request.logits.contains(output->name)) {
      const int64_t positions =
          ElementCount(StaticDims(output->type.shape)) / StaticDims(output->type.shape).back();
      const double share = 1.0 / static_cast<double>(positions);
      auto softmax = [&](Value* x) { return b.Make("softmax", {{"x", x}, {"axis", -1}}); };
      Value* p = softmax(reference);
      Value* difference = Binary(b, "sub", softmax(output), p);
      backward.Add(output, Binary(b, "mul", difference, share));
      Value* sums = Reduced(b, "reduce_log_sum_exp", output, {-1}, true);
      Value* expected = Reduced(b, "reduce_sum", Binary(b, "mul", p, output), {-1}, true);
      own = Binary(b, "mul", Binary(b, "sub", sums, expected), share);
    } else {
      Value* importance = function.AddInput("importance", Type::Tensor(DType::kFp32));
      names.importance = importance->name;
      Value* difference = Binary(b, "sub", output, reference);
      Value* scaled = Binary(b, "mul", difference, importance);
      backward.Add(output, Binary(b, "mul", scaled, 2.0));
      own = Binary(b, "mul", scaled, difference);
    }
    std::vector<int64_t> axes = Consecutive(0, own->type.rank());
    if (!axes.empty()) own = Reduced(b, "reduce_sum", own, axes, false);
    loss = loss ? Binary(b, "add", loss, own) : own;
  }
  if (!loss) throw Error("bad-output", "no output depends on the weights");
  backward.Run();

  std::vector<Value*> made = {loss};
  for (const Value* weight : weights) made.push_back(backward.Of(weight));
  function.outputs.clear();
  for (Value*& value : made) {
    // Outputs have names of their own.
    value = b.Make("identity", {{"x", value}});
    function.outputs.push_back({.name = value->name});
  }
  function.body.SetOutputs(made);
  result.loss = made[0]->name;
  for (size_t i = 1; i < made.size(); ++i) result.gradients.push_back(made[i]->name);
  // States are values now.
  for (size_t i = function.body.inputs.size(); i-- > 0;)
    if (!function.body.inputs[i]->type.is_tensor())
      function.body.inputs.erase(function.body.inputs.begin() + static_cast<ptrdiff_t>(i));
  function.states.clear();
  function.inputs.clear();
  for (const auto& input : function.body.inputs) function.inputs.push_back({.name = input->name});
  passes::RunPasses(program, passes::ParsePasses("common-subexpressions,dead-code"), context);
  return result;
}

}  // namespace mlc::gradients

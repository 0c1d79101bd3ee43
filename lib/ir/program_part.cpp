#include "lib/ir/program_part.h"

#include <algorithm>
#include <functional>
#include <unordered_map>
#include <unordered_set>

#include "lib/ir/builder.h"

namespace mlc {

namespace {

bool HasTensor(const Operation& op) { return op.def->is_const() && op.val; }

// Calls visit(value) for every value that the operation uses, also in its blocks.
void ForEachUsed(const Operation& op, const std::function<void(Value*)>& visit) {
  for (const Operands& operands : op.args())
    for (const Operand& operand : operands)
      if (operand.value) visit(operand.value);
  for (const auto& block : op.blocks) {
    for (Operation* inner : block->operations()) ForEachUsed(*inner, visit);
    for (Value* output : block->outputs()) visit(output);
  }
}

bool WritesState(const Operation& op) {
  if (op.def->effect == Effect::kWritesState) return true;
  for (const auto& block : op.blocks)
    for (const Operation* inner : block->operations())
      if (WritesState(*inner)) return true;
  return false;
}

bool IsState(const Value& value) { return value.type.kind == Type::Kind::kState; }

// The operations in the order of GraphOf.
std::vector<Operation*> NodesOf(const Function& function,
                                std::vector<std::optional<size_t>>* parents = nullptr) {
  std::vector<Operation*> nodes;
  const std::function<void(const Block&, std::optional<size_t>)> visit =
      [&](const Block& block, std::optional<size_t> parent) {
        for (Operation* op : block.operations()) {
          const bool shared =
              std::any_of(op->results.begin(), op->results.end(),
                          [&](const auto& result) { return function.IsShared(result->name); });
          std::optional<size_t> index = parent;
          if (!op->def->is_const() && !shared) {
            index = nodes.size();
            nodes.push_back(op);
            if (parents) parents->push_back(parent);
          }
          for (const auto& nested : op->blocks) visit(*nested, index);
        }
      };
  visit(function.body, std::nullopt);
  return nodes;
}

std::unordered_map<std::string_view, Value*> ValuesByName(Function& function) {
  std::unordered_map<std::string_view, Value*> values;
  for (const auto& input : function.body.inputs) values.emplace(input->name, input.get());
  ForEachOperation(function, [&](Operation* op) {
    for (const auto& result : op->results) values.emplace(result->name, result.get());
  });
  return values;
}

Port PortOf(const Value& value) {
  return {.name = value.name,
          .source_name = value.name,
          .source_dtype = value.type.dtype,
          .source_shape = value.type.shape};
}

// Erases operations of nested blocks that nothing needs.
void EraseUnusedInside(Operation& op, const std::unordered_set<const Operation*>& removed) {
  for (const auto& block : op.blocks) {
    const std::vector<Operation*> operations(block->operations().begin(),
                                             block->operations().end());
    for (auto it = operations.rbegin(); it != operations.rend(); ++it) {
      EraseUnusedInside(**it, removed);
      bool used = WritesState(**it) && !removed.contains(*it);
      for (const auto& result : (*it)->results) used = used || result->has_uses();
      if (!used) block->Erase(*it);
    }
  }
}

// The operation of the function's body that contains the definition of a value; null for an input.
Operation* Outermost(const Value& value) {
  Operation* op = value.def;
  while (op && op->block->parent) op = op->block->parent;
  return op;
}

// Erases the operations of the body that the outputs do not need.
void EraseUnneeded(Function& function, const std::unordered_set<const Operation*>& removed) {
  std::unordered_map<const Value*, std::vector<Operation*>> writers;
  for (Operation* op : function.body.operations()) {
    EraseUnusedInside(*op, removed);
    if (WritesState(*op) && !removed.contains(op))
      ForEachUsed(*op, [&](Value* value) {
        if (IsState(*value)) writers[value].push_back(op);
      });
  }
  std::unordered_set<const Operation*> needed;
  std::vector<Operation*> open;
  const auto need = [&](Operation* op) {
    if (op && needed.insert(op).second) open.push_back(op);
  };
  for (const Value* output : function.body.outputs()) need(Outermost(*output));
  while (!open.empty()) {
    const Operation* op = open.back();
    open.pop_back();
    ForEachUsed(*op, [&](Value* value) {
      need(Outermost(*value));
      if (IsState(*value))
        for (Operation* writer : writers[value]) need(writer);
    });
  }
  const std::vector<Operation*> operations(function.body.operations().begin(),
                                           function.body.operations().end());
  for (auto it = operations.rbegin(); it != operations.rend(); ++it)
    if (!needed.contains(*it)) function.body.Erase(*it);
}

// Drops inputs that nothing uses, and puts the others in the order of `names`, states last.
void ArrangeInputs(Function& function, const std::vector<std::string>& names) {
  std::vector<std::unique_ptr<Value>> values;
  for (auto& value : function.body.inputs)
    if (value->has_uses())
      values.push_back(std::move(value));
    else
      function.ReleaseName(value->name);
  std::unordered_map<std::string, size_t> order;
  for (const std::string& name : names) order.emplace(name, order.size());
  const auto place = [&](const std::unique_ptr<Value>& value) {
    const auto found = order.find(value->name);
    return found == order.end() ? order.size() : found->second;
  };
  std::stable_sort(values.begin(), values.end(),
                   [&](const auto& a, const auto& b) { return place(a) < place(b); });
  for (std::vector<Port>* ports : {&function.inputs, &function.states}) {
    std::map<std::string, Port> by_name;
    for (Port& port : *ports) by_name[port.name] = std::move(port);
    ports->clear();
    for (const auto& value : values)
      if (const auto port = by_name.find(value->name); port != by_name.end())
        ports->push_back(std::move(port->second));
  }
  function.body.inputs = std::move(values);
}

}  // namespace

ModelGraph GraphOf(const Function& function) {
  ModelGraph graph;
  for (const Port& port : function.inputs) graph.inputs.push_back(port.name);
  for (const Port& port : function.states) graph.states.push_back(port.name);
  for (const Value* output : function.body.outputs()) graph.outputs.push_back(output->name);
  std::vector<std::optional<size_t>> parents;
  const std::vector<Operation*> nodes = NodesOf(function, &parents);
  for (size_t i = 0; i < nodes.size(); ++i) {
    GraphNode& node = graph.nodes.emplace_back();
    node.parent = parents[i];
    ForEachUsed(*nodes[i], [&](const Value* value) {
      if (!IsState(*value)) node.operands.push_back(value->name);
    });
    for (const auto& result : nodes[i]->results) {
      node.results.push_back(result->name);
      std::string& stand_in = node.stand_ins.emplace_back();
      for (const Operands& operands : nodes[i]->args())
        for (const Operand& operand : operands)
          if (stand_in.empty() && operand.value && !operand.value->is_constant() &&
              operand.value->type == result->type)
            stand_in = operand.value->name;
    }
  }
  const std::function<void(const Block&, bool)> visit = [&](const Block& block, bool nested) {
    if (nested)
      for (const auto& input : block.inputs) graph.nested.insert(input->name);
    for (const Operation* op : block.operations()) {
      for (const auto& result : op->results)
        if (nested)
          graph.nested.insert(result->name);
        else if (op->def->is_const())
          graph.constants.insert(result->name);
      for (const auto& inner : op->blocks) visit(*inner, true);
    }
  };
  visit(function.body, false);
  return graph;
}

void TakePart(Function& function, const ModelPart& part) {
  std::unordered_set<const Operation*> removed;
  if (!part.removed.empty()) {
    const std::vector<Operation*> nodes = NodesOf(function);
    for (size_t i : part.removed) removed.insert(nodes.at(i));
  }
  const std::unordered_map<std::string_view, Value*> values = ValuesByName(function);
  const auto value_of = [&](const std::string& name) {
    const auto found = values.find(name);
    MLC_CHECK(found != values.end(), "no value {}", name);
    return found->second;
  };
  std::vector<Value*> new_inputs, outputs;
  for (const std::string& name : part.inputs)
    if (Value* value = value_of(name); value->def) new_inputs.push_back(value);
  std::map<std::string, Port> ports;
  for (Port& port : function.outputs) ports[port.name] = std::move(port);
  for (const std::string& name : part.outputs) outputs.push_back(value_of(name));
  std::vector<std::pair<Value*, Value*>> replaced;
  for (const auto& [from, to] : part.replaced) replaced.emplace_back(value_of(from), value_of(to));

  function.body.SetOutputs({});
  for (const auto& [from, to] : replaced) ReplaceAllUses(from, to);
  function.body.SetOutputs(outputs);
  function.outputs.clear();
  for (const Value* output : outputs)
    function.outputs.push_back(ports.contains(output->name) ? std::move(ports[output->name])
                                                            : PortOf(*output));

  bool infer = false;
  for (Value* value : new_inputs) {
    if (!value->type.is_tensor())
      throw Error("bad-operand", "value \"{}\" is a {}, which cannot become an input", value->name,
                  value->type.ToString())
          .Expected("a tensor");
    if (!value->has_uses()) continue;
    Type type = value->type;
    for (Dim& dim : type.shape)
      if (const auto parts = dim.symbol_and_offset();
          !dim.is_constant() && !(parts && (parts->second == 0 || parts->second == -1))) {
        const Dim::Range bounds = dim.Bounds(function.symbols);
        dim = Dim::Symbol(function.FreshSymbol(
            value->name + "_size",
            {std::max<int64_t>(1, bounds.low), std::min<int64_t>(bounds.high, INT32_MAX), {}}));
        infer = true;
      }
    infer = infer || value->elements;
    const std::string name = value->name;
    function.Rename(value, name + "_before");
    Value* input = function.AddInput(name, std::move(type));
    function.inputs.push_back(PortOf(*input));
    for (const Use& use : value->users.All()) use.operation->SetOperand(use, input);
    for (const Use& use : value->outputs.All())
      if (use.block != &function.body) use.block->SetOutput(use.index, input);
  }
  EraseUnneeded(function, removed);
  ArrangeInputs(function, part.inputs);
  if (infer) function.SimplifySizes();
}

void ConvertPortsForCoreml(Function& function) {
  Diagnostics ignored;
  Operation* first = function.body.operations().front();
  const auto convert = [&](Builder& builder, Value* value, DType dtype, bool scalar) {
    value = builder.Cast(value, dtype);
    if (scalar) return builder.Make("squeeze", {{"x", value}, {"axes", Ints({0})}});
    return value;
  };
  for (size_t i = 0; i < function.body.inputs.size(); ++i) {
    Value* input = function.body.inputs[i].get();
    if (!input->type.is_tensor()) continue;
    const bool scalar = input->type.rank() == 0;
    const DType inside = input->type.dtype;
    if (inside != DType::kBool && !scalar) continue;
    const std::vector<Use> uses = input->users.All();
    if (inside == DType::kBool) input->type.dtype = DType::kInt32;
    if (scalar) input->type.shape = {1};
    Builder builder(function.body, ignored, first);
    builder.SetName(input->name + "_inside");
    Value* converted = convert(builder, input, inside, scalar);
    for (const Use& use : uses) use.operation->SetOperand(use, converted);
  }
  for (size_t i = 0; i < function.body.outputs().size(); ++i) {
    Value* output = function.body.outputs()[i];
    const bool scalar = output->type.is_tensor() && output->type.rank() == 0;
    const bool is_bool = output->type.is_tensor() && output->type.dtype == DType::kBool;
    if (!scalar && !is_bool) continue;
    const std::string name = output->name;
    function.Rename(output, name + "_inside");
    Builder builder(function.body, ignored);
    builder.SetName(name);
    Value* converted = is_bool ? builder.Cast(output, DType::kInt32) : output;
    if (scalar) converted = builder.Make("expand_dims", {{"x", converted}, {"axes", Ints({0})}});
    function.body.SetOutput(static_cast<int>(i), converted);
    function.Rename(converted, name);
  }
}

int64_t OperationCount(const Program& program) {
  int64_t count = 0;
  for (const auto& function : program.functions)
    ForEachOperation(*function, [&](const Operation* op) { count += !op->def->is_const(); });
  return count;
}

namespace {

// The elements of a constant are equal.
bool IsUniform(const Tensor& tensor) {
  const Tensor::Range range = tensor.range();
  return !range.nan && range.low == range.high;
}

bool IsNumber(const Tensor& tensor, double number) {
  const Tensor::Range range = tensor.range();
  return !range.nan && range.low == number && range.high == number;
}

std::vector<Operation*> ConstantsToSimplify(Function& function, Simplification how) {
  std::vector<Operation*> constants;
  ForEachOperation(function, [&](Operation* op) {
    if (!HasTensor(*op) || !IsFloat(op->val.dtype()) || op->val.size() == 0) return;
    if (how == Simplification::kUniform ? !IsUniform(op->val)
                                        : !IsNumber(op->val, 0) && !IsNumber(op->val, 1))
      constants.push_back(op);
  });
  return constants;
}

// An optional operand that an operation has.
std::vector<std::pair<Operation*, int>> OptionalOperands(Function& function) {
  std::vector<std::pair<Operation*, int>> found;
  for (Operation* op : NodesOf(function)) {
    const std::vector<Param>& params = op->def->canonical().params;
    for (size_t i = 0; i < params.size(); ++i)
      if (!op->args()[i].empty() && params[i].default_kind != Param::Default::kRequired)
        found.emplace_back(op, static_cast<int>(i));
  }
  return found;
}

// The dimensions of inputs that are numbers above 1.
std::vector<Dim*> InputSizes(Function& function) {
  std::vector<Dim*> sizes;
  for (const auto& input : function.body.inputs)
    input->type.ForEachDim([&](Dim& dim) {
      if (dim.is_constant() && dim.constant() > 1) sizes.push_back(&dim);
    });
  return sizes;
}

std::vector<int64_t> DistinctInputSizes(Function& function) {
  std::set<int64_t> sizes;
  for (const Dim* dim : InputSizes(function)) sizes.insert(dim->constant());
  return {sizes.begin(), sizes.end()};
}

// Reduces the dimensions of these sizes to their first element. In a vector of integers, such as
// the shape operand of reshape, the sizes themselves become 1.
Tensor Shrunk(const Tensor& tensor, const std::set<int64_t>& sizes) {
  if (IsInteger(tensor.dtype())) {
    std::vector<int64_t> values = tensor.Ints();
    for (int64_t& value : values)
      if (sizes.contains(value)) value = 1;
    return Tensor::Of(tensor.dims(), values).Cast(tensor.dtype());
  }
  Dims dims = tensor.dims();
  for (int64_t& dim : dims)
    if (sizes.contains(dim)) dim = 1;
  if (dims == tensor.dims()) return tensor;
  const Dims strides = StridesOf(tensor.dims());
  std::vector<double> values(static_cast<size_t>(ElementCount(dims)));
  Dims at(dims.size());
  for (double& value : values) {
    int64_t offset = 0;
    for (size_t d = 0; d < dims.size(); ++d) offset += at[d] * strides[d];
    value = tensor.Double(offset);
    for (size_t d = dims.size(); d-- > 0;) {
      if (++at[d] < dims[d]) break;
      at[d] = 0;
    }
  }
  return Tensor::Of(dims, values).Cast(tensor.dtype());
}

void ShrinkPorts(Function& function) {
  for (size_t i = 0, n = 0; i < function.body.inputs.size(); ++i) {
    const Value& value = *function.body.inputs[i];
    if (!IsState(value)) function.inputs[n++] = PortOf(value);
  }
  for (size_t i = 0; i < function.outputs.size(); ++i)
    function.outputs[i] = PortOf(*function.body.outputs()[i]);
}

}  // namespace

size_t PlacesToSimplify(Function& function, Simplification how) {
  switch (how) {
    case Simplification::kUniform:
    case Simplification::kZero:
    case Simplification::kOne:
      return ConstantsToSimplify(function, how).size();
    case Simplification::kAttributes:
      return OptionalOperands(function).size();
    case Simplification::kSizes:
      return DistinctInputSizes(function).size();
    case Simplification::kInputSizes:
      return InputSizes(function).size();
  }
  return 0;
}

void Simplify(Function& function, Simplification how, const std::set<size_t>& places) {
  switch (how) {
    case Simplification::kUniform:
    case Simplification::kZero:
    case Simplification::kOne: {
      const std::vector<Operation*> constants = ConstantsToSimplify(function, how);
      for (size_t i : places) {
        Tensor& tensor = constants.at(i)->val;
        const double number = how == Simplification::kUniform ? tensor.Double(0)
                              : how == Simplification::kOne   ? 1
                                                              : 0;
        tensor = Tensor::Full(tensor.dtype(), tensor.dims(), number);
      }
      return;
    }
    case Simplification::kAttributes: {
      const auto operands = OptionalOperands(function);
      for (size_t i : places) operands.at(i).first->SetArg(operands.at(i).second, {});
      break;
    }
    case Simplification::kSizes: {
      const std::vector<int64_t> all = DistinctInputSizes(function);
      std::set<int64_t> sizes;
      for (size_t i : places) sizes.insert(all.at(i));
      for (Dim* dim : InputSizes(function))
        if (sizes.contains(dim->constant())) *dim = 1;
      ForEachOperation(function, [&](Operation* op) {
        if (!HasTensor(*op) || op->val.dtype() == DType::kString || op->val.dtype() == DType::kBool)
          return;
        op->val = Shrunk(op->val, sizes);
        op->result()->type = Type::Tensor(op->val.dtype(), ToShape(op->val.dims()));
      });
      ShrinkPorts(function);
      break;
    }
    case Simplification::kInputSizes: {
      const std::vector<Dim*> sizes = InputSizes(function);
      for (size_t i : places) *sizes.at(i) = 1;
      ShrinkPorts(function);
      break;
    }
  }
  function.SimplifySizes();
  // Constants that only a removed operand used are dropped.
  ModelPart same;
  for (const Port& port : function.inputs) same.inputs.push_back(port.name);
  for (const Value* output : function.body.outputs()) same.outputs.push_back(output->name);
  TakePart(function, same);
}

}  // namespace mlc

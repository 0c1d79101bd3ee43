#include <algorithm>
#include <functional>
#include <unordered_set>

#include "lib/ir/builder.h"
#include "lib/ir/program.h"

namespace mlc {

namespace {

[[noreturn]] void Broken(std::string_view where, const std::string& what) {
  throw InternalError(fmt::format("the program is not valid: {}: {}", where, what));
}

class Verifier {
 public:
  explicit Verifier(const Function& function) : function_(function) {}

  void Run() {
    if (function_.body.function != &function_)
      Broken(function_.name, "its body belongs to another function");
    names_.reserve(function_.body.operations().size());
    values_.reserve(function_.body.operations().size());
    for (const auto& [name, symbol] : function_.symbols) CheckSymbol(name, symbol);
    CheckBlock(function_.body, nullptr);
    CheckPorts();
    for (const auto& [value, found] : values_) CheckUses(*value, found);
  }

 private:
  struct Found {
    size_t operands = 0, outputs = 0;  // uses
    bool visible = true;
  };

  // Checks that the list of uses is complete and that each entry is correct.
  static void CheckUses(const Value& value, const Found& uses) {
    if (value.users.size() != uses.operands)
      Broken(value.name, fmt::format("lists {} users, but is an operand {} times",
                                     value.users.size(), uses.operands));
    if (value.outputs.size() != uses.outputs)
      Broken(value.name, fmt::format("lists {} uses as an output, but has {}", value.outputs.size(),
                                     uses.outputs));
    for (auto it = value.users.begin(); it != value.users.end(); ++it) {
      const Use& use = it.use();
      const Operands& operands = use.operation->args()[use.parameter];
      if (use.index >= std::ssize(operands) || operands[use.index].value != &value)
        Broken(value.name, "lists a use that does not exist");
    }
    for (auto it = value.outputs.begin(); it != value.outputs.end(); ++it)
      if (it.use().block->outputs()[it.use().index] != &value)
        Broken(value.name, "lists an output use that does not exist");
  }

  static void CheckSymbol(const std::string& name, const Symbol& symbol) {
    auto broken = [&](const char* what) {
      Broken(name, fmt::format("the symbol with range {} to {} {}", symbol.low, symbol.high, what));
    };
    if (symbol.low < 1) broken("may be below 1");
    if (symbol.high < symbol.low) broken("has an empty range");
    const std::vector<int64_t>& sizes = symbol.enumerated;
    if (sizes.empty()) return;
    if (std::ranges::adjacent_find(sizes, std::greater_equal<>()) != sizes.end() ||
        sizes.front() != symbol.low || sizes.back() != symbol.high)
      broken("has unsorted sizes, or sizes that do not match its range");
  }

  // Sizes may only use symbols of the function.
  void CheckSize(const Value& value, const Dim& dim) {
    if (dim.is_constant()) return;
    std::string other;
    auto is_other = [this, &other](const std::string& name) {
      if (function_.symbols.contains(name)) return false;
      other = name;
      return true;
    };
    if (dim.HasSymbol(is_other))
      Broken(value.name, fmt::format("its size {} uses {}, which is not a symbol of {}",
                                     dim.ToString(), other, function_.name));
  }
  void CheckSizes(const Value& value, const Type& type) {
    for (const Dim& dim : type.shape) CheckSize(value, dim);
    CheckSize(value, type.length);
    for (const Type& element : type.elements) CheckSizes(value, element);
  }
  void CheckSizes(const Value& value) {
    CheckSizes(value, value.type);
    if (!value.elements) return;
    for (const Dim& element : *value.elements) CheckSize(value, element);
  }

  void Define(const Value& value, const Operation* def, int index) {
    CheckSizes(value);
    if (value.def != def || value.index != index)
      Broken(value.name, "has a wrong link to its definition");
    if (!IsLegalName(value.name)) Broken(value.name, "is not a legal name");
    if (!names_.insert(value.name).second)
      Broken(value.name, "has the same name as another visible value");
    values_[&value];
  }

  void CheckPorts() {
    size_t inputs = 0, states = 0;
    for (const auto& input : function_.body.inputs) {
      bool state = input->type.kind == Type::Kind::kState;
      const std::vector<Port>& ports = state ? function_.states : function_.inputs;
      size_t i = state ? states++ : inputs++;
      if (i >= ports.size() || ports[i].name != input->name)
        Broken(function_.name, fmt::format("input {} has no port at its position", input->name));
    }
    const std::vector<Value*>& outputs = function_.body.outputs();
    if (inputs != function_.inputs.size() || states != function_.states.size() ||
        outputs.size() != function_.outputs.size())
      Broken(function_.name, "has a different number of ports than inputs, states and outputs");
    for (size_t i = 0; i < outputs.size(); ++i)
      if (function_.outputs[i].name != outputs[i]->name)
        Broken(function_.name, fmt::format("output {} has a port named {}", outputs[i]->name,
                                           function_.outputs[i].name));
  }

  void CheckBlock(const Block& block, const Operation* parent) {
    if (block.function != &function_ || block.parent != parent)
      Broken(parent ? parent->Describe() : function_.name, "a block has a wrong link to its owner");
    std::vector<const Value*> own;
    for (const auto& input : block.inputs) {
      Define(*input, nullptr, input->index);
      own.push_back(input.get());
    }
    for (Operation* op : block.operations()) {
      CheckOperation(*op, block);
      for (const auto& result : op->results) own.push_back(result.get());
    }
    for (const Value* output : block.outputs()) {
      auto found = values_.find(output);
      if (found == values_.end() || !found->second.visible)
        Broken(output->name, "is an output but is not defined in the block");
      ++found->second.outputs;
    }
    if (!parent) return;  // values of the function's body are visible to its end
    for (const Value* value : own) {
      values_[value].visible = false;
      names_.erase(value->name);
    }
  }

  void CheckOperation(Operation& op, const Block& block) {
    auto broken = [&](const std::string& what) { Broken(op.Describe(), what); };
    if (op.block != &block) broken("has a wrong link to its block");
    const std::vector<Param>& params = op.def->canonical().params;
    if (op.args().size() != params.size()) broken("does not have one operand list per parameter");
    const Form& form = op.form ? *op.form : op.def->canonical();
    for (size_t i = 0; i < params.size(); ++i) {
      int in_form = op.form ? form.Find(params[i].name) : static_cast<int>(i);
      const Param& param = in_form < 0 ? params[i] : form.params[in_form];
      const Operands& operands = op.args()[i];
      if (operands.empty() && in_form >= 0 && !param.variadic &&
          param.default_kind == Param::Default::kRequired)
        broken(fmt::format("lacks operand {}", param.name));
      if (operands.size() > 1 && !param.variadic)
        broken(fmt::format("has {} operands for {}", operands.size(), param.name));
      for (const Operand& operand : operands) {
        if (!operand.value && !operand.constant())
          broken(fmt::format("operand {} is empty", param.name));
        if (param.is_const && !IsCompileTime(operand))
          broken(fmt::format("operand {} is not a constant", param.name));
        if (!operand.value) continue;
        auto found = values_.find(operand.value);
        if (found == values_.end() || !found->second.visible)
          broken(fmt::format("operand {} is not defined before it", param.name));
        ++found->second.operands;
      }
    }
    for (const auto& nested : op.blocks) CheckBlock(*nested, &op);
    CheckTypes(op);
    for (size_t i = 0; i < op.results.size(); ++i) Define(*op.results[i], &op, static_cast<int>(i));
  }

  static bool IsCompileTime(const Operand& operand) {
    return operand.constant() || (operand.value->def && operand.value->def->def->is_constexpr());
  }

  void CheckTypes(const Operation& op) {
    auto broken = [&](const std::string& what) { Broken(op.Describe(), what); };
    if (op.def->is_const()) {
      if (op.results.size() != 1 || !op.val) broken("a const has one result and a value");
      const Type& type = op.result()->type;
      const Dims& dims = op.val.dims();
      bool same = type.dtype == op.val.dtype() &&
                  std::equal(type.shape.begin(), type.shape.end(), dims.begin(), dims.end());
      if (type.is_tensor() && !same)
        broken(fmt::format("the value is {} {}, but the type is {}", Name(op.val.dtype()),
                           ToString(ToShape(dims)), type.ToString()));
      return;
    }
    if (!op.def->infer) return;
    InferContext context = ContextOf(op);
    try {
      op.def->infer(context);
    } catch (const Error& error) {
      broken(error.text());
    }
    if (context.results.size() != op.results.size())
      broken(fmt::format("has {} results, but infer returns {}", op.results.size(),
                         context.results.size()));
    for (size_t i = 0; i < op.results.size(); ++i)
      if (!Matches(context.results[i], op.results[i]->type, function_.symbols))
        broken(fmt::format("result {} is {}, but infer returns {}", op.results[i]->name,
                           op.results[i]->type.ToString(), context.results[i].ToString()));
  }

  const Function& function_;
  std::unordered_set<std::string_view> names_;
  PointerMap<Value, Found> values_;
};

}  // namespace

void Verify(const Program& program) {
  std::unordered_set<std::string> names;
  for (const auto& function : program.functions) {
    if (!names.insert(function->name).second)
      Broken(function->name, "two functions have this name");
    if (function->program != &program) Broken(function->name, "has a wrong link to its program");
    Verifier(*function).Run();
  }
}

}  // namespace mlc

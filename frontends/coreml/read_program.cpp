#include <algorithm>
#include <set>

#include "frontends/coreml/read.h"
#include "lib/coreml/form_encoding.h"
#include "lib/coreml/interface_entry.h"
#include "lib/ir/builder.h"
#include "lib/ir/port_index.h"
#include "lib/ops/form_params.h"
#include "proto/mil.pb.h"

namespace mlc::coreml {

namespace {

namespace mil = mlc::schema::mil;

bool IsOpen(const Dim& dim) { return dim.symbol() == kOpenDim; }

// Copies a protobuf map and checks that its keys are unique.
template <class Entries>
void CheckKeys(const Entries& entries, const char* what) {
  std::set<std::string> keys;
  for (const auto& entry : entries)
    if (!keys.insert(entry.key()).second)
      throw Error("bad-file", "duplicate {} \"{}\"", what, entry.key());
}

class FunctionReader {
 public:
  FunctionReader(Function& function, const InputDims& input_dims, WeightFiles& weights,
                 const std::string& file)
      : function_(function), input_dims_(input_dims), weights_(weights), file_(file) {}

  void Read(const mil::Function& source) {
    if (source.attributes_size())
      throw Error("unsupported-field", "attributes of functions are not supported");
    std::optional<Opset> opset = ParseOpsetName(source.opset());
    if (!opset)
      throw Error("unsupported-field", "unsupported operator set \"{}\"", source.opset())
          .Expected("{} to {}", OpsetName(Opset::kIos15), OpsetName(Opset::kIos26));
    function_.opset = *opset;
    if (source.block_specializations_size() != 1 ||
        source.block_specializations(0).key() != source.opset())
      throw Error("unsupported-field",
                  "expected a function with a single block, specialized for {}", source.opset());
    const Ports inputs(function_.inputs), states(function_.states);
    for (const mil::NamedValueType& input : source.inputs()) ReadInput(input, inputs, states);
    where_.clear();
    MatchInputs(function_);
    ReadBlock(source.block_specializations(0).value(), function_.body);
    MatchOutputs(function_);
  }

 private:
  template <class... Args>
  [[noreturn]] void Fail(const char* id, TextFormat<Args...> text, Args&&... args) {
    throw Error(id, fmt::format(text, std::forward<Args>(args)...)).At({file_, where_});
  }

  void Define(Value* value) {
    if (!scope_.emplace(value->name, value).second)
      Fail("bad-graph", "duplicate name \"{}\"", value->name);
    defined_.push_back(value->name);
  }

  // --- Inputs and ports.

  using Ports = PortIndex<const std::vector<Port>>;

  void ReadInput(const mil::NamedValueType& source, const Ports& inputs, const Ports& states) {
    where_ = fmt::format("input \"{}\"", source.name());
    Type type = ReadType(source.type());
    bool is_state = type.kind == Type::Kind::kState;
    const Port* port = (is_state ? states : inputs).Find(source.name());
    if (!port) Fail("bad-file", "the input is missing from the description");
    if (is_state) {
      if (!IsStatic(type.elements[0].shape))
        Fail("unsupported-field", "states of flexible shape are not supported");
    } else if (!type.is_tensor()) {
      Fail("unsupported-field", "inputs of type {} are not supported", type.ToString());
    }
    if (port->feature == Port::Feature::kMultiArray && port->dtype != DType::kNone &&
        port->dtype != (is_state ? type.elements[0] : type).dtype)
      Fail("bad-file",

           "the description gives the element type {}, but the type in the program is {}",
           Name(port->dtype), type.ToString());
    if (!is_state) OpenDims(*port, type);
    CheckIdentifier(source.name());
    if (!function_.Claim(source.name())) Fail("bad-graph", "duplicate input name");
    auto value = std::make_unique<Value>();
    value->name = source.name();
    value->type = std::move(type);
    Define(function_.body.inputs.emplace_back(std::move(value)).get());
  }

  // Gives every open dimension of an input a symbol with the range from the description.
  void OpenDims(const Port& port, Type& type) {
    const Shape* named = nullptr;
    if (auto it = input_dims_.find({function_.name, port.name}); it != input_dims_.end())
      named = &it->second;
    bool described = !port.default_shape.empty();
    if (described && port.default_shape.size() != std::max<size_t>(type.shape.size(), 1))
      Fail("bad-file",
           "the description and the program give the input different numbers of dimensions");
    for (size_t d = 0; d < type.shape.size(); ++d) {
      if (!IsOpen(type.shape[d])) continue;
      if (!described)
        Fail("bad-file",
             "the input has a flexible shape, but the description gives no range of sizes");
      std::string name = SymbolName(named, d, port.name);
      std::optional<Dim> size = function_.OpenSize(name, port.DescribedSizes(d));
      if (!size)
        Fail("bad-file", "no size is valid for all uses of the symbolic dimension {}", name);
      type.shape[d] = *size;
    }
  }

  static std::string SymbolName(const Shape* named, size_t d, const std::string& input) {
    if (named && d < named->size())
      if (std::optional<std::string> name = (*named)[d].symbol(); name && IsLegalName(*name))
        return *name;
    return OpenDimName(input, d);
  }

  // --- Blocks and operations.

  void ReadBlock(const mil::Block& source, Block& block) {
    size_t outer = defined_.size();
    if (source.attributes_size())
      Fail("unsupported-field", "attributes of blocks are not supported");
    for (const mil::NamedValueType& input : source.inputs()) {
      auto value = std::make_unique<Value>();
      value->name = ClaimName(input.name());
      value->type = ReadType(input.type());
      Type declared = value->type;
      OpenLength(value->type);
      NameOpenDims(value->type, value->name);
      value->State(std::move(declared));
      Define(block.inputs.emplace_back(std::move(value)).get());
    }
    for (const mil::Operation& operation : source.operations()) {
      where_ = fmt::format("{} \"{}\"", operation.type(),
                           operation.outputs_size() ? operation.outputs(0).name() : std::string());
      auto location = std::make_shared<Location>(Location{file_, where_});
      try {
        ReadOperation(operation, block, location);
      } catch (Error& error) {
        if (!error.has_location())
          error.At(*location);
        else if (error.location().file != file_)
          error.Note("needed by {}", location->ToString());
        throw;
      }
    }
    std::vector<Value*> outputs;
    for (const std::string& name : source.outputs()) outputs.push_back(Find(name));
    block.SetOutputs(std::move(outputs));
    // The names of a nested block go out of scope at its end.
    if (!block.parent && &block == &function_.body) return;
    while (defined_.size() > outer) {
      scope_.erase(defined_.back());
      defined_.pop_back();
    }
  }

  // Sibling blocks may use the same names.
  std::string ClaimName(const std::string& name) {
    CheckIdentifier(name);
    if (scope_.contains(name)) Fail("bad-graph", "duplicate name \"{}\"", name);
    function_.ClaimShared(name);
    return name;
  }

  Value* Find(const std::string& name) {
    auto it = scope_.find(name);
    if (it == scope_.end())
      Fail("bad-graph", "the value \"{}\" is used before it is defined", name);
    return it->second;
  }

  void ReadOperation(const mil::Operation& source, Block& block,
                     std::shared_ptr<const Location> location) {
    const OpDef* def = function_.program->ops->Find(source.type());
    if (!def) Fail("unsupported-operator", "unknown operator \"{}\"", source.type());
    const Form* form = def->FormFor(function_.opset);
    if (!form)
      Fail("unsupported-operator", "operator {} is not available in {}", source.type(),
           OpsetName(function_.opset));
    CheckKeys(source.inputs(), "input");
    CheckKeys(source.attributes(), "attribute");

    auto op = std::make_unique<Operation>();
    op->def = def;
    op->form = form;
    op->location = std::move(location);
    op->name = source.outputs_size() ? source.outputs(0).name() : source.type();
    for (const mil::ValueEntry& attribute : source.attributes()) {
      if (attribute.key() == "name") {
        op->name = ReadString(attribute.value());
      } else if (op->is("const") && attribute.key() == "val") {
        op->val = ReadValue(attribute.value(), weights_);
      } else if (PlacementOf(*def, *form) == ParamPlacement::kAttributes &&
                 HasParam(*def, *form, attribute.key())) {
        op->SetArg(attribute.key(), {ReadValue(attribute.value(), weights_)});
      } else {
        Fail("unsupported-attribute", "{} has no attribute \"{}\"", def->name, attribute.key());
      }
    }
    if (op->is("const") && !op->val) Fail("bad-constant", "const has no value");
    for (const mil::ArgumentEntry& input : source.inputs()) ReadArgument(input, *form, *op);
    for (const mil::NamedValueType& output : source.outputs()) {
      auto value = std::make_unique<Value>();
      value->name = ClaimName(output.name());
      value->type = ReadType(output.type());
      value->def = op.get();
      value->index = static_cast<int>(op->results.size());
      op->results.push_back(std::move(value));
    }
    if (source.blocks_size() && !op->def->runs_blocks())
      Fail("bad-file", "{} cannot have nested blocks", def->name);
    op->block = &block;  // sizes in nested blocks get their symbols through this block
    for (const mil::Block& nested : source.blocks()) {
      auto inner = std::make_unique<Block>();
      inner->function = &function_;
      inner->parent = op.get();
      ReadBlock(nested, *inner);
      op->blocks.push_back(std::move(inner));
    }
    Operation* made = block.Insert(std::move(op), nullptr);
    CheckOperands(*made, *form);
    Infer(*made);
    for (std::unique_ptr<Value>& result : made->results) Define(result.get());
  }

  void ReadArgument(const mil::ArgumentEntry& source, const Form& form, Operation& op) {
    if (PlacementOf(*op.def, form) == ParamPlacement::kAttributes ||
        !HasParam(*op.def, form, source.key()))
      Fail("unsupported-attribute", "{} has no input \"{}\"", op.def->name, source.key());
    const Param& param = form.params[form.Find(source.key())];
    Operands operands;
    for (const mil::Argument::Binding& binding : source.value().arguments()) {
      if (binding.has_name())
        operands.emplace_back(Find(binding.name()));
      else if (binding.has_value())
        operands.emplace_back(ReadValue(binding.value(), weights_));
      else
        Fail("bad-file", "input \"{}\" has an empty binding", source.key());
    }
    if (operands.size() != 1 && !param.variadic)
      Fail("bad-file", "input \"{}\" is bound to {} values instead of one", source.key(),
           operands.size());
    op.SetArg(source.key(), std::move(operands));
  }

  void CheckOperands(const Operation& op, const Form& form) {
    for (const Param& param : form.params)
      if (param.default_kind == Param::Default::kRequired && !param.variadic &&
          HasParam(*op.def, form, param.name) && !op.has(param.name))
        Fail("bad-operand", "{}: required input \"{}\" is missing", op.def->name, param.name);
    if (std::string complaint = OperandComplaint(op, form); !complaint.empty())
      Fail("bad-operand", "{} has an {}", op.def->name, complaint);
  }

  // Infers the result types, with which the types in the file must agree. Where inference cannot
  // determine a dimension, the size in the file is kept.
  void Infer(Operation& op) {
    std::vector<Type> declared;
    for (const auto& result : op.results) {
      declared.push_back(result->type);
      OpenLength(result->type);
    }
    if (op.def->infer) {
      InferContext context = ContextOf(op);
      op.def->infer(context);
      if (context.results.size() != op.results.size())
        Fail("bad-file", "{} has {} results, expected {}", op.def->name, op.results.size(),
             context.results.size());
      InferTypes(op);
    }
    for (size_t i = 0; i < declared.size(); ++i) {
      Type& type = op.results[i]->type;
      NameOpenDims(type, op.results[i]->name);
      op.results[i]->State(declared[i]);
      if (!MayAgree(declared[i], type))
        Fail("bad-file", "a result is declared as {}, but the inferred type is {}",
             declared[i].ToString(), type.ToString());
    }
  }

  // Files declare the initial length of a list even if the list grows.
  static void OpenLength(Type& type) {
    if (type.kind == Type::Kind::kList) type.length = Dim::Symbol(kOpenDim);
  }

  void NameOpenDims(Type& type, const std::string& hint) {
    type.ForEachDim([&](Dim& dim) {
      if (IsOpen(dim)) dim = function_.FreshSize(hint + "_size");
    });
  }

  Function& function_;
  const InputDims& input_dims_;
  WeightFiles& weights_;
  const std::string& file_;
  std::string where_;
  std::unordered_map<std::string, Value*> scope_;  // by their names in the file
  std::vector<std::string>
      defined_;  // in order of definition, so that a block's names can be removed at its end
};

}  // namespace

void ReadProgram(const mil::Program& source, const InputDims& input_dims, WeightFiles& weights,
                 const std::string& file, Program& program) {
  if (source.version() != 1)
    throw Error("unsupported-field", "unsupported program version {}", source.version())
        .Expected("1");
  if (!source.docstring().empty())
    throw Error("unsupported-field", "docString of a program is not supported");
  for (const mil::ValueEntry& attribute : source.attributes()) {
    if (attribute.key() != "buildInfo")
      throw Error("unsupported-field", "unsupported program attribute \"{}\"", attribute.key());
    for (const auto& pair : attribute.value().immediatevalue().dictionary().values())
      program.build_info.emplace_back(ReadString(pair.key()), ReadString(pair.value()));
  }
  for (int i = 0; i < source.functions_size(); ++i)
    FunctionReader(*program.functions[i], input_dims, weights, file)
        .Read(source.functions(i).value());
}

}  // namespace mlc::coreml

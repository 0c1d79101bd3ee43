#include "frontends/onnx/node.h"

#include <fmt/ranges.h>

#include <algorithm>

#include "frontends/onnx/row.h"
#include "frontends/onnx/scope.h"
#include "lib/ir/arithmetic.h"
#include "lib/ir/shape_tensors.h"
#include "lib/lower/convert.h"

namespace mlc::onnx {

namespace {

std::string_view KindName(Attribute::Kind kind) {
  constexpr std::string_view kNames[] = {
      "undefined", "a float",         "an integer",     "a string", "a tensor",
      "a graph",   "floats",          "integers",       "strings",  "tensors",
      "graphs",    "a sparse tensor", "sparse tensors", "a type",   "types"};
  size_t index = static_cast<size_t>(kind);
  return index < std::size(kNames) ? kNames[index] : "of unknown type";
}

// The origin of a run-time value: the model inputs on which it depends, whether it depends on their
// shapes, and whether it depends on a loop-carried value.
struct Origin {
  std::set<std::string> inputs;
  bool shape = false, loop = false;
};

Origin OriginOf(const Value* value, const Function& function) {
  Origin origin;
  std::vector<const Value*> open = {value};
  std::set<const Value*> seen = {value};
  while (!open.empty()) {
    const Value* next = open.back();
    open.pop_back();
    if (!next->def) {
      size_t i = 0;
      while (i < function.body.inputs.size() && function.body.inputs[i].get() != next) ++i;
      if (i < function.body.inputs.size())
        origin.inputs.insert(function.inputs[i].source_name);
      else
        origin.loop = true;
      continue;
    }
    if (next->def->is("shape")) {
      origin.shape = true;
      continue;
    }
    for (const Operands& operands : next->def->args())
      for (const Operand& operand : operands)
        if (operand.value && seen.insert(operand.value).second) open.push_back(operand.value);
    for (const std::unique_ptr<Block>& block : next->def->blocks)
      for (const Value* output : block->outputs())
        if (seen.insert(output).second) open.push_back(output);
  }
  return origin;
}

void AddHelp(Error& error, const Origin& origin) {
  std::string help;
  for (const std::string& input : origin.inputs)
    help += fmt::format(" option 'const' {}=FILE", input);
  if (!help.empty()) error.Help("pass" + help);
  if (origin.shape)
    error.Help(
        "it depends on the shape of an input: fix that shape with option 'shape' or option 'dim'");
  if (origin.loop) error.Note("it may change in each iteration of a loop");
}

// Returns whether an input is computed at run time or its node failed.
bool RunsLater(const Node& node) {
  for (int i = 0; i < node.inputs(); ++i) try {
      Bound bound = node.Input(i);
      if (bound.value && !bound.value->is_constant()) return true;
    } catch (const Skipped&) {
      return true;
    }
  return false;
}

}  // namespace

Sequence::Sequence(std::vector<Bound> elements)
    : elements_(std::make_shared<std::deque<Bound>>(elements.begin(), elements.end())),
      size_(elements.size()) {}

const Bound& Sequence::operator[](size_t i) const { return (*elements_)[i]; }

std::vector<Bound> Sequence::All() const {
  return {elements_->begin(), elements_->begin() + static_cast<std::ptrdiff_t>(size_)};
}

Sequence Sequence::With(Bound last) const {
  Sequence more = elements_->size() == size_ ? *this : Sequence(All());
  more.elements_->push_back(std::move(last));
  ++more.size_;
  return more;
}

Node::Node(const NodeDef& def, Scope& scope, Builder& builder, int opset)
    : def_(def), scope_(scope), builder_(builder), opset_(opset), results_(def.outputs.size()) {}

std::optional<Opset> Node::target() const { return scope_.target(); }

const Attribute* Node::Find(std::string_view name) const {
  for (const Attribute& attribute : def_.attributes)
    if (attribute.name == name) {
      read_.emplace(name);
      return &attribute;
    }
  return nullptr;
}

const Attribute* Node::Find(std::string_view name, Attribute::Kind kind, Attribute::Kind list,
                            bool required) const {
  const Attribute* attribute = Find(name);
  if (!attribute) {
    if (required) Fail("bad-attribute", "attribute \"{}\" is missing", name);
    return nullptr;
  }
  if (attribute->kind != kind && attribute->kind != list)
    Fail("bad-attribute", "attribute \"{}\" is {}, expected {}", name, KindName(attribute->kind),
         KindName(kind));
  return attribute;
}

bool Node::Has(std::string_view name) const { return Find(name) != nullptr; }

int64_t Node::Int(std::string_view name, std::optional<int64_t> fallback) const {
  const Attribute* attribute = Find(name, Attribute::Kind::kInt, Attribute::Kind::kInt, !fallback);
  return attribute ? attribute->ints[0] : *fallback;
}

double Node::Float(std::string_view name, std::optional<double> fallback) const {
  const Attribute* attribute =
      Find(name, Attribute::Kind::kFloat, Attribute::Kind::kInt, !fallback);
  if (!attribute) return *fallback;
  return attribute->kind == Attribute::Kind::kInt ? static_cast<double>(attribute->ints[0])
                                                  : attribute->floats[0];
}

std::string Node::String(std::string_view name, std::optional<std::string> fallback) const {
  const Attribute* attribute =
      Find(name, Attribute::Kind::kString, Attribute::Kind::kString, !fallback);
  return attribute ? attribute->strings[0] : *fallback;
}

std::vector<int64_t> Node::Ints(std::string_view name,
                                std::optional<std::vector<int64_t>> fallback) const {
  const Attribute* attribute = Find(name, Attribute::Kind::kInts, Attribute::Kind::kInt, !fallback);
  return attribute ? attribute->ints : *fallback;
}

std::vector<double> Node::Floats(std::string_view name,
                                 std::optional<std::vector<double>> fallback) const {
  const Attribute* attribute =
      Find(name, Attribute::Kind::kFloats, Attribute::Kind::kFloat, !fallback);
  return attribute ? attribute->floats : *fallback;
}

std::vector<std::string> Node::Strings(std::string_view name,
                                       std::optional<std::vector<std::string>> fallback) const {
  const Attribute* attribute =
      Find(name, Attribute::Kind::kStrings, Attribute::Kind::kString, !fallback);
  return attribute ? attribute->strings : *fallback;
}

Tensor Node::TensorAttribute(std::string_view name) const {
  return scope_.import().Get(
      Find(name, Attribute::Kind::kTensor, Attribute::Kind::kSparse, true)->tensors[0]);
}

const Graph& Node::Subgraph(std::string_view name) const {
  return *Find(name, Attribute::Kind::kGraph, Attribute::Kind::kGraph, true)->graphs[0];
}

void Node::Ignore(std::initializer_list<std::string_view> names) const {
  for (std::string_view name : names) read_.emplace(name);
}

std::vector<std::string> Node::UnreadAttributes() const {
  std::vector<std::string> unread;
  for (const Attribute& attribute : def_.attributes)
    if (!read_.contains(attribute.name) && !(opset_ < 6 && attribute.name == "consumed_inputs"))
      unread.push_back(attribute.name);
  return unread;
}

int Node::inputs() const {
  int count = static_cast<int>(def_.inputs.size());
  while (count > 0 && def_.inputs[count - 1].empty()) --count;
  return count;
}

bool Node::HasInput(int i) const {
  return i < static_cast<int>(def_.inputs.size()) && !def_.inputs[i].empty();
}

Value* Node::In(int i) const {
  if (!HasInput(i)) Fail("bad-graph", "input {} is missing", i);
  Bound bound = Input(i);
  if (!bound.value)
    Fail("bad-graph", "input {} (\"{}\") is {}, expected a tensor", i, def_.inputs[i],
         bound.kind());
  // Run-time values are never fp16, so an fp16 constant beside them is converted.
  if (bound.value->type.dtype == DType::kFp16 && bound.value->is_constant() && RunsLater(*this))
    return Const(bound.value->constant().Cast(lower::RuntimeType(DType::kFp16)));
  return bound.value;
}

Value* Node::Optional(int i) const { return HasInput(i) ? In(i) : nullptr; }

DType Node::dtype(int i) const {
  return HasInput(i) ? scope_.Find(def_.inputs[i]).dtype : DType::kNone;
}

Tensor Node::ConstantOrNone(int i) const {
  return Optional(i) ? Input(i).value->constant() : Tensor();
}

Tensor Node::Known(int i) const {
  Value* value = Optional(i);
  if (!value || value->is_constant() || !value->elements) return ConstantOrNone(i);
  std::vector<int64_t> known;
  for (const Dim& element : *value->elements)
    if (element.is_constant()) known.push_back(element.constant());
  if (known.size() != value->elements->size() || !IsStatic(value->type.shape)) return {};
  return Tensor::Of(StaticDims(value->type.shape), known);
}

Tensor Node::Constant(int i, std::string_view operand) const {
  In(i);
  WantConstants({{i, operand}});
  return Known(i);
}

void Node::WantConstants(const std::vector<Wanted>& wanted, std::string_view because) const {
  std::vector<std::string> operands, notes;
  Origin all;
  for (const Wanted& want : wanted) {
    if (!HasInput(want.input)) continue;
    const std::string& name = def_.inputs[want.input];
    const Value* value = nullptr;
    try {
      if (!Known(want.input)) value = In(want.input);
    } catch (const Skipped&) {  // its own error has been reported
    }
    if (!value) continue;
    operands.push_back(fmt::format("\"{}\" (\"{}\")", want.operand, name));
    Origin origin = OriginOf(value, *builder_.block().function);
    if (value->def && !origin.inputs.empty())
      notes.push_back(fmt::format("\"{}\" is computed from the model's input{} \"{}\"", name,
                                  origin.inputs.size() > 1 ? "s" : "",
                                  fmt::join(origin.inputs, "\", \"")));
    all.inputs.merge(origin.inputs);
    all.shape |= origin.shape;
    all.loop |= origin.loop;
  }
  if (operands.empty()) return;
  bool one = operands.size() == 1;
  std::string what = fmt::format("input{} {} {} computed at run time", one ? "" : "s",
                                 fmt::join(operands, ", "), one ? "is" : "are");
  Error error("needs-constant", because.empty()
                                    ? fmt::format("{}: {}, but Core ML requires {}", op(), what,
                                                  one ? "a constant" : "constants")
                                    : fmt::format("{}: {}: {}", op(), because, what));
  for (const std::string& note : notes) error.Note(note);
  AddHelp(error, all);
  throw error;
}

void Node::FailUnknown(const Value* value, std::string_view text) const {
  Error error("needs-constant", "{}: {}", op(), text);
  AddHelp(error, OriginOf(value, *builder_.block().function));
  throw error;
}

std::optional<std::vector<Dim>> Node::Elements(int i) const { return ElementsOf(In(i)); }

int Node::Axis(int64_t axis, int rank) const {
  if (axis < -rank || axis >= rank)
    Fail("bad-attribute", "axis {} is out of range for a tensor of rank {}", axis, rank);
  return static_cast<int>(axis < 0 ? axis + rank : axis);
}

Value* Node::Make(std::string_view op_name, Builder::Args args) const {
  if (!builder_.program().ops->Find(op_name))
    Fail("unsupported-operator", "the MIL operator \"{}\" is not supported", op_name);
  return SelectInFull(builder_, builder_.Make(op_name, std::move(args)));
}

Value* Node::Apply(std::string_view op_name, int version, const std::vector<Bound>& inputs,
                   std::initializer_list<std::string_view> attributes,
                   std::vector<Attribute> others) const {
  NodeDef def{def_.name, std::string(op_name), "", {}, {def_.outputs[0]}, std::move(others)};
  for (std::string_view name : attributes)
    if (const Attribute* attribute = Find(name)) def.attributes.push_back(*attribute);
  return scope_.Apply(def, version, inputs);
}

Bound Node::Input(int i) const { return HasInput(i) ? scope_.Find(def_.inputs[i]) : Bound(); }

bool Node::HasOutput(int output) const {
  return output >= 0 && output < outputs() && !def_.outputs[output].empty() &&
         scope_.Uses(def_.outputs[output]);
}

void Node::Set(int output, Value* value, DType dtype) {
  if (output >= outputs()) return;
  if (dtype == DType::kNone) {
    DType first = HasInput(0) ? this->dtype(0) : DType::kNone;
    DType own = value->type.dtype;
    dtype = lower::RuntimeType(first) == own && !value->is_constant() ? first : own;
  }
  // Shape arithmetic produces int32 constants where ONNX has int64; constants have the ONNX type.
  if (value->is_constant() && value->type.dtype != dtype &&
      lower::RuntimeType(dtype) == value->type.dtype)
    value = builder_.Const(value->constant().Cast(dtype));
  // Shape arithmetic may have folded run-time integers to int32 constants, and some operations
  // return narrow integers.
  DType want = value->is_constant() ? dtype : lower::RuntimeType(dtype);
  bool alike = (IsInteger(dtype) && IsInteger(value->type.dtype)) ||
               (IsFloat(dtype) && IsFloat(value->type.dtype) && !value->is_constant());
  if (alike && value->type.dtype != want) value = builder_.Cast(value, want);
  results_[output] = {value, dtype};
}

void Node::Set(int output, Bound bound) {
  if (output < outputs()) results_[output] = std::move(bound);
}

void Node::SetSequence(Sequence sequence) { Set(0, Bound{.sequence = std::move(sequence)}); }

std::vector<Bound> Node::Inline(const Graph& graph, const std::vector<Bound>& inputs,
                                Builder& into) const {
  return scope_.Inline(graph, inputs, into);
}

void Node::RequireRunTimeType(DType dtype, std::string_view of_what) const {
  if (lower::RuntimeType(dtype) == DType::kNone)
    Fail("unsupported-dtype", "{} of type {} are not supported", of_what, Name(dtype));
}

void Node::RequireRunTimeArithmetic(DType dtype) const {
  if (dtype == DType::kUint32 || dtype == DType::kUint64)
    Fail("unsupported-dtype",
         "arithmetic on {} at run time is not supported; Core ML has only 32-bit signed integers",
         Name(dtype));
}

void Node::Unsupported(std::string_view attribute, std::string_view text) const {
  std::string full = def_.domain.empty() ? def_.op : def_.domain + "::" + def_.op;
  bool named = attribute.empty() || text.find(attribute) != text.npos;
  Error error("unsupported-attribute", named ? fmt::format("{}: {}", full, text)
                                             : fmt::format("{}: {}: {}", full, attribute, text));
  if (Has(attribute) && def_.domain.empty())
    error.Help(
        "option 'replace' {}.{}=VALUE compiles with a different value, which changes the results",
        op(), attribute);
  throw error;
}

void Node::Fail(std::string_view id, std::string_view text) const {
  std::string full = def_.domain.empty() ? def_.op : def_.domain + "::" + def_.op;
  throw Error(id, "{}: {}", full, text);
}

}  // namespace mlc::onnx

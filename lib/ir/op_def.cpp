#include "lib/ir/op_def.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdlib>
#include <utility>

#include "lib/ir/program.h"
#include "lib/ir/target_systems.h"

namespace mlc {

namespace {
struct TargetRow {
  Opset opset;
  std::string_view opset_name;
  std::array<std::string_view, 5>
      systems;  // the first release of each system that supports it, iOS first
};
// From coremltools' _deployment_compatibility.py and the opsets of its operator registry:
// specification version, first releases, opset name. coremltools does not list visionOS, whose
// releases correspond to iOS 17, iOS 18 and 26.
constexpr std::array<TargetRow, 5> kTargets = {{
    {Opset::kIos15, "CoreML5", {"iOS15", "macOS12", "tvOS15", "watchOS8"}},
    {Opset::kIos16, "CoreML6", {"iOS16", "macOS13", "tvOS16", "watchOS9"}},
    {Opset::kIos17, "CoreML7", {"iOS17", "macOS14", "tvOS17", "watchOS10", "visionOS1"}},
    {Opset::kIos18, "CoreML8", {"iOS18", "macOS15", "tvOS18", "watchOS11", "visionOS2"}},
    {Opset::kIos26, "CoreML9", {"iOS26", "macOS26", "tvOS26", "watchOS26", "visionOS26"}},
}};

bool EqualNoCase(std::string_view a, std::string_view b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](unsigned char x, unsigned char y) {
    return std::tolower(x) == std::tolower(y);
  });
}

// The tensor for a literal default, in the narrowest natural dtype of the parameter.
Tensor LiteralDefault(const Param& param) {
  std::string text(param.default_text);
  if (Contains(param.types, DType::kString) && !Contains(param.types, DType::kFp32))
    return Tensor::String(text);
  if (text == "true" || text == "false") return Tensor::Scalar<bool>(text == "true");
  bool integral = text.find_first_of(".e") == std::string::npos;
  if (integral && (param.types & (SetOf(DType::kInt32) | SetOf(DType::kInt64))))
    return Tensor::Scalar<int32_t>(static_cast<int32_t>(std::strtol(text.c_str(), nullptr, 10)));
  return Tensor::Scalar<float>(std::strtof(text.c_str(), nullptr));
}
}  // namespace

std::string_view TargetName(Opset opset) {
  for (const TargetRow& row : kTargets)
    if (row.opset == opset) return row.systems[0];
  return "unknown";
}

std::vector<SystemRelease> SystemsOf(Opset target) {
  std::vector<SystemRelease> releases;
  for (const TargetRow& row : kTargets)
    for (std::string_view name : row.systems)
      if (row.opset == target && !name.empty()) {
        const size_t digits = name.find_first_of("0123456789");
        releases.push_back({name.substr(0, digits), name.substr(digits)});
      }
  return releases;
}

std::string_view OpsetName(Opset opset) {
  for (const TargetRow& row : kTargets)
    if (row.opset == opset) return row.opset_name;
  return "unknown";
}

std::optional<Opset> ParseTarget(std::string_view name) {
  for (const TargetRow& row : kTargets)
    for (std::string_view system : row.systems)
      if (!system.empty() && EqualNoCase(name, system)) return row.opset;
  return std::nullopt;
}

std::optional<Opset> ParseOpsetName(std::string_view name) {
  for (const TargetRow& row : kTargets)
    if (name == row.opset_name) return row.opset;
  return std::nullopt;
}

OpContext::OpContext(const OpDef& def, const OperandLists& operands, const Operation* op)
    : def_(def), operands_(&operands), op_(op) {}
OpContext::OpContext(const OpDef& def, const OperandLists& operands, const Values& known)
    : def_(def), operands_(&operands), known_(&known) {}
OpContext::OpContext(const OpDef& def, Args args, const Operation* op)
    : def_(def), args_(std::move(args)), op_(op) {}

InferContext::InferContext(const OpDef& def, const OperandLists& operands, const Operation* op,
                           const Symbols* symbols)
    : OpContext(def, operands, op), symbols_(symbols) {}
InferContext::InferContext(const OpDef& def, const OperandLists& operands, const Values& known)
    : OpContext(def, operands, known) {}
InferContext::InferContext(const OpDef& def, Args args) : OpContext(def, std::move(args)) {}

void InferContext::Result(Type type) {
  results.push_back(std::move(type));
  dims.emplace_back();
}
void InferContext::Result(DType dtype, Shape shape) {
  Result(Type::Tensor(dtype, std::move(shape)));
}
void InferContext::Elements(std::vector<Dim> elements) { dims.back() = std::move(elements); }

EvalContext::EvalContext(const OpDef& def, const OperandLists& operands,
                         std::vector<Type> result_types, const Operation* op)
    : OpContext(def, operands, op), result_types(std::move(result_types)) {}
EvalContext::EvalContext(const OpDef& def, const OperandLists& operands, const Values& known,
                         std::vector<Type> result_types)
    : OpContext(def, operands, known), result_types(std::move(result_types)) {}
EvalContext::EvalContext(const OpDef& def, Args args, std::vector<Type> result_types,
                         const Operation* op)
    : OpContext(def, std::move(args), op), result_types(std::move(result_types)) {}

void EvalContext::Set(Tensor tensor) { results.push_back(std::move(tensor)); }

int Form::Find(std::string_view name) const {
  for (size_t i = 0; i < params.size(); ++i) {
    // This is a hot path: names of equal length mostly differ in their first character.
    std::string_view own = params[i].name;
    if (own.size() == name.size() && own[0] == name[0] && own == name) return static_cast<int>(i);
  }
  return -1;
}

size_t OpContext::Index(std::string_view name) const {
  int index = def_.Find(name);
  MLC_CHECK(index >= 0, "{} has no parameter {}", def_.name, name);
  return static_cast<size_t>(index);
}

Tensor EvalContext::Change(std::string_view name, std::byte** out) {
  if (Arg* arg = own(name)) {
    *out = arg->value.Overwritable(holders);
    if (*out) return std::exchange(arg->value, {});
  }
  const Tensor from = in(name);
  Tensor copy = Tensor::Allocate(from.dtype(), from.dims(), out);
  from.Read(0, from.size(), *out);
  on_change = nullptr;
  return copy;
}

int OpContext::count(std::string_view name) const {
  size_t index = Index(name);
  size_t lists = operands_ ? operands_->size() : args_.size();
  if (index >= lists) return 0;
  return static_cast<int>(operands_ ? (*operands_)[index].size() : args_[index].size());
}

bool OpContext::has(std::string_view name) const { return count(name) > 0; }

OpContext::Found OpContext::Find(std::string_view name, int i) const {
  size_t index = Index(name);
  if (!operands_) {
    bool there = index < args_.size() && i < std::ssize(args_[index]);
    return {nullptr, there ? &args_[index][i] : nullptr};
  }
  if (index >= operands_->size() || i >= std::ssize((*operands_)[index])) return {};
  const Operand* operand = &(*operands_)[index][i];
  if (known_)
    if (auto known = known_->find(operand->value); known != known_->end())
      return {nullptr, &known->second};
  return {operand, nullptr};
}

const Type& OpContext::type(std::string_view name, int i) const {
  Found found = Find(name, i);
  if (!found.operand && !found.arg) Fail(fmt::format("needs an operand \"{}\"", name));
  return found.arg ? found.arg->type : found.operand->type();
}

namespace {
// Other dtypes are converted later, but a string is never a number.
void RequireStrings(const OpContext& context, std::string_view name) {
  const Form& form = context.def().canonical();
  DTypeSet types = form.params[static_cast<size_t>(form.Find(name))].types;
  if (types != 0 && !Contains(types, DType::kString))
    context.Fail("operand \"{}\" is a string, expected a number", name);
}
}  // namespace

const Tensor& OpContext::ValueOf(std::string_view name, int i, Tensor& fallback) const {
  Found found = Find(name, i);
  if (found.arg || found.operand) {
    const Tensor& given = found.arg ? found.arg->value : found.operand->constant();
    if (given && given.dtype() == DType::kString) RequireStrings(*this, name);
    return given;
  }
  const Param& param = def_.canonical().params[Index(name)];
  if (param.default_kind == Param::Default::kLiteral)
    fallback = LiteralDefault(param);
  else if (param.default_kind == Param::Default::kComputed && def_.default_value)
    fallback = def_.default_value(*this, name);
  return fallback;
}

Tensor OpContext::value(std::string_view name, int i) const {
  Tensor fallback;
  return ValueOf(name, i, fallback);
}

const Tensor& OpContext::Known(std::string_view name, Tensor& fallback) const {
  const Tensor& tensor = ValueOf(name, 0, fallback);
  if (!tensor)
    throw Error("needs-constant", "{}: operand \"{}\" must be known at compile time", def_.name,
                name);
  return tensor;
}

namespace {
const Tensor& Scalar(const OpContext& context, std::string_view name, const Tensor& tensor) {
  if (tensor.size() != 1)
    context.Fail("operand \"{}\" has {} elements, expected one", name, tensor.size());
  return tensor;
}
}  // namespace

const Tensor& OpContext::Number(std::string_view name, Tensor& fallback) const {
  const Tensor& tensor = Scalar(*this, name, Known(name, fallback));
  if (tensor.dtype() == DType::kString)
    Fail(fmt::format("operand \"{}\" is a string, expected a number", name));
  return tensor;
}

int64_t OpContext::Int(std::string_view name) const {
  Tensor fallback;
  return Number(name, fallback).Int(0);
}

double OpContext::Double(std::string_view name) const {
  Tensor fallback;
  return Number(name, fallback).Double(0);
}

bool OpContext::Bool(std::string_view name) const {
  Tensor fallback;
  return Number(name, fallback).Bool(0);
}

std::string OpContext::String(std::string_view name) const {
  Tensor fallback;
  const Tensor& tensor = Scalar(*this, name, Known(name, fallback));
  if (tensor.dtype() != DType::kString)
    Fail(fmt::format("operand \"{}\" is {}, expected a string", name, Name(tensor.dtype())));
  return tensor.strings()[0];
}

std::vector<int64_t> OpContext::Ints(std::string_view name) const {
  Tensor fallback;
  const Tensor& tensor = Known(name, fallback);
  if (tensor.dtype() == DType::kString || tensor.rank() > 1)
    Fail(fmt::format("operand \"{}\" is not a vector of integers", name));
  if (tensor.size() > 1 << 20) Fail(fmt::format("operand \"{}\" has too many elements", name));
  return tensor.Ints();
}

std::optional<std::vector<Dim>> OpContext::Elements(std::string_view name, int i) const {
  Tensor fallback;
  if (const Tensor& tensor = ValueOf(name, i, fallback)) {
    if (tensor.rank() > 1 || tensor.dtype() == DType::kString || IsFloat(tensor.dtype()) ||
        tensor.size() > 4096)
      return std::nullopt;
    std::vector<int64_t> ints = tensor.Ints();
    return std::vector<Dim>(ints.begin(), ints.end());
  }
  const std::vector<Dim>* known = KnownElements(name, i);
  return known ? std::optional(*known) : std::nullopt;
}

const std::vector<Dim>* OpContext::KnownElements(std::string_view name, int i) const {
  Found found = Find(name, i);
  const std::optional<std::vector<Dim>>* elements = nullptr;
  if (found.arg)
    elements = &found.arg->elements;
  else if (found.operand && found.operand->value)
    elements = &found.operand->value->elements;
  return elements && *elements ? &**elements : nullptr;
}

std::vector<std::optional<Dim>> OpContext::Parts(std::string_view name) const {
  size_t length = static_cast<size_t>(shape(name)[0].constant());
  std::vector<std::optional<Dim>> parts;
  if (auto elements = Elements(name)) {
    parts.assign(elements->begin(), elements->end());
  } else if (const Operand* from = operand(name, 0); from && from->value && from->value->def &&
                                                     from->value->def->is("concat") &&
                                                     IsInteger(from->type().dtype)) {
    for (const Operand& operand : from->value->def->arg("values")) {
      const Tensor& constant = operand.constant();
      if (constant && constant.rank() == 1 && IsInteger(constant.dtype())) {
        for (int64_t value : constant.Ints()) parts.emplace_back(value);
      } else if (operand.value && operand.value->elements) {
        parts.insert(parts.end(), operand.value->elements->begin(), operand.value->elements->end());
      } else {
        Dim count = Product(operand.type().shape);
        if (!count.is_constant()) return std::vector<std::optional<Dim>>(length);
        parts.resize(parts.size() + count.constant());
      }
    }
    for (const Operand& interleave : from->value->def->arg("interleave"))
      if (!interleave.constant() || interleave.constant().Bool(0)) parts.clear();
  }
  if (parts.size() != length) parts.assign(length, std::nullopt);
  return parts;
}

int OpContext::Axis(int64_t axis, int rank) {
  if (axis < -rank || axis >= rank)
    throw Error("bad-operand", "axis {} is out of range for an operand of rank {}", axis, rank);
  return static_cast<int>(axis < 0 ? axis + rank : axis);
}

void OpContext::Fail(std::string text) const {
  throw Error("bad-operand", "{}: {}", def_.name, text);
}

const Symbols& InferContext::symbols() const {
  static const Symbols none;
  return symbols_ ? *symbols_ : none;
}

// A symbol is at least 1, while a data-dependent size may be 0.
Dim InferContext::Fresh(std::string_view hint) {
  return Dim::Symbol(fmt::format("?{}{}", hint, fresh++)) - 1;
}

bool InferContext::HasPlaceholder(const Dim& dim) {
  return dim.HasSymbol([](const std::string& name) { return name[0] == '?'; });
}

OpDef::OpDef(const OpRow& row, std::vector<Form> parsed)
    : OpRow(row),
      forms(std::move(parsed)),
      pure(effect == Effect::kNone),
      view(moves == Moves::kShape || moves == Moves::kView) {
  // Moving elements preserves integers and sums of them.
  if (moves != Moves::kNone) fp16.kind |= Fp16::kKeepsWhole | Fp16::kKeepsSums;
}

const Form* OpDef::FormFor(Opset target) const {
  const Form* best = nullptr;
  for (const Form& form : forms)
    if (form.since <= target) best = &form;
  return best;
}

OpSet::OpSet(std::vector<OpDef> defs) : defs_(std::move(defs)) {
  std::ranges::sort(defs_, [](const OpDef& a, const OpDef& b) { return a.name < b.name; });
  for (const OpDef& def : defs_)
    MLC_CHECK(by_name_.emplace(def.name, &def).second, "operator {} has two rows", def.name);
}

const OpDef* OpSet::Find(std::string_view name) const {
  auto it = by_name_.find(name);
  return it == by_name_.end() ? nullptr : it->second;
}

const OpDef& OpSet::At(std::string_view name) const {
  const OpDef* def = Find(name);
  MLC_CHECK(def, "no operator {}", name);
  return *def;
}

}  // namespace mlc

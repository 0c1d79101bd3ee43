#include "lib/ir/program.h"

#include <algorithm>
#include <array>
#include <set>

#include "lib/ir/builder.h"

namespace mlc {

// Initialised before any code runs.
constinit const Tensor kNoTensor{};

void Value::State(Type as_read) {
  Type known = type;
  for (Type* each : {&as_read, &known})
    each->ForEachDim([](Dim& dim) {
      if (!dim.is_constant()) dim = Dim::Symbol("?");
    });
  if (!(as_read == known)) stated = std::make_shared<const Type>(std::move(as_read));
}

Operand::Operand(Tensor literal) {
  Type type = Type::Tensor(literal.dtype(), ToShape(literal.dims()));
  literal_ = std::make_shared<const Literal>(Literal{std::move(literal), std::move(type)});
}

const Type& Operand::type() const {
  static const Type none;
  return value ? value->type : literal_ ? literal_->type : none;
}

const Operands& Operation::arg(std::string_view param) const {
  int index = def->Find(param);
  MLC_CHECK(index >= 0, "{} has no parameter {}", def->name, param);
  static const Operands none;
  return args_.empty() ? none : args_[index];
}

Value* Operation::value(std::string_view param, int i) const {
  const Operands& operands = arg(param);
  return i < static_cast<int>(operands.size()) ? operands[i].value : nullptr;
}

const Tensor& Operation::constant(std::string_view param, int i) const {
  const Operands& operands = arg(param);
  return i < static_cast<int>(operands.size()) ? operands[i].constant() : kNoTensor;
}

Tensor Operation::constant_or_default(std::string_view param) const {
  if (has(param)) return constant(param);
  return OpContext(*def, args_, this).value(param);
}

void Operation::SetArg(std::string_view param, Operands operands) {
  int index = def->Find(param);
  MLC_CHECK(index >= 0, "{} has no parameter {}", def->name, param);
  SetArg(index, std::move(operands));
}

std::vector<Use> Uses::All() const {
  std::vector<Use> all;
  all.reserve(size_);
  for (auto it = begin(); it != end(); ++it) all.push_back(it.use());
  return all;
}

uint32_t Uses::Add(const Use& use) {
  places_.push_back(use);
  ++size_;
  return static_cast<uint32_t>(places_.size() - 1);
}

void Uses::Remove(uint32_t place) {
  constexpr size_t kFew = 8;
  places_[place] = {};
  --size_;
  while (!places_.empty() && !places_.back().operation && !places_.back().block) places_.pop_back();
  if (places_.size() < kFew || size_ > places_.size() / 2) return;
  uint32_t kept = 0;
  for (auto it = begin(); it != end(); ++it) places_[kept++] = it.use();
  places_.resize(kept);
  for (uint32_t i = 0; i < kept; ++i) {
    const Use& use = places_[i];
    if (use.operation)
      use.operation->args_[use.parameter][use.index].place_ = i;
    else
      use.block->places_[use.index] = i;
  }
}

void Operation::AddUses(int parameter) {
  Operands& operands = args_[parameter];
  for (size_t i = 0; i < operands.size(); ++i)
    if (Value* value = operands[i].value)
      operands[i].place_ = value->users.Add({this, nullptr, parameter, static_cast<int>(i)});
}

void Operation::DropUses(int parameter) {
  for (const Operand& operand : args_[parameter])
    if (operand.value) operand.value->users.Remove(operand.place_);
}

void Operation::SetArg(int index, Operands operands) {
  args_.resize(def->canonical().params.size());
  if (block) DropUses(index);
  args_[index] = std::move(operands);
  if (block) AddUses(index);
}

void Operation::SetOperand(const Use& use, Value* value) {
  Operand& operand = args_[use.parameter][use.index];
  if (block && operand.value) operand.value->users.Remove(operand.place_);
  operand = value;
  if (block) operand.place_ = value->users.Add(use);
}

std::string Operation::Describe() const {
  std::string text = fmt::format("{} \"{}\"", def->name, name);
  if (location && !location->empty()) text += " (from " + location->ToString() + ")";
  return text;
}

Block::~Block() {
  if (is_alone()) Clear();
}

bool Block::is_alone() const { return function && !parent && this != &function->body; }

void Block::SetOutputs(std::vector<Value*> outputs) {
  for (size_t i = 0; i < outputs_.size(); ++i) outputs_[i]->outputs.Remove(places_[i]);
  outputs_ = std::move(outputs);
  places_.resize(outputs_.size());
  for (size_t i = 0; i < outputs_.size(); ++i)
    places_[i] = outputs_[i]->outputs.Add({nullptr, this, -1, static_cast<int>(i)});
}

void Block::SetOutput(int i, Value* value) {
  outputs_[i]->outputs.Remove(places_[i]);
  outputs_[i] = value;
  places_[i] = value->outputs.Add({nullptr, this, -1, i});
}

Block::Operations::~Operations() {
  for (Operation* op = first_; op;) delete std::exchange(op, op->next_);
}

void Block::Operations::Link(Operation* op, Operation* before) {
  op->next_ = before;
  op->previous_ = before ? before->previous_ : last_;
  (op->previous_ ? op->previous_->next_ : first_) = op;
  (before ? before->previous_ : last_) = op;
  ++size_;
}

void Block::Operations::Unlink(Operation* op) {
  (op->previous_ ? op->previous_->next_ : first_) = op->next_;
  (op->next_ ? op->next_->previous_ : last_) = op->previous_;
  --size_;
}

Operation* Block::Insert(std::unique_ptr<Operation> op, Operation* before) {
  MLC_CHECK(!before || before->block == this, "insertion point is in another block");
  Operation* raw = op.get();
  raw->block = this;
  raw->args_.resize(raw->def->canonical().params.size());
  for (std::unique_ptr<Block>& nested : raw->blocks) {
    nested->function = function;
    nested->parent = raw;
    TakeSymbols(*nested);
  }
  operations_.Link(op.release(), before);
  for (size_t i = 0; i < raw->args_.size(); ++i) raw->AddUses(static_cast<int>(i));
  return raw;
}

void Block::Erase(Operation* op) {
  for (std::unique_ptr<Value>& result : op->results) {
    MLC_CHECK(!result->has_uses(), "erasing {}, whose result {} is used", op->Describe(),
              result->name);
    function->ReleaseName(result->name);
  }
  for (std::unique_ptr<Block>& nested : op->blocks) nested->Clear();
  for (size_t i = 0; i < op->args_.size(); ++i) op->DropUses(static_cast<int>(i));
  operations_.Unlink(op);
  delete op;
}

void Block::Clear() {
  SetOutputs({});
  while (!operations_.empty()) Erase(operations_.back());
  for (std::unique_ptr<Value>& input : inputs) function->ReleaseName(input->name);
  inputs.clear();
  Widen();
  if (!symbols_.empty()) function->next_symbol_.clear();
  for (const std::string& symbol : symbols_) {
    function->symbols.erase(symbol);
    std::erase_if(function->narrowings_, [&](const auto& n) { return n.symbol == symbol; });
  }
  symbols_.clear();
}

void Block::Append(Block& alone) {
  alone.SetOutputs({});
  while (!alone.operations_.empty()) MoveBefore(alone.operations_.front(), nullptr);
  TakeSymbols(alone);
}

std::string Block::FreshSymbol(std::string_view hint) {
  if (parent) return parent->block->FreshSymbol(hint);
  std::string symbol = function->FreshSymbol(hint);
  if (is_alone()) symbols_.push_back(symbol);
  return symbol;
}

void Block::Narrow(const std::string& symbol, Symbol left) {
  if (parent) return parent->block->Narrow(symbol, std::move(left));
  Symbol& known = function->symbols.at(symbol);
  auto& narrowings = function->narrowings_;
  if (is_alone() || !narrowings.empty())
    narrowings.push_back({is_alone() ? this : nullptr, symbol, known});
  known = std::move(left);
}

// A later narrowing of the same symbol started from the sizes that this block left; it must now
// start from the sizes before this block.
void Block::Widen() {
  auto& narrowings = function->narrowings_;
  for (size_t i = narrowings.size(); i-- > 0;) {
    if (narrowings[i].by != this) continue;
    auto same = [&](const Function::Narrowing& n) { return n.symbol == narrowings[i].symbol; };
    auto at = narrowings.begin() + static_cast<std::ptrdiff_t>(i);
    auto later = std::find_if(at + 1, narrowings.end(), same);
    Symbol& found = later != narrowings.end() ? later->before : function->symbols.at(at->symbol);
    found = std::move(at->before);
    narrowings.erase(at);
  }
}

void Block::TakeSymbols(Block& from) {
  Block* to = this;
  while (to->parent) to = to->parent->block;
  if (to->is_alone())
    to->symbols_.insert(to->symbols_.end(), from.symbols_.begin(), from.symbols_.end());
  from.symbols_.clear();
  auto& narrowings = function->narrowings_;
  for (Function::Narrowing& narrowing : narrowings)
    if (narrowing.by == &from) narrowing.by = to->is_alone() ? to : nullptr;
  auto open = [](const Function::Narrowing& narrowing) { return narrowing.by; };
  narrowings.erase(narrowings.begin(), std::ranges::find_if(narrowings, open));
}

void Block::MoveBefore(Operation* op, Operation* before) {
  MLC_CHECK(op->block->function == function && (!before || before->block == this),
            "moving between functions, or before an operation of another block");
  if (op->block != this)
    for (std::unique_ptr<Value>& result : op->results)
      if (function->IsShared(result->name)) function->Rename(result.get(), result->name);
  if (op == before) return;
  op->block->operations_.Unlink(op);
  operations_.Link(op, before);
  op->block = this;
}

Operation* Block::Next(const Operation* op) const { return op->next_; }

bool Block::Precedes(const Operation* a, const Operation* b) const {
  for (const Operation* op : operations_) {
    if (op == b) return false;
    if (op == a) return true;
  }
  return false;
}

Symbol Port::DescribedSizes(size_t d) const {
  Symbol sizes{1, INT32_MAX, {}};
  if (d < shape_range.size()) {
    auto [low, high] = shape_range[d];
    sizes.low = low;
    sizes.high = high < 0 ? INT32_MAX : high;
  }
  std::set<int64_t> listed;
  for (const Dims& dims : enumerated_shapes)
    if (d < dims.size()) listed.insert(dims[d]);
  if (!listed.empty()) sizes = {*listed.begin(), *listed.rbegin(), {listed.begin(), listed.end()}};
  return sizes;
}

Function::Function(Program* owner, std::string function_name)
    : name(std::move(function_name)), program(owner) {
  body.function = this;
}

namespace {
bool IsDigit(char c) { return c >= '0' && c <= '9'; }
bool BelongsInName(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || IsDigit(c) || c == '_' || c == '@';
}
bool BeginsName(char c) { return !IsDigit(c) && c != '@'; }

// Words that Core ML's text parser reads as type keywords where a name is expected (mlmodelc.md,
// section 1).
bool IsTypeWord(std::string_view name) {
  static constexpr std::array<std::string_view, 29> kTypeWords = {
      // sorted
      "bf16",  "bool",   "dict",  "false", "fp16",    "fp32",  "fp64",   "func",   "int16", "int32",
      "int4",  "int64",  "int8",  "list",  "program", "state", "string", "tensor", "true",  "tuple",
      "uint1", "uint16", "uint2", "uint3", "uint32",  "uint4", "uint6",  "uint64", "uint8"};
  static_assert(std::ranges::is_sorted(kTypeWords));
  constexpr size_t kLongest = 7;
  return name.size() <= kLongest && std::ranges::binary_search(kTypeWords, name);
}
}  // namespace

bool IsLegalName(std::string_view text) {
  return !text.empty() && BeginsName(text[0]) && std::ranges::all_of(text, BelongsInName) &&
         !IsTypeWord(text);
}

std::string LegalName(std::string_view text) {
  std::string name(text);
  for (char& c : name)
    if (!BelongsInName(c)) c = '_';
  if (name.empty() || !BeginsName(name[0])) name = "_" + name;
  if (IsTypeWord(name)) name += '_';
  return name;
}

bool Function::Claim(std::string_view name) {
  int& values = names_[name].values;
  return values == 0 && ++values;
}

std::string Function::UniqueName(std::string_view hint) {
  std::string base = LegalName(hint.empty() ? "value" : hint);
  Names::Name& wanted = names_[base];
  if (wanted.values == 0) {
    ++wanted.values;
    return base;
  }
  while (true) {
    std::string name = fmt::format("{}_{}", base, wanted.next++);
    if (Claim(name)) return name;
  }
}

void Function::ReleaseName(std::string_view name) {
  int& values = names_[name].values;
  if (values > 0) --values;
}

bool Function::IsShared(std::string_view name) const {
  const Names::Name* known = names_.Find(name);
  return known && known->values > 1;
}

void Function::Rename(Value* value, std::string_view name) {
  if (value->name == name && !IsShared(value->name)) return;
  std::string old = value->name;
  value->name = UniqueName(name);
  ReleaseName(old);
  if (value->def && value->index == 0 && value->def->name == old) value->def->name = value->name;
}

std::string Function::FreshSymbol(std::string_view hint, Symbol sizes) {
  std::string base = LegalName(hint);
  std::string name = base;
  if (symbols.contains(name)) {
    int& next = next_symbol_.try_emplace(base, 2).first->second;
    do name = fmt::format("{}_{}", base, next++);
    while (symbols.contains(name));
  }
  symbols.emplace(name, std::move(sizes));
  return name;
}

std::optional<Dim> Function::OpenSize(const std::string& symbol, Symbol sizes) {
  if (sizes.low < 1) {
    ++sizes.low;
    sizes.high = std::min<int64_t>(sizes.high, INT32_MAX - 1) + 1;
    for (int64_t& size : sizes.enumerated) ++size;
    return Dim::Symbol(FreshSymbol(symbol, std::move(sizes))) - 1;
  }
  auto [it, inserted] = symbols.emplace(symbol, sizes);
  if (inserted) return Dim::Symbol(symbol);
  Symbol& known = it->second;
  known.low = std::max(known.low, sizes.low);
  known.high = std::min(known.high, sizes.high);
  bool lists = !known.enumerated.empty() || !sizes.enumerated.empty();
  if (known.enumerated.empty()) known.enumerated = sizes.enumerated;
  std::erase_if(known.enumerated, [&](int64_t size) {
    const std::vector<int64_t>& also = sizes.enumerated;
    return size < known.low || size > known.high ||
           (!also.empty() && !std::ranges::count(also, size));
  });
  if (known.low > known.high || (lists && known.enumerated.empty())) return std::nullopt;
  if (lists) {
    known.low = known.enumerated.front();
    known.high = known.enumerated.back();
  }
  return Dim::Symbol(symbol);
}

void Function::SimplifySizes() {
  auto simplify = [&](Value& value) {
    value.type.ForEachDim([&](Dim& dim) { dim = dim.Within(symbols); });
    if (!value.elements) return;
    for (Dim& element : *value.elements) element = element.Within(symbols);
  };
  std::function<void(Block&)> visit = [&](Block& block) {
    for (const std::unique_ptr<Value>& input : block.inputs) simplify(*input);
    for (Operation* op : block.operations()) {
      for (const std::unique_ptr<Block>& nested : op->blocks) visit(*nested);
      if (!op->def->is_const()) InferTypes(*op);
    }
  };
  visit(body);
}

Value* Function::AddInput(std::string_view hint, Type type) {
  auto value = std::make_unique<Value>();
  value->name = UniqueName(hint);
  value->type = std::move(type);
  return body.inputs.emplace_back(std::move(value)).get();
}

Program::Program(const OpSet* op_set) : ops(op_set) {}
Program::Program(Program&& other) noexcept { *this = std::move(other); }

Program& Program::operator=(Program&& other) noexcept {
  ops = other.ops;
  functions = std::move(other.functions);
  interface = std::move(other.interface);
  build_info = std::move(other.build_info);
  for (std::unique_ptr<Function>& function : functions) function->program = this;
  return *this;
}

Function* Program::main() const {
  for (const std::unique_ptr<Function>& function : functions)
    if (function->name == interface.default_function) return function.get();
  MLC_CHECK(functions.size() == 1, "no default function");
  return functions[0].get();
}

Function* Program::Add(std::string name) {
  return functions.emplace_back(std::make_unique<Function>(this, std::move(name))).get();
}

void ReplaceAllUses(Value* from, Value* to) {
  if (from == to) return;
  for (const Use& use : from->users.All()) use.operation->SetOperand(use, to);
  if (!from->is_output()) return;
  Function* function = from->outputs.begin().use().block->function;
  auto is_of_function = [&](const Uses& outputs) {
    for (auto it = outputs.begin(); it != outputs.end(); ++it)
      if (it.use().block == &function->body) return true;
    return false;
  };
  bool hand_on = to->def && is_of_function(from->outputs) && !is_of_function(to->outputs);
  for (const Use& use : from->outputs.All()) use.block->SetOutput(use.index, to);
  if (!hand_on) return;
  std::string name = from->name;
  function->Rename(from, name + "_replaced");
  function->Rename(to, name);
}

void ForEachOperation(Block& block, const std::function<void(Operation*)>& visit) {
  auto it = block.operations().begin(), end = block.operations().end();
  while (it != end) {
    Operation* op = *it++;
    for (std::unique_ptr<Block>& nested : op->blocks) ForEachOperation(*nested, visit);
    visit(op);
  }
}

void ForEachOperation(Function& function, const std::function<void(Operation*)>& visit) {
  ForEachOperation(function.body, visit);
}

namespace {

using ValueMap = std::unordered_map<const Value*, Value*>;

std::unique_ptr<Value> CloneValue(const Value& value, Operation* def, ValueMap& map) {
  auto copy = std::make_unique<Value>();
  copy->name = value.name;
  copy->type = value.type;
  copy->def = def;
  copy->index = value.index;
  copy->elements = value.elements;
  copy->stated = value.stated;
  map[&value] = copy.get();
  return copy;
}

void CloneBlock(const Block& from, Block& to, ValueMap& map) {
  for (const auto& input : from.inputs) to.inputs.push_back(CloneValue(*input, nullptr, map));
  for (Operation* op : from.operations()) {
    auto copy = std::make_unique<Operation>();
    copy->def = op->def;
    copy->name = op->name;
    copy->val = op->val;
    copy->location = op->location;
    copy->form = op->form;
    copy->attributes = op->attributes;
    for (const auto& result : op->results)
      copy->results.push_back(CloneValue(*result, copy.get(), map));
    for (size_t i = 0; i < op->args().size(); ++i) {
      Operands operands = op->args()[i];
      if (operands.empty()) continue;
      for (Operand& operand : operands)
        if (operand.value) operand.value = map.at(operand.value);
      copy->SetArg(static_cast<int>(i), std::move(operands));
    }
    for (const auto& nested : op->blocks) {
      auto block = std::make_unique<Block>();
      block->function = to.function;
      CloneBlock(*nested, *block, map);
      copy->blocks.push_back(std::move(block));
    }
    to.Insert(std::move(copy), nullptr);
  }
  std::vector<Value*> outputs;
  for (Value* output : from.outputs()) outputs.push_back(map.at(output));
  to.SetOutputs(std::move(outputs));
}

void ClaimNames(Function& function) {
  for (auto& input : function.body.inputs) function.ClaimShared(input->name);
  ForEachOperation(function, [&](Operation* op) {
    for (auto& result : op->results) function.ClaimShared(result->name);
    for (auto& nested : op->blocks)
      for (auto& input : nested->inputs) function.ClaimShared(input->name);
  });
}

}  // namespace

Program Clone(const Program& program) {
  Program copy(program.ops);
  copy.interface = program.interface;
  copy.build_info = program.build_info;
  for (const auto& function : program.functions) {
    Function* to = copy.Add(function->name);
    to->opset = function->opset;
    to->inputs = function->inputs;
    to->outputs = function->outputs;
    to->states = function->states;
    to->absent_inputs = function->absent_inputs;
    to->symbols = function->symbols;
    ValueMap map;
    CloneBlock(function->body, to->body, map);
    ClaimNames(*to);
  }
  return copy;
}

}  // namespace mlc

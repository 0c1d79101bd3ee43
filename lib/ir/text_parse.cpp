#include <algorithm>
#include <set>
#include <utility>

#include "lib/ir/builder.h"
#include "lib/ir/text.h"
#include "lib/ir/text_values.h"

namespace mlc {

namespace {

// An operand as written. An untyped constant is resolved once the other operands of the operator
// are known.
struct WrittenOperand {
  Value* value = nullptr;
  Tensor literal;
  bool make_const = false;  // `const TYPE(...)`
  std::optional<Elements> untyped;
};

struct WrittenArg {
  Token key;
  std::vector<WrittenOperand> operands;
};

// An operation while it is being parsed.
struct Statement {
  size_t offset = 0;
  std::unique_ptr<Operation> op;
  std::vector<Token> names;                  // result names
  std::vector<std::optional<Type>> stated;   // stated result types
  std::vector<WrittenArg> args, attributes;  // attributes: operands of a constexpr
};

constexpr std::string_view kExample = "fp32 z = add(x = x, y = y);";

bool HasUnknown(const Type& type) {
  for (const Dim& dim : type.shape)
    if (InferContext::HasPlaceholder(dim)) return true;
  if (type.kind == Type::Kind::kList && InferContext::HasPlaceholder(type.length)) return true;
  return std::ranges::any_of(type.elements, HasUnknown);
}

class Parser : TextReader {
 public:
  Parser(std::string_view text, const std::string& source_name, const OpSet& ops,
         const ReadBlobFn& read_blob, const InputDims& input_dims)
      : TextReader(text, source_name, ops, read_blob), input_dims_(input_dims) {}
  Program Parse();

 private:
  void NameDims(const std::string& input, Type& type);
  void ParseFunctions();
  void ParseAttributesAhead();
  void ParseSymbols();
  void ParseFunction();
  void ParseFlexibleShapes(Function& function);
  void ParseInputs(Block& block, std::vector<Value*>& scope, bool is_function);
  void ParseBody(Block& block, std::vector<Value*> scope);
  void ParseStatement(Block& block, std::vector<Value*>& scope);
  void ParseResults(Statement& s);
  void ParseArguments(Statement& s);
  void ParseAttributes(Statement& s);
  Tensor ParseUntypedConst(Statement& s);
  void FinishConst(Statement& s);
  void BindArguments(Statement& s, Block& block);
  WrittenOperand ParseOperand();
  const Form* ChooseForm(const Statement& s) const;
  void CheckNew(const std::vector<WrittenArg>& list, const Token& key) const {
    for (const WrittenArg& arg : list)
      if (arg.key.text == key.text) Fail(key.offset, fmt::format("duplicate `{}`", key.text));
  }
  // Returns whether a type starts here; keywords that start an untyped literal do not count.
  bool AtType() const {
    constexpr std::string_view kWords[] = {"true", "false", "inf", "nan", "fill", "BLOBFILE"};
    return token_.kind == Token::Kind::kName &&
           std::find(std::begin(kWords), std::end(kWords), token_.text) == std::end(kWords);
  }
  DType TypeOfUntyped(const Form& form, const Param& param, const std::vector<WrittenArg>& args,
                      const Elements& elements);
  void SetTypes(Operation& op, const std::vector<std::optional<Type>>& stated, size_t offset);
  Type ResolveUnknown(const Type& type, std::string_view hint, bool of_input = false);
  void Define(Value* value, const Token& name, std::vector<Value*>& scope);
  Value* MakeConst(Block& block, Tensor value, const std::string& hint);
  Value* Find(const Token& name) const;

  Symbols declared_;  // symbols declared for the next function
  std::unordered_map<std::string_view, Value*> visible_;
  const InputDims& input_dims_;
  bool is_file_ =
      false;  // has a program header; `?` then marks a dimension that the file leaves open
  std::unordered_map<std::string, Value*> made_;  // constants written inline
};

Program Parser::Parse() {
  if (token_.is_name("program")) {
    Advance();
    Expect("(", "program(1.3)");
    if (token_.text != "1.0" && token_.text != "1.3")
      Fail(token_.offset, fmt::format("unknown version {} of MIL text", token_.text.substr(0, 40)),
           "program(1.0) or program(1.3)");
    is_file_ = true;
    // Files of iOS18 and newer use this notation for scalars, regardless of the opset of their
    // functions.
    if (token_.text == "1.3")
      program_.interface.specification_version = static_cast<int>(Opset::kIos18);
    Advance();
    Expect(")", "program(1.3)");
    if (token_.is("[")) ParseAttributesAhead();
    Expect("{", "{ func main<ios17>(...) {...} -> (y); }");
    ParseFunctions();
    Expect("}", "} after the last function");
  } else {
    ParseFunctions();
  }
  if (token_.kind != Token::Kind::kEnd) FailHere("`program(1.3)` or `func`");
  if (program_.functions.empty()) FailHere("`func` (e.g. func main<ios17>(fp32 x) {...} -> (y);)");
  auto is_default = [&](const auto& f) { return f->name == program_.interface.default_function; };
  if (std::ranges::none_of(program_.functions, is_default))
    program_.interface.default_function = program_.functions[0]->name;
  return std::move(program_);
}

void Parser::ParseFunctions() {
  while (token_.is("[") || token_.is_name("func")) {
    if (token_.is("[")) ParseAttributesAhead();
    if (!token_.is_name("func")) FailHere("`func` after the attributes");
    ParseFunction();
  }
}

// Attributes of the program, and the symbols of the next function.
void Parser::ParseAttributesAhead() {
  Advance();
  do {
    Token name = ExpectName("a program attribute (e.g. buildInfo = ...)");
    Expect("=", "buildInfo = dict<string, string>({...})");
    if (name.text == "symbols") {
      ParseSymbols();
      continue;
    }
    size_t offset = token_.offset;
    Type type;
    Node node = ParseValue(type);
    bool strings = type.kind == Type::Kind::kDict && type.elements[0].dtype == DType::kString &&
                   type.elements[1].dtype == DType::kString &&
                   type.elements[0].rank() + type.elements[1].rank() == 0;
    if (name.text != "buildInfo" || !strings)
      Fail(strings ? name.offset : offset, fmt::format("unknown program attribute `{}`", name.text),
           "buildInfo = dict<string, string>({...})");
    for (size_t i = 0; i + 1 < node.members.size(); i += 2)
      program_.build_info.emplace_back(node.members[i].tensor.strings()[0],
                                       node.members[i + 1].tensor.strings()[0]);
  } while (Accept(","));
  Expect("]", "] after the last attribute");
}

void Parser::ParseSymbols() {
  constexpr std::string_view kExample = "{h in 1..64, n in 1|2|4}";
  Expect("{", kExample);
  while (!token_.is("}")) {
    Token name = ExpectName("a symbol (e.g. h in 1..64)");
    Symbol symbol;
    ExpectWord("in", kExample);
    size_t offset = token_.offset;
    symbol.low = ParseInteger("an integer");
    symbol.high = symbol.low;
    if (Accept("..")) {
      symbol.high = ParseInteger("an integer");
      if (symbol.high < symbol.low) Fail(offset, "the range is empty");
    } else {
      std::set<int64_t> sizes = {symbol.low};
      while (Accept("|")) sizes.insert(ParseInteger("an integer"));
      symbol = {*sizes.begin(), *sizes.rbegin(), {sizes.begin(), sizes.end()}};
    }
    if (symbol.low < 1)
      Fail(offset, fmt::format("the symbol {} has a lower bound of {}", name.text, symbol.low),
           "sizes of at least 1; a size that may be 0 is written as s - 1");
    if (!declared_.emplace(name.text, std::move(symbol)).second)
      Fail(name.offset, fmt::format("duplicate `{}`", name.text));
    if (!token_.is("}")) Expect(",", kExample);
  }
  Advance();
}

void Parser::ParseFunction() {
  constexpr std::string_view kExample = "func main<ios17>(tensor<fp32, [4]> x) {...} -> (y);";
  Advance();
  Token name = ExpectName("a function name (e.g. main)");
  for (const auto& other : program_.functions)
    if (other->name == name.text)
      Fail(name.offset, fmt::format("duplicate function `{}`", name.text));
  Expect("<", kExample);
  Token opset = ExpectName("an opset (e.g. ios17)");
  std::optional<Opset> target = ParseTarget(opset.text);
  if (!target)
    Fail(opset.offset, fmt::format("unknown opset `{}`", opset.text), "ios15 to ios18, or ios26");
  Expect(">", kExample);
  function_ = program_.Add(std::string(name.text));
  function_->opset = *target;
  function_->symbols = std::exchange(declared_, {});
  visible_.clear();
  made_.clear();
  std::vector<Value*> scope;
  ParseInputs(function_->body, scope, true);
  if (token_.is("[")) ParseFlexibleShapes(*function_);
  ParseBody(function_->body, std::move(scope));
  Expect(";", kExample);
  for (Value* output : function_->body.outputs())
    function_->outputs.push_back({.name = output->name});
  function_ = nullptr;
}

void Parser::ParseInputs(Block& block, std::vector<Value*>& scope, bool is_function) {
  Expect("(", "(tensor<fp32, [4]> x)");
  while (!token_.is(")")) {
    if (!scope.empty()) Expect(",", "(fp32 x, fp32 y)");
    Type type = ParseType();
    Token name = ExpectName("an input name (e.g. x)");
    auto value = std::make_unique<Value>();
    value->type = type;
    if (is_function) NameDims(std::string(name.text), value->type);
    if (is_file_ && !is_function && type.kind == Type::Kind::kList)
      value->type.length = function_->FreshSize(fmt::format("{}_length", name.text));
    value->type = ResolveUnknown(value->type, name.text, is_function);
    if (is_file_) value->State(type);
    Define(value.get(), name, scope);
    if (is_function)
      (type.kind == Type::Kind::kState ? function_->states : function_->inputs)
          .push_back({.name = value->name});
    block.inputs.push_back(std::move(value));
  }
  Advance();
}

// Assigns the names in `input_dims` to symbolic dimensions of a function input.
void Parser::NameDims(const std::string& input, Type& type) {
  auto named = input_dims_.find({function_->name, input});
  if (named == input_dims_.end() || named->second.size() != type.shape.size()) return;
  for (size_t d = 0; d < type.shape.size(); ++d) {
    std::optional<std::string> symbol = named->second[d].symbol();
    if (!InferContext::HasPlaceholder(type.shape[d]) || !symbol || !IsLegalName(*symbol)) continue;
    type.shape[d] = *function_->OpenSize(*symbol, {1, INT32_MAX, {}});
  }
}

// [FlexibleShapeInformation = ...]: default shapes, ranges and enumerated shapes of the inputs,
// stored in their ports and symbols.
void Parser::ParseFlexibleShapes(Function& function) {
  Advance();
  Token name = ExpectName("a function attribute (e.g. FlexibleShapeInformation = ...)");
  if (name.text != "FlexibleShapeInformation")
    Fail(name.offset, fmt::format("unknown function attribute `{}`", name.text),
         "FlexibleShapeInformation");
  Expect("=", "FlexibleShapeInformation = tuple<...>(...)");
  size_t offset = token_.offset;
  auto malformed = [&] { Fail(offset, "malformed FlexibleShapeInformation"); };
  Type type;
  Node root = ParseValue(type);
  Expect("]", "] after the last attribute");
  auto port = [&](const Node& key) -> Port& {
    if (!key.tensor || key.tensor.dtype() != DType::kString || key.tensor.size() != 1) malformed();
    for (Port& candidate : function.inputs)
      if (candidate.name == key.tensor.strings()[0]) return candidate;
    malformed();
    return function.inputs[0];
  };
  auto ints = [&](const Node& node) {
    if (!node.tensor || !IsInteger(node.tensor.dtype())) malformed();
    return node.tensor.Ints();
  };
  for (const Node& section : root.members) {
    if (section.members.size() != 2 || !section.members[0].tensor ||
        section.members[0].tensor.dtype() != DType::kString ||
        section.members[0].tensor.size() != 1)
      malformed();
    const std::string& kind = section.members[0].tensor.strings()[0];
    const std::vector<Node>& entries = section.members[1].members;  // alternating keys and values
    for (size_t i = 0; i + 1 < entries.size(); i += 2) {
      if (kind == "DefaultShapes") {
        port(entries[i]).default_shape = ints(entries[i + 1]);
      } else if (kind == "RangeDims") {
        for (const Node& range : entries[i + 1].members) {
          std::vector<int64_t> bounds = ints(range);
          if (bounds.size() != 2 || bounds[0] < 0) malformed();
          if (bounds[1] >= 0 && bounds[1] < bounds[0]) Fail(offset, "empty range of sizes");
          port(entries[i]).shape_range.emplace_back(bounds[0], bounds[1]);
        }
      } else if (kind == "EnumeratedShapes") {
        const std::vector<Node>& shapes = entries[i + 1].members;  // the key is only a label
        for (size_t k = 0; k + 1 < shapes.size(); k += 2)
          port(shapes[k]).enumerated_shapes.push_back(ints(shapes[k + 1]));
      } else {
        malformed();
      }
    }
  }
  for (const auto& input : function.body.inputs)
    for (const Port& p : function.inputs) {
      if (p.name != input->name) continue;
      for (size_t d = 0; d < input->type.shape.size(); ++d) {
        std::optional<std::string> symbol = input->type.shape[d].symbol();
        if (!symbol) continue;
        std::optional<Dim> size = function.OpenSize(*symbol, p.DescribedSizes(d));
        if (!size)
          Fail(offset, fmt::format("no size satisfies all bounds of the symbol {}", *symbol));
        input->type.shape[d] = *size;
      }
    }
}

void Parser::Define(Value* value, const Token& name, std::vector<Value*>& scope) {
  std::string text(name.text);
  if (!IsLegalName(text))
    Fail(name.offset,
         fmt::format("`{}` cannot be a name: Core ML's loader parses it as a type", text));
  value->name = text;
  if (visible_.contains(name.text)) Fail(name.offset, fmt::format("`{}` is defined twice", text));
  if (auto made = made_.find(text); made != made_.end()) {
    Value* constant = made->second;  // an unnamed constant yields the name
    made_.erase(made);
    constant->name = constant->def->name = function_->UniqueName(text);
    made_.emplace(constant->name, constant);
  } else {
    function_->ClaimShared(text);
  }
  visible_.emplace(name.text, value);
  scope.push_back(value);
}

Value* Parser::Find(const Token& name) const {
  auto it = visible_.find(name.text);
  if (it == visible_.end())
    Fail(name.offset, fmt::format("`{}` is not defined here", name.text),
         "an earlier result, an input or a constant");
  return it->second;
}

// `{ statements } -> (outputs)`; the names in `scope` are released at the end.
void Parser::ParseBody(Block& block, std::vector<Value*> scope) {
  Nesting nesting(*this);
  block.function = function_;
  Expect("{", "{ fp32 y = relu(x = x); } -> (y)");
  while (!token_.is("}")) ParseStatement(block, scope);
  Advance();
  Expect("->", "} -> (y)");
  Expect("(", "} -> (y)");
  std::vector<Value*> outputs;
  while (!token_.is(")")) {
    if (!outputs.empty()) Expect(",", "} -> (y, z)");
    outputs.push_back(Find(ExpectName("an output (e.g. y)")));
  }
  Advance();
  block.SetOutputs(std::move(outputs));
  for (Value* value : scope) visible_.erase(value->name);
}

Value* Parser::MakeConst(Block& block, Tensor value, const std::string& hint) {
  auto op = std::make_unique<Operation>();
  op->def = &program_.ops->At("const");
  auto result = std::make_unique<Value>();
  result->name = op->name = function_->UniqueName(hint);
  result->type = Type::Tensor(value.dtype(), ToShape(value.dims()));
  result->def = op.get();
  op->val = std::move(value);
  op->results.push_back(std::move(result));
  Value* made = block.Insert(std::move(op), nullptr)->result();
  made_.emplace(made->name, made);
  return made;
}

WrittenOperand Parser::ParseOperand() {
  WrittenOperand operand;
  // A value may be named const, too.
  Token ahead = Ahead();
  operand.make_const = token_.is_name("const") && !ahead.is(",") && !ahead.is(")");
  if (operand.make_const) {
    Advance();
    ahead = Ahead();
  }
  bool type_follows = ahead.is("<") || ahead.is("(");
  if (!operand.make_const && !type_follows && token_.kind == Token::Kind::kName &&
      (AtType() || visible_.contains(token_.text))) {
    operand.value = Find(Take());
    return operand;
  }
  if (!AtType()) {
    if (operand.make_const) FailHere("a type (e.g. const int32(1))");
    operand.untyped = ParseUntyped();
    return operand;
  }
  size_t offset = token_.offset;
  Type type;
  Node node = ParseValue(type);
  operand.literal = TensorOf(node, type, offset);
  return operand;
}

// The form that the function's opset selects: the newest one up to it, or else a newer one, for
// functions whose opset has not been raised yet.
const Form* Parser::ChooseForm(const Statement& s) const {
  const OpDef& def = *s.op->def;
  std::vector<const Form*> order;
  for (const Form& form : def.forms)
    if (form.since <= function_->opset) order.insert(order.begin(), &form);
  for (const Form& form : def.forms)
    if (form.since > function_->opset) order.push_back(&form);
  auto has = [&](const Form& form, const WrittenArg& arg) {
    return form.Find(arg.key.text) >= 0 && def.Find(arg.key.text) >= 0;
  };
  bool constexpr_op = def.is_constexpr();
  for (bool strict : {true, false})
    for (const Form* form : order) {
      if (strict && constexpr_op && OperandsAreAttributes(def, *form) == s.attributes.empty())
        continue;
      auto known = [&](const WrittenArg& arg) { return has(*form, arg); };
      if (std::ranges::all_of(s.args, known) && std::ranges::all_of(s.attributes, known))
        return form;
    }
  std::string names;
  for (const Param& param : order.front()->params)
    names += fmt::format("{}{}", names.empty() ? "" : ", ", param.name);
  for (const std::vector<WrittenArg>* list : {&s.args, &s.attributes})
    for (const WrittenArg& arg : *list)
      if (!has(*order.front(), arg))
        Fail(arg.key.offset, fmt::format("{} has no parameter `{}`", def.name, arg.key.text),
             names);
  Fail(s.offset, fmt::format("no version of {} has this combination of parameters", def.name),
       names);
}

// As in the builder: the domain's other operands decide, or else the dtypes that the parameter
// allows.
DType Parser::TypeOfUntyped(const Form& form, const Param& param,
                            const std::vector<WrittenArg>& args, const Elements& elements) {
  if (!elements.list.empty()) {
    if (elements.AllAre(Token::Kind::kString)) return DType::kString;
    if (elements.AllBool()) return DType::kBool;
  }
  if (param.domain)
    for (const WrittenArg& arg : args)
      if (form.params[form.Find(arg.key.text)].domain == param.domain)
        for (const WrittenOperand& operand : arg.operands) {
          if (operand.value && operand.value->type.is_tensor()) return operand.value->type.dtype;
          if (operand.literal) return operand.literal.dtype();
        }
  DType dtype = DefaultNumberType(param.types, elements.AnyFloat());
  if (dtype != DType::kNone) return dtype;
  Fail(elements.offset, fmt::format("ambiguous type of the constant for `{}`", param.name),
       "e.g. const uint8(1)");
}

// Unknown dimensions of an input are at least 1 unless stated otherwise.
Type Parser::ResolveUnknown(const Type& type, std::string_view hint, bool of_input) {
  Type resolved = type;
  for (size_t i = 0; i < resolved.shape.size(); ++i)
    if (InferContext::HasPlaceholder(resolved.shape[i])) {
      std::string name = fmt::format("{}_{}", hint, i);
      resolved.shape[i] =
          of_input ? Dim::Symbol(function_->FreshSymbol(name)) : function_->FreshSize(name);
    }
  if (InferContext::HasPlaceholder(resolved.length))
    resolved.length = function_->FreshSize(fmt::format("{}_length", hint));
  for (Type& element : resolved.elements) element = ResolveUnknown(element, hint, of_input);
  return resolved;
}

// Sets the result types: the stated and the inferred type must agree, and each supplements the
// other.
void Parser::SetTypes(Operation& op, const std::vector<std::optional<Type>>& stated,
                      size_t offset) {
  if (!op.def->infer) {
    for (size_t r = 0; r < stated.size(); ++r) {
      if (!stated[r])
        Fail(offset, fmt::format("{} has no type inference: write its result type", op.def->name),
             "e.g. fp32 y = ...");
      op.results[r]->type = ResolveUnknown(*stated[r], op.results[r]->name);
    }
    return;
  }
  InferContext context = ContextOf(op);
  try {
    op.def->infer(context);
  } catch (Error& error) {
    if (!error.has_location()) error.At(lexer_.LocationOf(offset, false));
    throw;
  }
  if (context.results.size() != stated.size())
    Fail(offset, fmt::format("{} has {} results, but {} are named", op.def->name,
                             context.results.size(), stated.size()));
  std::map<std::string, Dim> fresh;
  auto settle = [&](Dim& dim, const std::string& hint) {  // unknown dimensions become symbols
    std::vector<std::string> names;
    dim.CollectSymbols(names);
    for (const std::string& name : names)
      if (name[0] == '?' && !fresh.contains(name))
        fresh[name] = Dim::Symbol(function_->FreshSymbol(hint));
    dim = dim.Substitute(fresh);
  };
  for (size_t r = 0; r < stated.size(); ++r) {
    Type inferred = context.results[r];
    auto contradiction = [&] {
      Type& written = op.results[r]->type;
      written = *stated[r];
      Fail(offset,
           fmt::format("the stated type of {} is {}, but {} returns {}", op.results[r]->name,
                       written.ToString(), op.def->name, context.results[r].ToString()));
    };
    if (stated[r] && (stated[r]->kind != inferred.kind || stated[r]->rank() != inferred.rank() ||
                      stated[r]->dtype != inferred.dtype))
      contradiction();
    if (!inferred.is_tensor() && stated[r] && !HasUnknown(*stated[r]) &&
        !(is_file_ ? MayAgree(inferred, *stated[r])
                   : Matches(inferred, *stated[r], function_->symbols)))
      contradiction();
    if (!inferred.is_tensor()) {
      // Files state the initial length of a list even if it grows.
      if (stated[r] && !HasUnknown(*stated[r]) && !is_file_) inferred = *stated[r];
      inferred.ForEachDim([&](Dim& dim) { settle(dim, op.results[r]->name + "_size"); });
    }
    for (size_t d = 0; d < inferred.shape.size(); ++d) {
      Dim& dim = inferred.shape[d];
      bool open = InferContext::HasPlaceholder(dim);
      const Dim* written = stated[r] && !InferContext::HasPlaceholder(stated[r]->shape[d])
                               ? &stated[r]->shape[d]
                               : nullptr;
      if (!open) dim = dim.Within(function_->symbols);
      if (written) {
        Dim size = written->Within(function_->symbols);
        if (!open && !(dim == size)) contradiction();
        dim = size;
      } else if (open) {
        settle(dim, fmt::format("{}_{}", op.results[r]->name, d));
      }
    }
    op.results[r]->type = std::move(inferred);
    if (is_file_ && stated[r]) op.results[r]->State(*stated[r]);
    std::optional<std::vector<Dim>>& elements = context.dims[r];
    if (elements && std::ranges::none_of(*elements, InferContext::HasPlaceholder))
      op.results[r]->elements = std::move(elements);
  }
}

// `TYPE name, ... =`, the same without types, or nothing.
void Parser::ParseResults(Statement& s) {
  if (token_.kind != Token::Kind::kName) FailHere(fmt::format("a statement (e.g. {})", kExample));
  if (Ahead().is("(")) return;
  do {
    Token ahead = Ahead();
    bool typed = !ahead.is("=") && !ahead.is(",");
    s.stated.push_back(typed ? std::optional(ParseType()) : std::nullopt);
    s.names.push_back(ExpectName("a result name (e.g. y)"));
    auto value = std::make_unique<Value>();
    value->def = s.op.get();
    value->index = static_cast<int>(s.op->results.size());
    value->name = s.names.back().text;
    s.op->results.push_back(std::move(value));
  } while (Accept(","));
  Expect("=", kExample);
}

// `(key = operand, key = (operand, ...), ...)`.
void Parser::ParseArguments(Statement& s) {
  Expect("(", kExample);
  while (!token_.is(")")) {
    if (!s.args.empty()) Expect(",", kExample);
    WrittenArg arg{ExpectName("a parameter (e.g. x = y)"), {}};
    CheckNew(s.args, arg.key);
    Expect("=", kExample);
    if (Accept("(")) {
      while (!token_.is(")")) {
        if (!arg.operands.empty()) Expect(",", "values = (a, b)");
        arg.operands.push_back(ParseOperand());
      }
      Advance();
    } else {
      arg.operands.push_back(ParseOperand());
    }
    s.args.push_back(std::move(arg));
  }
  Advance();
}

// `[key = value, ...]`; the value of a const may omit its type.
void Parser::ParseAttributes(Statement& s) {
  if (!Accept("[")) return;
  std::vector<WrittenArg> seen;
  while (!token_.is("]")) {
    if (!seen.empty()) Expect(",", "[name = string(\"y\"), val = fp32(0x1p+0)]");
    Token key = ExpectName("an attribute (e.g. name = string(\"y\"))");
    CheckNew(seen, key);
    seen.push_back({key, {}});
    Expect("=", "name = string(\"y\")");
    size_t offset = token_.offset;
    bool is_val = key.text == "val" && s.op->def->is_const();
    if (is_val && !AtType()) {
      s.op->val = ParseUntypedConst(s);
      continue;
    }
    Type type;
    Node node = ParseValue(type);
    Tensor tensor = TensorOf(node, type, offset);
    if (is_val) {
      s.op->val = std::move(tensor);
    } else if (key.text == "name") {
      if (tensor.dtype() != DType::kString || tensor.size() != 1)
        Fail(offset, "a name must be a single string");
      s.op->name = tensor.strings()[0];
    } else if (s.op->def->is_constexpr()) {
      s.attributes.push_back({key, {}});
      s.attributes.back().operands.emplace_back().literal = std::move(tensor);
    } else {
      s.op->attributes.emplace_back(key.text, std::move(tensor));
    }
  }
  Advance();
}

Tensor Parser::ParseUntypedConst(Statement& s) {
  if (s.stated.size() == 1 && s.stated[0] && s.stated[0]->is_tensor()) {
    Type type = *s.stated[0];
    return ParseLiteral(type).tensor;
  }
  Elements elements = ParseUntyped();
  if (elements.AllAre(Token::Kind::kString)) return Convert(elements, DType::kString);
  if (elements.AllBool()) return Convert(elements, DType::kBool);
  return Convert(elements, elements.AnyFloat() ? DType::kFp32 : DType::kInt32);
}

void Parser::FinishConst(Statement& s) {
  if (s.names.size() != 1 || !s.op->val || !s.args.empty())
    Fail(s.offset, "a const must have one result, a val and no arguments",
         "int32 one = const()[val = int32(1)];");
  const Tensor& val = s.op->val;
  const std::optional<Type>& stated = s.stated[0];
  Type& type = s.op->result()->type;
  type = Type::Tensor(val.dtype(), ToShape(val.dims()));
  if (stated && stated->kind == Type::Kind::kList && val.rank() > 0)
    type = Type::List(Type::Tensor(val.dtype()), Dim(val.dims()[0]));
  if (stated && !HasUnknown(*stated) && !(*stated == type))
    Fail(s.offset, fmt::format("the value of {} is {}, but its type is {}", s.names[0].text,
                               type.ToString(), stated->ToString()));
}

// Binds arguments to canonical parameters. Unnamed constants become operations before this one.
void Parser::BindArguments(Statement& s, Block& block) {
  Operation& op = *s.op;
  op.form = ChooseForm(s);
  std::string base(s.names.empty() ? op.def->name : s.names[0].text);
  for (std::vector<WrittenArg>* list : {&s.args, &s.attributes})
    for (WrittenArg& arg : *list) {
      const Param& param = op.form->params[op.form->Find(arg.key.text)];
      if (!param.variadic && arg.operands.size() != 1)
        Fail(arg.key.offset,
             fmt::format("`{}` takes one operand, not {}", arg.key.text, arg.operands.size()));
      Operands operands;
      for (WrittenOperand& written : arg.operands) {
        if (written.untyped)
          written.literal =
              Convert(*written.untyped, TypeOfUntyped(*op.form, param, s.args, *written.untyped));
        if (written.untyped || written.make_const) {
          std::string hint = fmt::format("{}_{}", base, arg.key.text);
          if (arg.operands.size() > 1) hint += fmt::format("_{}", operands.size());
          written.value = MakeConst(block, std::move(written.literal), hint);
        }
        if (written.value) {
          operands.emplace_back(written.value);
        } else {
          operands.emplace_back(std::move(written.literal));
        }
      }
      for (const Operand& operand : operands) {
        const Operation* source = operand.value ? operand.value->def : nullptr;
        if (param.is_const && !operand.constant() && !(source && source->def->is_constexpr()))
          Fail(arg.key.offset,
               fmt::format("`{}` of {} must be a constant", arg.key.text, op.def->name));
      }
      op.SetArg(arg.key.text, std::move(operands));
    }
  for (const Param& param : op.form->params)
    if (param.default_kind == Param::Default::kRequired && !param.variadic && !op.has(param.name))
      Fail(s.offset, fmt::format("{} lacks `{}`", op.def->name, param.name));
}

void Parser::ParseStatement(Block& block, std::vector<Value*>& scope) {
  Statement s;
  s.offset = token_.offset;
  s.op = std::make_unique<Operation>();
  s.op->location = std::make_shared<Location>(lexer_.LocationOf(s.offset, false));
  ParseResults(s);
  Token name = ExpectName("an operator (e.g. add)");
  const OpDef* def = s.op->def = program_.ops->Find(name.text);
  if (!def)
    throw Error("unsupported-operator", "unknown operator {}", name.text)
        .At(lexer_.LocationOf(name.offset, true))
        .Help("see `mlc ops` for the list of operators");
  bool is_const = def->is_const();
  ParseArguments(s);
  ParseAttributes(s);
  if (is_const) {
    FinishConst(s);
  } else {
    BindArguments(s, block);
  }
  bool takes_blocks = def->runs_blocks();
  while (token_.is("(") && takes_blocks) {
    auto nested = std::make_unique<Block>();
    nested->function = function_;
    std::vector<Value*> inner;
    ParseInputs(*nested, inner, false);
    ParseBody(*nested, std::move(inner));
    s.op->blocks.push_back(std::move(nested));
  }
  Expect(";", kExample);
  Operation* op = block.Insert(std::move(s.op), nullptr);
  if (!is_const) SetTypes(*op, s.stated, s.offset);
  for (size_t i = 0; i < s.names.size(); ++i)
    Define(op->result(static_cast<int>(i)), s.names[i], scope);
}

}  // namespace

Program ParseText(std::string_view text, const std::string& source_name, const OpSet& ops,
                  const ReadBlobFn& read_blob, const InputDims& input_dims) {
  return Parser(text, source_name, ops, read_blob, input_dims).Parse();
}

bool IsMilText(std::string_view text) {
  try {
    TextLexer lexer(text, "");
    Token token = lexer.Next();
    if (token.is("[")) return lexer.Next().kind == Token::Kind::kName && lexer.Next().is("=");
    return token.is_name("program") || token.is_name("func");
  } catch (const Error&) {
    return false;
  }
}

TextOptions::Dialect DialectOf(std::string_view text) {
  if (!IsMilText(text)) return TextOptions::Dialect::kAuto;
  TextLexer lexer(text, "");
  if (!lexer.Next().is_name("program")) return TextOptions::Dialect::kAuto;
  lexer.Next();
  return lexer.Next().text == "1.0" ? TextOptions::Dialect::k1_0 : TextOptions::Dialect::k1_3;
}

}  // namespace mlc

#include <fmt/ranges.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <map>

#include "lib/ir/text.h"
#include "lib/ir/text_values.h"

namespace mlc {

namespace {

// Like C's %a, but also normalised for subnormals: 0x1.388p+13, 0x1p-24, -0x0p+0.
std::string HexFloat(double value) {
  if (std::isnan(value)) return "nan";
  std::string out = std::signbit(value) ? "-" : "";
  if (std::isinf(value)) return out + "inf";
  if (value == 0) return out + "0x0p+0";
  int exponent = 0;
  double fraction = std::frexp(std::fabs(value), &exponent);  // [0.5, 1)
  uint64_t mantissa = std::bit_cast<uint64_t>(fraction) & ((uint64_t{1} << 52) - 1);
  std::string digits = fmt::format("{:013x}", mantissa);
  digits.resize(digits.find_last_not_of('0') + 1);  // npos + 1 == 0
  return out + fmt::format("0x1{}{}p{:+d}", digits.empty() ? "" : ".", digits, exponent - 1);
}

// The shortest decimal that parses to the same value of dtype, always with a point or an exponent.
std::string DecimalFloat(double value, DType dtype) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value < 0 ? "-inf" : "inf";
  std::string text;
  if (dtype == DType::kFp64) {
    text = fmt::format("{}", value);
  } else if (dtype == DType::kFp32) {
    text = fmt::format("{}", static_cast<float>(value));
  } else {
    for (int precision = 1; precision < 18; ++precision) {
      text = fmt::format("{:.{}g}", value, precision);
      Tensor back = Tensor::Scalar<double>(std::strtod(text.c_str(), nullptr)).Cast(dtype);
      if (back.Double(0) == value) break;
    }
  }
  return text.find_first_of(".e") == std::string::npos ? text + ".0" : text;
}

std::string Quoted(std::string_view text) {
  std::string out = "\"";
  for (char c : text) {
    constexpr std::string_view kSpecial = "\"\\\n\r\t", kEscapes = "\"\\nrt";
    size_t which = kSpecial.find(c);
    if (which != std::string_view::npos) out += '\\';
    out += which == std::string_view::npos ? c : kEscapes[which];
  }
  return out + '"';
}

// Returns whether `fill(v)` represents the tensor.
bool IsFill(const Tensor& tensor) {
  if (tensor.size() == 0 || tensor.size() > kMaxFill || tensor.dtype() == DType::kBool ||
      tensor.dtype() == DType::kString || Bits(tensor.dtype()) < 8)
    return false;
  Pin<std::byte> bytes = tensor.bytes();
  size_t width = Bits(tensor.dtype()) / 8;
  return std::equal(bytes.begin() + width, bytes.end(), bytes.begin());
}

class Printer {
 public:
  Printer(const Program& program, const TextOptions& options)
      : program_(program), options_(options), people_(options.inline_limit > 0) {
    Opset newest = Opset::kIos15;
    for (const auto& function : program.functions) newest = std::max(newest, function->opset);
    newest = std::max(newest, static_cast<Opset>(program.interface.specification_version));
    bare_scalars_ = options.dialect == TextOptions::Dialect::kAuto
                        ? newest >= Opset::kIos18
                        : options.dialect == TextOptions::Dialect::k1_3;
    if (people_) bare_scalars_ = true;
  }

  std::string Print();

 private:
  void PrintSymbols(const Function& function);
  void PrintFunction(const Function& function);
  void PrintFlexibleShapes(const Function& function);
  void PrintBody(const Block& block, size_t indent);
  void PrintOperation(const Operation& op, size_t indent);
  void PrintOperand(const Operand& operand, const Param& param, const Operation& op);
  void PrintElements(const Tensor& tensor, size_t level, int64_t& next);
  void PrintElement(const Tensor& tensor, int64_t i);
  void PrintTensor(const Tensor& tensor);                   // without a type
  void PrintValue(const Tensor& tensor, const Type& type);  // TYPE(...)
  void PrintValue(const Tensor& tensor) {
    PrintValue(tensor, Type::Tensor(tensor.dtype(), ToShape(tensor.dims())));
  }
  bool IsInlined(const Operand& operand) const;
  bool IsUntypedClear(const Operation& op, const Form& form, const Param& param,
                      const Tensor& tensor) const;
  const Form& FormOf(const Operation& op) const;
  std::string TypeText(const Type& type) const;
  std::string TypeOf(const Value& value) const {
    return TypeText(people_ ? value.type : value.written_type());
  }
  std::string DimText(const Dim& dim) const;
  std::string StringType() const { return TypeText(Type::Tensor(DType::kString)); }
  template <class... Args>
  void Write(fmt::format_string<Args...> format, Args&&... args) {
    fmt::format_to(std::back_inserter(out_), format, std::forward<Args>(args)...);
  }

  const Program& program_;
  const TextOptions& options_;
  bool people_;
  bool bare_scalars_;
  const Function* function_ = nullptr;
  std::string out_;
};

std::string Printer::DimText(const Dim& dim) const {
  if (dim.is_constant()) return fmt::format("{}", dim.constant());
  return people_ ? dim.ToString() : "?";
}

std::string Printer::TypeText(const Type& type) const {
  auto members = [&] {
    std::string text;
    for (const Type& element : type.elements)
      text += (text.empty() ? "" : ", ") + TypeText(element);
    return text;
  };
  switch (type.kind) {
    case Type::Kind::kList:
      return fmt::format("list<{}, {}>", members(), DimText(type.length));
    case Type::Kind::kState:
      return fmt::format("state<{}>", members());
    case Type::Kind::kTuple:
      return fmt::format("tuple<{}>", members());
    case Type::Kind::kDict:
      return fmt::format("dict<{}>", members());
    case Type::Kind::kTensor:
      break;
  }
  if (type.shape.empty() && bare_scalars_) return std::string(Name(type.dtype));
  std::string dims;
  for (const Dim& dim : type.shape) dims += (dims.empty() ? "" : ", ") + DimText(dim);
  return fmt::format("tensor<{}, [{}]>", Name(type.dtype), dims);
}

void Printer::PrintElement(const Tensor& tensor, int64_t i) {
  DType dtype = tensor.dtype();
  if (dtype == DType::kString) {
    out_ += Quoted(tensor.strings()[i]);
  } else if (dtype == DType::kBool) {
    out_ += tensor.Bool(i) ? "true" : "false";
  } else if (IsFloat(dtype)) {
    out_ += people_ ? DecimalFloat(tensor.Double(i), dtype) : HexFloat(tensor.Double(i));
  } else if (dtype == DType::kUint64) {
    Write("{}", static_cast<uint64_t>(tensor.Int(i)));
  } else {
    Write("{}", tensor.Int(i));
  }
}

void Printer::PrintElements(const Tensor& tensor, size_t level, int64_t& next) {
  if (level == tensor.dims().size()) return PrintElement(tensor, next++);
  out_ += '[';
  for (int64_t i = 0; i < tensor.dims()[level]; ++i) {
    if (i) out_ += ", ";
    if (options_.max_elements > 0 && tensor.size() > options_.max_elements &&
        next >= options_.max_elements) {
      out_ += "...";
      break;
    }
    PrintElements(tensor, level + 1, next);
  }
  out_ += ']';
}

void Printer::PrintTensor(const Tensor& tensor) {
  std::optional<TextOptions::Blob> blob = options_.blob ? options_.blob(tensor) : std::nullopt;
  if (blob) {
    Write("BLOBFILE(path = {}(", StringType());
    out_ += Quoted(blob->path);
    Write("), offset = {}({}))", TypeText(Type::Tensor(DType::kUint64)), blob->offset);
  } else if (people_ && tensor.size() > options_.inline_limit && IsFill(tensor)) {
    out_ += "fill(";
    PrintElement(tensor, 0);
    out_ += ')';
  } else {
    int64_t next = 0;
    PrintElements(tensor, 0, next);
  }
}

void Printer::PrintValue(const Tensor& tensor, const Type& type) {
  out_ += TypeText(type);
  out_ += '(';
  PrintTensor(tensor);
  out_ += ')';
}

std::string Printer::Print() {
  if (!people_) {
    Write("program({})\n", bare_scalars_ ? "1.3" : "1.0");
    std::map<std::string, std::string> by_name(options_.build_info.begin(),
                                               options_.build_info.end());
    by_name.insert(program_.build_info.begin(), program_.build_info.end());
    if (std::vector<std::pair<std::string, std::string>> entries(by_name.begin(), by_name.end());
        !entries.empty()) {
      Write("[buildInfo = dict<{0}, {0}>({{", StringType());
      for (size_t i = 0; i < entries.size(); ++i)
        Write("{}{{{}, {}}}", i ? ", " : "", Quoted(entries[i].first), Quoted(entries[i].second));
      out_ += "})]\n";
    }
    out_ += "{\n";
  }
  for (const auto& function : program_.functions) {
    if (people_) PrintSymbols(*function);
    PrintFunction(*function);
  }
  if (!people_) out_ += '}';
  return std::move(out_);
}

// Symbols other than plain 1..4096.
void Printer::PrintSymbols(const Function& function) {
  std::string text;
  for (const auto& [name, symbol] : function.symbols) {
    if (symbol.low == 1 && symbol.high == 4096 && symbol.enumerated.empty()) continue;
    text += text.empty() ? "" : ", ";
    text += name;
    if (symbol.enumerated.empty()) {
      text += fmt::format(" in {}..{}", symbol.low, symbol.high);
    } else {
      text += fmt::format(" in {}", fmt::join(symbol.enumerated, "|"));
    }
  }
  if (!text.empty()) Write("[symbols = {{{}}}]\n", text);
}

void Printer::PrintFunction(const Function& function) {
  function_ = &function;
  std::string opset(TargetName(function.opset));
  for (char& c : opset) c = static_cast<char>(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
  std::vector<const Value*> inputs;
  for (const auto& input : function.body.inputs) inputs.push_back(input.get());
  auto by_name = [](const Value* a, const Value* b) { return a->name < b->name; };
  if (!people_) std::ranges::sort(inputs, by_name);  // Core ML's compiler sorts them
  Write("{}func {}<{}>(", people_ ? "" : "    ", function.name, opset);
  for (size_t i = 0; i < inputs.size(); ++i)
    Write("{}{} {}", i ? ", " : "", TypeOf(*inputs[i]), inputs[i]->name);
  out_ += ')';
  if (!people_) PrintFlexibleShapes(function);
  out_ += ' ';
  PrintBody(function.body, people_ ? 0 : 4);
  out_ += ";\n";
}

void Printer::PrintFlexibleShapes(const Function& function) {
  std::vector<const Port*> ranges, enumerated;
  for (const Port& port : function.inputs) {
    if (!port.shape_range.empty()) ranges.push_back(&port);
    if (!port.enumerated_shapes.empty()) enumerated.push_back(&port);
  }
  if (ranges.empty() && enumerated.empty()) return;
  auto by_name = [](const Port* a, const Port* b) { return a->name < b->name; };
  std::ranges::sort(ranges, by_name);
  std::ranges::sort(enumerated, by_name);
  std::vector<const Port*> flexible = ranges;
  flexible.insert(flexible.end(), enumerated.begin(), enumerated.end());
  std::ranges::sort(flexible, by_name);

  Type string = Type::Tensor(DType::kString),
       dims = Type::Tensor(DType::kInt32, {Dim::Symbol("n")});
  auto dict = [&](Type value) {
    return Type{.kind = Type::Kind::kDict, .elements = {string, std::move(value)}};
  };
  auto tuple = [](std::vector<Type> members) {
    return Type{.kind = Type::Kind::kTuple, .elements = std::move(members)};
  };
  auto entry = [](const Port& port, const Dims& shape) {
    return fmt::format("{{{}, [{}]}}", Quoted(port.name), fmt::join(shape, ", "));
  };
  Type type = tuple({tuple({string, dict(dims)})});
  std::string defaults, labelled, bounds;
  for (const Port* port : flexible) {
    Dims shape = port->default_shape;
    if (shape.empty())
      for (const auto& [low, high] : port->shape_range) shape.push_back(low);
    if (shape.empty()) shape = port->enumerated_shapes[0];
    defaults += (defaults.empty() ? "" : ", ") + entry(*port, shape);
  }
  if (!enumerated.empty()) {
    type.elements.push_back(tuple({string, dict(dict(dims))}));
    // Each set of shapes has a label of eight digits. Core ML's own labels are hashes by an unknown
    // rule.
    for (size_t i = 0; i < enumerated[0]->enumerated_shapes.size(); ++i) {
      std::string shapes;
      for (const Port* port : enumerated)
        if (i < port->enumerated_shapes.size())
          shapes += (shapes.empty() ? "" : ", ") + entry(*port, port->enumerated_shapes[i]);
      labelled += fmt::format("{}{{\"{:08x}\", {{{}}}}}", i ? ", " : "", i, shapes);
    }
  }
  if (!ranges.empty()) {
    type.elements.push_back(
        tuple({string, dict(Type::List(Type::Tensor(DType::kInt32, {2}), Dim::Symbol("n")))}));
    for (const Port* port : ranges) {
      std::string list;
      for (const auto& [low, high] : port->shape_range)
        list += fmt::format("{}[{}, {}]", list.empty() ? "" : ", ", low, high);
      bounds += fmt::format("{}{{{}, [{}]}}", bounds.empty() ? "" : ", ", Quoted(port->name), list);
    }
  }
  Write(" [FlexibleShapeInformation = {}(((\"DefaultShapes\", {{{}}})", TypeText(type), defaults);
  if (!enumerated.empty()) Write(", (\"EnumeratedShapes\", {{{}}})", labelled);
  if (!ranges.empty()) Write(", (\"RangeDims\", {{{}}})", bounds);
  out_ += "))]";
}

// Apple indents statements two levels deeper than the function header, and the closing brace one
// level.
void Printer::PrintBody(const Block& block, size_t indent) {
  size_t step = people_ ? 2 : 8;
  out_ += "{\n";
  for (Operation* op : block.operations()) PrintOperation(*op, indent + step);
  out_.append(people_ ? indent : indent + 4, ' ');
  out_ += "} -> (";
  for (size_t i = 0; i < block.outputs().size(); ++i)
    Write("{}{}", i ? ", " : "", block.outputs()[i]->name);
  out_ += ')';
}

const Form& Printer::FormOf(const Operation& op) const {
  const Form* form = op.form ? op.form : op.def->FormFor(function_->opset);
  return form ? *form : op.def->canonical();
}

bool Printer::IsInlined(const Operand& operand) const {
  const Value* value = operand.value;
  return people_ && value && value->is_constant() && value->type.is_tensor() &&
         value->users.size() == 1 && !value->is_output() &&
         value->constant().size() <= options_.inline_limit;
}

// Returns whether the parser would infer the same dtype for an untyped constant here.
bool Printer::IsUntypedClear(const Operation& op, const Form& form, const Param& param,
                             const Tensor& tensor) const {
  DType dtype = tensor.dtype();
  if (tensor.size() == 0) return false;
  if (dtype == DType::kString || dtype == DType::kBool) return true;
  bool only_inlined = true, first = true;
  if (param.domain) {
    // The parser uses the type of the domain's first typed operand. Arguments are printed sorted by
    // name.
    for (size_t i = 0; i < op.args().size(); ++i) {
      int index = form.Find(op.def->canonical().params[i].name);
      if (index < 0 || form.params[index].domain != param.domain) continue;
      for (const Operand& operand : op.args()[i]) {
        if (operand.type().dtype != dtype || !operand.type().is_tensor()) return false;
        only_inlined = only_inlined && IsInlined(operand);
        if (form.params[index].name < param.name) first = false;
      }
    }
    if (!only_inlined || !first) return true;
  }
  return DefaultNumberType(param.types, IsFloat(dtype)) == dtype;
}

void Printer::PrintOperand(const Operand& operand, const Param& param, const Operation& op) {
  if (IsInlined(operand)) {
    Tensor tensor = operand.constant();
    if (IsUntypedClear(op, FormOf(op), param, tensor)) return PrintTensor(tensor);
    out_ += "const ";
    return PrintValue(tensor);
  }
  if (operand.value) {
    out_ += operand.value->name;
  } else if (param.kind == Param::Kind::kList && operand.constant().rank() == 1) {
    PrintValue(operand.constant(), Type::List(Type::Tensor(operand.constant().dtype()),
                                              Dim(operand.constant().size())));
  } else {
    PrintValue(operand.constant());
  }
}

void Printer::PrintOperation(const Operation& op, size_t indent) {
  bool is_const = op.def->is_const();
  if (is_const && IsInlined(Operand(op.result()))) return;
  out_.append(indent, ' ');
  for (size_t i = 0; i < op.results.size(); ++i)
    Write("{}{} {}", i ? ", " : "", TypeOf(*op.results[i]), op.results[i]->name);
  if (!op.results.empty()) out_ += " = ";
  Write("{}(", op.def->name);

  // Arguments and attributes, each sorted by name.
  const Form& form = FormOf(op);
  bool as_attributes = OperandsAreAttributes(*op.def, form);
  const std::vector<Param>& params = op.def->canonical().params;
  std::vector<size_t> order;
  for (size_t i = 0; i < op.args().size(); ++i)
    if (!op.args()[i].empty()) order.push_back(i);
  std::ranges::sort(order, [&](size_t a, size_t b) { return params[a].name < params[b].name; });
  std::vector<std::pair<std::string_view, std::function<void()>>> attributes;
  bool first = true;
  for (size_t i : order) {
    int in_form = form.Find(params[i].name);
    const Param& param = in_form < 0 ? params[i] : form.params[in_form];
    const Operands& operands = op.args()[i];
    auto print = [this, &op, &operands, &param] {
      if (operands.size() > 1) out_ += '(';
      for (size_t k = 0; k < operands.size(); ++k) {
        if (k) out_ += ", ";
        PrintOperand(operands[k], param, op);
      }
      if (operands.size() > 1) out_ += ')';
    };
    bool literal = operands.size() == 1 && !operands[0].value;
    if (as_attributes && literal) {
      attributes.emplace_back(param.name, print);
      continue;
    }
    Write("{}{} = ", first ? "" : ", ", param.name);
    print();
    first = false;
  }
  out_ += ')';
  bool default_name = op.results.empty() ? people_ : op.name == op.result()->name;
  if (!op.name.empty() && !(people_ && default_name))
    attributes.emplace_back("name", [&] { PrintValue(Tensor::String(op.name)); });
  if (op.val)
    attributes.emplace_back("val", [&] {
      bool untyped = people_ && op.val.size() > 0 && op.result()->type.is_tensor();
      if (untyped) {
        PrintTensor(op.val);
      } else {
        PrintValue(op.val, op.result()->type);
      }
    });
  for (const auto& [key, tensor] : op.attributes)
    attributes.emplace_back(key, [this, &tensor = tensor] { PrintValue(tensor); });
  std::ranges::stable_sort(attributes,
                           [](const auto& a, const auto& b) { return a.first < b.first; });
  if (!attributes.empty()) {
    for (size_t i = 0; i < attributes.size(); ++i) {
      Write("{}{} = ", i ? ", " : "[", attributes[i].first);
      attributes[i].second();
    }
    out_ += ']';
  }
  for (const auto& nested : op.blocks) {
    out_ += '\n';
    size_t step = people_ ? 2 : 4;
    out_.append(indent + step, ' ');
    out_ += '(';
    for (size_t i = 0; i < nested->inputs.size(); ++i)
      Write("{}{} {}", i ? ", " : "", TypeOf(*nested->inputs[i]), nested->inputs[i]->name);
    out_ += ") ";
    PrintBody(*nested, indent + step);
  }
  out_ += ";\n";
}

}  // namespace

std::string PrintText(const Program& program, const TextOptions& options) {
  return Printer(program, options).Print();
}

}  // namespace mlc

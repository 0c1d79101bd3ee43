#include "lib/text/jinja_value.h"

#include <algorithm>
#include <cmath>

#include "lib/text/unicode.h"

namespace mlc::text::jinja {

namespace {

// Text that a node of a list or map takes besides its elements.
constexpr size_t kObjectBytes = 64;

bool Printable(char32_t character) {
  if (character == ' ') return true;
  return !IsControl(character) && !IsSpace(character) && IsAssigned(character);
}

double PythonModulo(double a, double b) {
  double rest = std::fmod(a, b);
  if (rest != 0 && (rest < 0) != (b < 0)) rest += b;
  return rest == 0 ? std::copysign(0.0, b) : rest;
}

std::optional<int64_t> Checked(std::string_view symbol, int64_t a, int64_t b) {
  int64_t result = 0;
  const bool overflow = symbol == "+"   ? __builtin_add_overflow(a, b, &result)
                        : symbol == "-" ? __builtin_sub_overflow(a, b, &result)
                                        : __builtin_mul_overflow(a, b, &result);
  return overflow ? std::nullopt : std::optional(result);
}

Value IntegerPower(Runtime& runtime, int64_t base, int64_t exponent) {
  if (exponent < 0) {
    if (base == 0) runtime.Fail("0.0 cannot be raised to a negative power");
    return Value::Float(std::pow(static_cast<double>(base), static_cast<double>(exponent)));
  }
  int64_t result = 1;
  for (; exponent > 0; exponent >>= 1) {
    if (exponent & 1 && __builtin_mul_overflow(result, base, &result)) break;
    if (exponent > 1 && __builtin_mul_overflow(base, base, &base)) break;
  }
  if (exponent > 0) runtime.Unsupported("an integer beyond 64 bits");
  return Value::Int(result);
}

Value Repeated(Runtime& runtime, const Value& sequence, int64_t count) {
  count = std::max<int64_t>(count, 0);
  if (sequence.is(Type::kString)) {
    CheckSize(runtime, static_cast<double>(sequence.text->size()) * static_cast<double>(count));
    std::string text;
    for (int64_t i = 0; i < count && !sequence.text->empty(); ++i) text += *sequence.text;
    return runtime.String(std::move(text));
  }
  const std::vector<Value>& items = sequence.list->items;
  CheckSize(runtime,
            static_cast<double>(items.size() * sizeof(Value)) * static_cast<double>(count));
  std::vector<Value> result;
  for (int64_t i = 0; i < count && !items.empty(); ++i)
    result.insert(result.end(), items.begin(), items.end());
  return runtime.NewList(std::move(result), sequence.type);
}

[[noreturn]] void WrongOperands(Runtime& runtime, std::string_view symbol, const Value& a,
                                const Value& b) {
  runtime.Fail(fmt::format("unsupported operand types for {}: '{}' and '{}'", symbol, TypeName(a),
                           TypeName(b)));
}

Value Numbers(Runtime& runtime, std::string_view symbol, const Value& a, const Value& b) {
  const bool divides = symbol == "/" || symbol == "//" || symbol == "%";
  if (divides && b.real() == 0) runtime.Fail("division by zero");
  if (a.integral() && b.integral() && symbol != "/") {
    const int64_t x = a.whole(), y = b.whole();
    if (symbol == "**") return IntegerPower(runtime, x, y);
    if (divides) {
      if (y == -1) return symbol == "%" ? Value::Int(0) : Numbers(runtime, "-", Value::Int(0), a);
      const int64_t rest = x % y;
      const bool below = rest != 0 && (rest < 0) != (y < 0);
      return Value::Int(symbol == "%" ? rest + (below ? y : 0) : x / y - (below ? 1 : 0));
    }
    const std::optional<int64_t> result = Checked(symbol, x, y);
    if (!result) runtime.Unsupported("an integer beyond 64 bits");
    return Value::Int(*result);
  }
  const double x = a.real(), y = b.real();
  if (symbol == "+") return Value::Float(x + y);
  if (symbol == "-") return Value::Float(x - y);
  if (symbol == "*") return Value::Float(x * y);
  if (symbol == "/") return Value::Float(x / y);
  if (symbol == "//") return Value::Float(std::floor((x - PythonModulo(x, y)) / y + 0.25));
  if (symbol == "%") return Value::Float(PythonModulo(x, y));
  const double power = std::pow(x, y);
  if (std::isnan(power) && !std::isnan(x) && !std::isnan(y))
    runtime.Unsupported("a complex number");
  return Value::Float(power);
}

}  // namespace

Value Value::Bool(bool value) {
  Value made;
  made.type = Type::kBool;
  made.boolean = value;
  return made;
}
Value Value::Int(int64_t value) {
  Value made;
  made.type = Type::kInt;
  made.integer = value;
  return made;
}
Value Value::Float(double value) {
  Value made;
  made.type = Type::kFloat;
  made.number = value;
  return made;
}
Value Value::Of(const std::string& text) {
  Value made;
  made.type = Type::kString;
  made.text = &text;
  return made;
}

Value Runtime::String(std::string text) {
  Memory(text.size() + kObjectBytes);
  return Value::Of(texts_.emplace_back(std::move(text)));
}
Value Runtime::NewList(std::vector<Value> items, Type type, std::string_view name) {
  Memory(items.size() * sizeof(Value) + kObjectBytes);
  Value made;
  made.type = type;
  made.list = &lists_.emplace_back(List{std::move(items), name});
  return made;
}
Value Runtime::NewDict(Type type) {
  Memory(kObjectBytes);
  Value made;
  made.type = type;
  made.dict = &dicts_.emplace_back();
  return made;
}
Value Runtime::NewFunction(Function function) {
  Memory(kObjectBytes);
  Value made;
  made.type = Type::kFunction;
  made.function = &functions_.emplace_back(std::move(function));
  return made;
}
Value Runtime::Undefined(std::string why) {
  Memory(why.size() + kObjectBytes);
  Value made = Value::Of(texts_.emplace_back(std::move(why)));
  made.type = Type::kUndefined;
  return made;
}
Scope& Runtime::NewScope(Scope* outer) {
  Memory(kObjectBytes);
  return scopes_.emplace_back(Scope{outer, {}});
}
Loop& Runtime::NewLoop() {
  Memory(kObjectBytes);
  return loops_.emplace_back();
}

void Runtime::Work(size_t amount) {
  work_ += static_cast<int64_t>(amount);
  if (work_ <= limits_.work) return;
  throw Error("resource-limit", "the chat template takes more than {} steps", limits_.work)
      .At(PlaceOf(source_, at));
}
void Runtime::Memory(size_t bytes) {
  Work(1 + bytes / 256);
  memory_ += static_cast<int64_t>(bytes);
  if (memory_ <= limits_.memory) return;
  throw Error("resource-limit", "the chat template needs more than {} MB of memory",
              limits_.memory >> 20)
      .At(PlaceOf(source_, at));
}

void CheckSize(Runtime& runtime, double bytes) {
  // A number that is certainly beyond the limit, so that it fits the counter.
  runtime.Memory(static_cast<size_t>(std::min(bytes, 1e12)));
}

Location PlaceOf(std::string_view source, size_t offset) {
  const std::string_view before = source.substr(0, offset);
  const auto line = 1 + std::count(before.begin(), before.end(), '\n');
  const size_t start = before.rfind('\n') == before.npos ? 0 : before.rfind('\n') + 1;
  return {.file = "chat template",
          .where = fmt::format("line {}:{}", line, 1 + CountCharacters(before.substr(start)))};
}

void FailAt(std::string_view source, size_t offset, std::string text, std::string help) {
  Error error("chat-template", std::move(text));
  error.At(PlaceOf(source, offset));
  if (!help.empty()) error.Help(std::move(help));
  throw error;
}

void Runtime::Fail(std::string text) const { FailAt(source_, at, std::move(text), ""); }
void Runtime::Unsupported(const std::string& what) const {
  FailAt(source_, at, fmt::format("{} is not supported in chat templates", what), kElsewhere);
}

Nested::Nested(Runtime& runtime) : runtime_(runtime) {
  runtime.Work(1);
  if (++runtime.depth <= runtime.limits().depth) return;
  --runtime.depth;
  const int most = runtime.limits().depth;
  try {
    runtime.Fail("");
  } catch (const Error& error) {
    throw Error("resource-limit", "the chat template nests more than {} levels deep", most)
        .At(error.location());
  }
}

std::string TypeName(const Value& value) {
  switch (value.type) {
    case Type::kUndefined:
      return "Undefined";
    case Type::kNone:
      return "NoneType";
    case Type::kBool:
      return "bool";
    case Type::kInt:
      return "int";
    case Type::kFloat:
      return "float";
    case Type::kString:
      return "str";
    case Type::kList:
      return "list";
    case Type::kTuple:
      return "tuple";
    case Type::kView:
    case Type::kGenerator:
      return std::string(value.list->name);
    case Type::kDict:
      return "dict";
    case Type::kNamespace:
      return "Namespace";
    case Type::kLoop:
      return "LoopContext";
    case Type::kFunction:
      return "function";
  }
  return "";
}

bool IsSequence(const Value& value) {
  return value.is(Type::kList) || value.is(Type::kTuple) || value.is(Type::kView);
}

bool Truth(const Value& value) {
  switch (value.type) {
    case Type::kUndefined:
    case Type::kNone:
      return false;
    case Type::kBool:
      return value.boolean;
    case Type::kInt:
      return value.integer != 0;
    case Type::kFloat:
      return value.number != 0;
    case Type::kString:
      return !value.text->empty();
    case Type::kList:
    case Type::kTuple:
    case Type::kView:
      return !value.list->items.empty();
    case Type::kDict:
      return !value.dict->items.empty();
    case Type::kGenerator:
    case Type::kNamespace:
    case Type::kLoop:
    case Type::kFunction:
      return true;
  }
  return true;
}

std::string FloatText(double number) {
  if (std::isnan(number)) return "nan";
  if (std::isinf(number)) return number < 0 ? "-inf" : "inf";
  std::string text = fmt::format("{}", number);
  if (text.find_first_of(".e") == text.npos) text += ".0";
  return text;
}

std::string EscapedText(std::string_view text) {
  std::string out;
  for (char c : text) {
    if (c == '&')
      out += "&amp;";
    else if (c == '<')
      out += "&lt;";
    else if (c == '>')
      out += "&gt;";
    else if (c == '"')
      out += "&#34;";
    else if (c == '\'')
      out += "&#39;";
    else
      out += c;
  }
  return out;
}

std::string ReprOfText(std::string_view text) {
  const char quote = text.find('\'') != text.npos && text.find('"') == text.npos ? '"' : '\'';
  std::string out(1, quote);
  for (size_t at = 0; at < text.size();) {
    const size_t begin = at;
    const char32_t character = NextCharacter(text, at);
    if (character == static_cast<unsigned char>(quote) || character == '\\') {
      out += '\\';
      out += static_cast<char>(character);
    } else if (character == '\n') {
      out += "\\n";
    } else if (character == '\r') {
      out += "\\r";
    } else if (character == '\t') {
      out += "\\t";
    } else if (Printable(character)) {
      out += text.substr(begin, at - begin);
    } else {
      const auto code = static_cast<uint32_t>(character);
      out += code < 0x100     ? fmt::format("\\x{:02x}", code)
             : code < 0x10000 ? fmt::format("\\u{:04x}", code)
                              : fmt::format("\\U{:08x}", code);
    }
  }
  return out + quote;
}

void AppendRepr(Runtime& runtime, const Value& value, std::string& out) {
  const Nested nested(runtime);
  const auto add = [&](std::string_view text) {
    runtime.Memory(text.size());
    out += text;
  };
  const auto list = [&](std::string_view open, std::string_view close) {
    out += open;
    bool first = true;
    for (const Value& item : value.list->items) {
      if (!first) add(", ");
      first = false;
      AppendRepr(runtime, item, out);
    }
    if (value.is(Type::kTuple) && value.list->items.size() == 1) out += ",";
    out += close;
  };
  switch (value.type) {
    case Type::kUndefined:
      return add("Undefined");
    case Type::kNone:
      return add("None");
    case Type::kBool:
      return add(value.boolean ? "True" : "False");
    case Type::kInt:
      return add(fmt::format("{}", value.integer));
    case Type::kFloat:
      return add(FloatText(value.number));
    case Type::kString:
      return add(ReprOfText(*value.text));
    case Type::kList:
      return list("[", "]");
    case Type::kTuple:
      return list("(", ")");
    case Type::kView:
      if (value.list->name == "range") return add(value.list->printed);
      add(value.list->name);
      return list("([", "])");
    case Type::kDict:
    case Type::kNamespace: {
      add(value.is(Type::kDict) ? "{" : "<Namespace {");
      bool first = true;
      for (const auto& [key, item] : value.dict->items) {
        if (!first) add(", ");
        first = false;
        AppendRepr(runtime, key, out);
        add(": ");
        AppendRepr(runtime, item, out);
      }
      return add(value.is(Type::kDict) ? "}" : "}>");
    }
    case Type::kFunction:
      if (value.function->kind == Function::Kind::kMacro)
        return add(fmt::format("<Macro {}>", ReprOfText(value.function->name)));
      break;
    case Type::kLoop:
      return add(
          fmt::format("<LoopContext {}/{}>", value.loop->index + 1, value.loop->items.size()));
    case Type::kGenerator:
      break;
  }
  // Python prints their addresses.
  runtime.Fail(
      fmt::format("a {} has no text{}", TypeName(value),
                  value.is(Type::kGenerator) ? "; the filter list makes a list of it" : ""));
}

void AppendText(Runtime& runtime, const Value& value, std::string& out) {
  if (value.is(Type::kString)) {
    out += *value.text;
  } else if (!value.is(Type::kUndefined)) {
    AppendRepr(runtime, value, out);
  }
}

std::string TextOf(Runtime& runtime, const Value& value) {
  std::string text;
  AppendText(runtime, value, text);
  return text;
}

bool Equal(Runtime& runtime, const Value& a, const Value& b) {
  const Nested nested(runtime);
  if (a.number_like() && b.number_like()) {
    if (a.integral() && b.integral()) return a.whole() == b.whole();
    return a.real() == b.real();
  }
  if (a.type != b.type) return false;
  switch (a.type) {
    case Type::kString:
      runtime.Work(a.text->size() / 256);
      return *a.text == *b.text;
    case Type::kList:
    case Type::kTuple:
      if (a.list == b.list) return true;
      if (a.list->items.size() != b.list->items.size()) return false;
      for (size_t i = 0; i < a.list->items.size(); ++i)
        if (!Equal(runtime, a.list->items[i], b.list->items[i])) return false;
      return true;
    case Type::kView: {
      if (a.list == b.list) return true;
      if (a.list->name != b.list->name || a.list->name == "dict_values") return false;
      if (a.list->items.size() != b.list->items.size()) return false;
      for (size_t i = 0; i < a.list->items.size(); ++i)
        if (!Equal(runtime, a.list->items[i], b.list->items[i])) return false;
      return true;
    }
    case Type::kDict:
      if (a.dict == b.dict) return true;
      if (a.dict->items.size() != b.dict->items.size()) return false;
      for (const auto& [key, item] : a.dict->items) {
        const Value* other = Find(runtime, *b.dict, key);
        if (!other || !Equal(runtime, item, *other)) return false;
      }
      return true;
    case Type::kUndefined:
    case Type::kNone:
      return true;
    case Type::kNamespace:
      return a.dict == b.dict;
    case Type::kGenerator:
      return a.list == b.list;
    case Type::kLoop:
      return a.loop == b.loop;
    case Type::kFunction:
      return a.function == b.function;
    default:
      return false;
  }
}

int Compare(Runtime& runtime, const Value& a, const Value& b, std::string_view symbol) {
  const Nested nested(runtime);
  if (a.is(Type::kUndefined)) runtime.Fail(*a.text);
  if (b.is(Type::kUndefined)) runtime.Fail(*b.text);
  if (a.integral() && b.integral()) return a.whole() < b.whole() ? -1 : a.whole() > b.whole();
  if (a.number_like() && b.number_like()) return a.real() < b.real() ? -1 : a.real() > b.real();
  if (a.is(Type::kString) && b.is(Type::kString)) {
    runtime.Work(a.text->size() / 256);
    const int order = a.text->compare(*b.text);  // UTF-8 sorts by code points
    return order < 0 ? -1 : order > 0;
  }
  if (a.type == b.type && (a.is(Type::kList) || a.is(Type::kTuple))) {
    const std::vector<Value>&x = a.list->items, &y = b.list->items;
    for (size_t i = 0; i < std::min(x.size(), y.size()); ++i)
      if (!Equal(runtime, x[i], y[i])) return Compare(runtime, x[i], y[i], symbol);
    return x.size() < y.size() ? -1 : x.size() > y.size();
  }
  runtime.Fail(fmt::format("'{}' not supported between instances of '{}' and '{}'", symbol,
                           TypeName(a), TypeName(b)));
}

Value Negated(Runtime& runtime, const Value& value) {
  if (value.is(Type::kUndefined)) runtime.Fail(*value.text);
  if (!value.number_like())
    runtime.Fail(fmt::format("bad operand type for unary -: '{}'", TypeName(value)));
  return value.is(Type::kFloat) ? Value::Float(-value.number)
                                : Numbers(runtime, "-", Value::Int(0), value);
}

Value Arithmetic(Runtime& runtime, std::string_view symbol, const Value& a, const Value& b) {
  if (a.is(Type::kString) && symbol == "%") return runtime.String(Format(runtime, *a.text, b));
  if (a.is(Type::kUndefined)) runtime.Fail(*a.text);
  if (b.is(Type::kUndefined)) runtime.Fail(*b.text);
  if (a.number_like() && b.number_like()) return Numbers(runtime, symbol, a, b);
  if (symbol == "+" && a.type == b.type) {
    if (a.is(Type::kString)) {
      CheckSize(runtime,
                static_cast<double>(a.text->size() + b.text->size()) * (a.safe || b.safe ? 6 : 1));
      if (!a.safe && !b.safe) return runtime.String(*a.text + *b.text);
      // Markup, which escapes what is added to it even where templates do not escape.
      Value sum = runtime.String((a.safe ? *a.text : EscapedText(*a.text)) +
                                 (b.safe ? *b.text : EscapedText(*b.text)));
      sum.safe = true;
      return sum;
    }
    if (a.is(Type::kList) || a.is(Type::kTuple)) {
      std::vector<Value> items = a.list->items;
      items.insert(items.end(), b.list->items.begin(), b.list->items.end());
      return runtime.NewList(std::move(items), a.type);
    }
  }
  if (symbol == "*") {
    const auto repeats = [](const Value& v) {
      return v.is(Type::kString) || v.is(Type::kList) || v.is(Type::kTuple);
    };
    if (repeats(a) && b.integral()) return Repeated(runtime, a, b.whole());
    if (repeats(b) && a.integral()) return Repeated(runtime, b, a.whole());
  }
  WrongOperands(runtime, symbol, a, b);
}

}  // namespace mlc::text::jinja

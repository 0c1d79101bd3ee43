// Filters and tests. The semantics are those of jinja2/filters.py and jinja2/tests.py.
#include <algorithm>
#include <cmath>

#include "lib/support/counted.h"
#include "lib/support/float_text.h"
#include "lib/text/jinja_format.h"
#include "lib/text/jinja_functions.h"
#include "lib/text/python_text.h"
#include "lib/text/unicode.h"

namespace mlc::text::jinja {

namespace {

using Names = std::initializer_list<std::string_view>;

std::string_view StringOf(Runtime& runtime, const Value& value, std::string& held) {
  if (value.is(Type::kString)) return *value.text;
  held = TextOf(runtime, value);
  return held;
}

// Counts the work of visiting a text.
std::string Subject(Runtime& runtime, const Value& value) {
  std::string text = TextOf(runtime, value);
  runtime.Memory(text.size());
  return text;
}

// "a.b.0": the attribute of an attribute, where digits are subscripts.
Value AttributePath(Runtime& runtime, Value value, const Value& path, const Value* missing) {
  if (path.integral()) {
    value = Item(runtime, value, path);
  } else {
    std::string held;
    const std::string_view whole = StringOf(runtime, path, held);
    for (std::string_view part : SplitAt(whole, ".", -1, false)) {
      const bool digits =
          !part.empty() && part.size() < 10 && part.find_first_not_of("0123456789") == part.npos;
      value = Item(
          runtime, value,
          digits ? Value::Int(std::stoll(std::string(part))) : runtime.String(std::string(part)));
      if (missing && value.is(Type::kUndefined)) return *missing;
    }
  }
  return missing && value.is(Type::kUndefined) ? *missing : value;
}

Value CaseFolded(Runtime& runtime, const Value& value, bool sensitive) {
  if (sensitive || !value.is(Type::kString)) return value;
  return runtime.String(Lowercase(*value.text));
}

struct Keyed {
  Value key, value;
};
std::vector<Keyed> WithKeys(Runtime& runtime, const Value& value, const Value* attribute,
                            bool sensitive, const Value* missing = nullptr) {
  std::vector<Keyed> keyed;
  for (const Value& each : Elements(runtime, value)) {
    Value key = each;
    if (attribute && !attribute->none()) key = AttributePath(runtime, each, *attribute, missing);
    keyed.push_back({CaseFolded(runtime, key, sensitive), each});
  }
  return keyed;
}
// Comparisons may throw, which std::stable_sort allows; it needs an order that is consistent, which
// NaN is not.
void SortByKey(Runtime& runtime, std::vector<Keyed>& keyed, bool reverse) {
  for (const Keyed& each : keyed)
    if (each.key.is(Type::kFloat) && std::isnan(each.key.number))
      runtime.Unsupported("sorting values that are not numbers (NaN)");
  if (reverse) std::reverse(keyed.begin(), keyed.end());
  std::stable_sort(keyed.begin(), keyed.end(), [&](const Keyed& a, const Keyed& b) {
    return Compare(runtime, a.key, b.key, "<") < 0;
  });
  if (reverse) std::reverse(keyed.begin(), keyed.end());
}
Value ValuesOf(Runtime& runtime, const std::vector<Keyed>& keyed) {
  std::vector<Value> values;
  for (const Keyed& each : keyed) values.push_back(each.value);
  return runtime.NewList(std::move(values));
}

Value Generator(Runtime& runtime, std::vector<Value> values) {
  return runtime.NewList(std::move(values), Type::kGenerator, "generator");
}
Value Pair(Runtime& runtime, const Value& a, const Value& b) {
  return runtime.NewList({a, b}, Type::kTuple);
}

std::string FirstArgument(Runtime& runtime, const Arguments& arguments, std::string_view filter,
                          std::string_view what) {
  if (arguments.positional.empty())
    runtime.Fail(fmt::format("the filter {} requires {}", filter, what));
  return TextOf(runtime, arguments.positional[0]);
}

// select, reject, selectattr, rejectattr.
Value Selected(Runtime& runtime, std::string_view filter, const Value& value, Arguments arguments) {
  const bool rejects = filter.starts_with("reject"), attribute = filter.ends_with("attr");
  Value path;
  if (attribute) {
    if (arguments.positional.empty()) runtime.Fail("the filter requires the name of an attribute");
    path = arguments.positional[0];
    arguments.positional.erase(arguments.positional.begin());
  }
  std::string test;
  if (!arguments.positional.empty()) {
    test = TextOf(runtime, arguments.positional[0]);
    arguments.positional.erase(arguments.positional.begin());
  }
  std::vector<Value> kept;
  if (!Truth(value)) return Generator(runtime, {});  // also none
  for (const Value& each : Elements(runtime, value)) {
    const Value tested = attribute ? AttributePath(runtime, each, path, nullptr) : each;
    const bool holds = test.empty() ? Truth(tested) : ApplyTest(runtime, test, tested, arguments);
    if (holds != rejects) kept.push_back(each);
  }
  return Generator(runtime, std::move(kept));
}

Value Mapped(Runtime& runtime, const Value& value, Arguments arguments) {
  const Value* attribute = nullptr;
  const Value* missing = nullptr;
  for (const auto& [name, given] : arguments.named) {
    if (name == "attribute") attribute = &given;
    if (name == "default") missing = &given;
  }
  std::vector<Value> values;
  if (!Truth(value)) return Generator(runtime, {});  // also none
  if (arguments.positional.empty() && attribute) {
    for (const Value& each : Elements(runtime, value))
      values.push_back(AttributePath(runtime, each, *attribute, missing));
  } else {
    const std::string filter = FirstArgument(runtime, arguments, "map", "a filter or an attribute");
    arguments.positional.erase(arguments.positional.begin());
    for (const Value& each : Elements(runtime, value))
      values.push_back(ApplyFilter(runtime, filter, each, arguments));
  }
  return Generator(runtime, std::move(values));
}

Value Join(Runtime& runtime, const Value& value, const Parameters& given) {
  const std::string separator = given.Text(0, "");
  std::string out;
  bool first = true;
  for (const Value& each : Elements(runtime, value)) {
    if (!first) out += separator;
    first = false;
    const Value one =
        given[1] && !given[1]->none() ? AttributePath(runtime, each, *given[1], nullptr) : each;
    AppendText(runtime, one, out);
    if (out.size() > 1 << 16) runtime.Memory(out.size() >> 8);
    CheckSize(runtime, static_cast<double>(one.is(Type::kString) ? one.text->size() : 0) +
                           static_cast<double>(separator.size()));
  }
  return runtime.String(std::move(out));
}

Value Indent(Runtime& runtime, const Value& value, const Parameters& given) {
  const Value* width = given[0];
  if (width && width->integral() && width->whole() > 1000)
    runtime.Fail("the indentation is too wide");
  const std::string indent =
      width && width->is(Type::kString)
          ? *width->text
          : std::string(static_cast<size_t>(std::max<int64_t>(given.Whole(0, 4), 0)), ' ');
  const bool first = given.Flag(1), blank = given.Flag(2);
  if (!value.is(Type::kString))
    runtime.Fail(fmt::format("the filter indent requires a str, not {}", TypeName(value)));
  const std::string text = Subject(runtime, value) + "\n";
  std::string out;
  bool begun = false;
  for (std::string_view line : SplitLines(text, false)) {
    if (begun) out += '\n';
    if (begun ? blank || !line.empty() : first) out += indent;
    begun = true;
    out += line;
    runtime.Memory(line.size() + indent.size());
  }
  return runtime.String(std::move(out));
}

Value Rounded(Runtime& runtime, const Value& value, const Parameters& given) {
  const int64_t precision = given.Whole(0, 0);
  const std::string method = given.Text(1, "common");
  if (method != "common" && method != "ceil" && method != "floor")
    runtime.Fail("the method of round must be common, ceil or floor");
  if (!value.number_like())
    runtime.Fail(fmt::format("round: '{}' is not a number", TypeName(value)));
  if (precision > 300 || precision < -300) runtime.Fail("the precision of round is too large");
  if (method == "common") {
    if (value.integral() && precision >= 0) return Value::Int(value.whole());
    if (value.integral()) runtime.Unsupported("a negative precision of an integer");
    // Rounds the decimal digits of the exact value, half to even, as Python does.
    if (precision < 0) runtime.Unsupported("a negative precision");
    const std::string digits = fmt::format("{:.{}f}", value.number, static_cast<int>(precision));
    double number = value.number;
    if (std::isfinite(number)) FloatFromChars(digits.data(), digits.data() + digits.size(), number);
    return Value::Float(number);
  }
  const double scale = std::pow(10.0, static_cast<double>(precision));
  const double scaled = value.real() * scale;
  return Value::Float((method == "ceil" ? std::ceil(scaled) : std::floor(scaled)) / scale);
}

std::optional<int64_t> WholeOf(std::string_view text, int base) {
  std::string digits(StripLeft(StripRight(text)));
  std::erase(digits, '_');
  if (digits.starts_with('+')) digits.erase(0, 1);
  const size_t sign = digits.starts_with('-') ? 1 : 0;
  if (digits.size() > sign + 1 && digits[sign] == '0') {
    const char kind = static_cast<char>(digits[sign + 1] | 0x20);
    if ((base == 16 && kind == 'x') || (base == 8 && kind == 'o') || (base == 2 && kind == 'b'))
      digits.erase(sign, 2);
  }
  int64_t number = 0;
  const auto [end, fault] =
      std::from_chars(digits.data(), digits.data() + digits.size(), number, base);
  if (fault != std::errc() || end != digits.data() + digits.size()) return std::nullopt;
  return number;
}

// float() of a text; Python's also takes underscores, "inf" and "nan".
std::optional<double> RealOf(std::string_view text) {
  text = StripLeft(StripRight(text));
  if (text.starts_with('+')) text.remove_prefix(1);
  double number = 0;
  const auto [end, fault] = FloatFromChars(text.data(), text.data() + text.size(), number);
  if (text.empty() || end != text.data() + text.size() || fault == std::errc::invalid_argument)
    return std::nullopt;
  return number;
}

Value ToInt(Runtime& runtime, const Value& value, const Parameters& given) {
  const Value missing = given[0] ? *given[0] : Value::Int(0);
  const int64_t base = given.Whole(1, 10);
  if (base < 2 || base > 36) runtime.Unsupported("this base of int");
  double real = 0;
  if (value.is(Type::kUndefined)) runtime.Fail(*value.text);
  if (value.integral()) return Value::Int(value.whole());
  if (value.is(Type::kFloat)) {
    real = value.number;
  } else if (value.is(Type::kString)) {
    if (const auto whole = WholeOf(*value.text, static_cast<int>(base))) return Value::Int(*whole);
    const auto parsed = RealOf(*value.text);
    if (!parsed) return missing;
    real = *parsed;
  } else {
    return missing;
  }
  if (!std::isfinite(real)) return missing;
  if (std::fabs(real) >= 9.2e18) runtime.Unsupported("an integer beyond 64 bits");
  return Value::Int(static_cast<int64_t>(real));
}

Value ToFloat(Runtime& runtime, const Value& value, const Parameters& given) {
  if (value.is(Type::kUndefined)) runtime.Fail(*value.text);
  if (value.number_like()) return Value::Float(value.real());
  if (value.is(Type::kString))
    if (const auto parsed = RealOf(*value.text)) return Value::Float(*parsed);
  return given[0] ? *given[0] : Value::Float(0);
}

Value DictSort(Runtime& runtime, const Value& value, const Parameters& given) {
  if (!value.is(Type::kDict))
    runtime.Fail(fmt::format("dictsort: '{}' has no items", TypeName(value)));
  const std::string by = given.Text(1, "key");
  if (by != "key" && by != "value")
    runtime.Fail("You can only sort by either \"key\" or \"value\"");
  std::vector<Keyed> keyed;
  for (const auto& [key, item] : value.dict->items)
    keyed.push_back(
        {CaseFolded(runtime, by == "key" ? key : item, given.Flag(0)), Pair(runtime, key, item)});
  SortByKey(runtime, keyed, given.Flag(2));
  return ValuesOf(runtime, keyed);
}

Value Unique(Runtime& runtime, const Value& value, const Parameters& given) {
  std::vector<Value> seen, kept;
  for (const Keyed& each : WithKeys(runtime, value, given[1], given.Flag(0))) {
    const bool known = std::any_of(seen.begin(), seen.end(),
                                   [&](const Value& v) { return Equal(runtime, v, each.key); });
    if (known) continue;
    seen.push_back(each.key);
    kept.push_back(each.value);
  }
  return Generator(runtime, std::move(kept));
}

Value GroupBy(Runtime& runtime, const Value& value, const Parameters& given) {
  std::vector<Keyed> keyed = WithKeys(runtime, value, given[0], true, given[1]);
  for (Keyed& each : keyed) each.key = CaseFolded(runtime, each.key, given.Flag(2));
  SortByKey(runtime, keyed, false);
  std::vector<Value> groups;
  for (size_t i = 0; i < keyed.size();) {
    std::vector<Value> members;
    // The name of a group is the attribute of its first member, as written there.
    const Value name = AttributePath(runtime, keyed[i].value, *given[0], given[1]);
    size_t j = i;
    for (; j < keyed.size() && Equal(runtime, keyed[j].key, keyed[i].key); ++j)
      members.push_back(keyed[j].value);
    groups.push_back(Pair(runtime, name, runtime.NewList(std::move(members))));
    i = j;
  }
  return runtime.NewList(std::move(groups));
}

Value Batch(Runtime& runtime, const Value& value, const Parameters& given) {
  const int64_t size = given.Whole(0, 0);
  if (size < 1) runtime.Fail("batch requires a positive number");
  std::vector<Value> rows, row;
  for (const Value& each : Elements(runtime, value)) {
    if (std::ssize(row) == size) {
      rows.push_back(runtime.NewList(std::move(row)));
      row = {};
    }
    row.push_back(each);
  }
  if (!row.empty()) {
    if (given[1] && !given[1]->none()) {
      CheckSize(runtime, static_cast<double>(size) * sizeof(Value));
      row.resize(static_cast<size_t>(size), *given[1]);
    }
    rows.push_back(runtime.NewList(std::move(row)));
  }
  return Generator(runtime, std::move(rows));
}

Value Reversed(Runtime& runtime, const Value& value) {
  if (value.is(Type::kString)) {
    const std::string text = Subject(runtime, value);
    std::string out;
    const std::vector<std::string_view> characters = Characters(text);
    for (auto each = characters.rbegin(); each != characters.rend(); ++each) out += *each;
    return runtime.String(std::move(out));
  }
  std::vector<Value> values = Elements(runtime, value);
  std::reverse(values.begin(), values.end());
  return Generator(runtime, std::move(values));
}

Value TitleWords(Runtime& runtime, const Value& value) {
  const std::string text = Subject(runtime, value);
  std::string out;
  bool begins = true;
  for (std::string_view character : Characters(text)) {
    out += begins ? Uppercase(character) : Lowercase(character);
    begins = character.size() == 1 &&
             std::string_view("-({[<").find(character) != std::string_view::npos;
    begins = begins || LeadingSpace(character) > 0;
  }
  return runtime.String(std::move(out));
}

Value Safe(Value text) {
  text.safe = true;
  return text;
}
Value Escaped(Runtime& runtime, const Value& value) {
  if (value.is(Type::kString) && value.safe) return value;
  return Safe(runtime.String(EscapedText(Subject(runtime, value))));
}

Value JsonOf(Runtime& runtime, const Value& value, const Arguments& arguments) {
  // The filter of transformers, not that of Jinja.
  const Parameters given(runtime, "tojson", arguments,
                         {"ensure_ascii", "indent", "separators", "sort_keys"});
  JsonStyle style{.ascii = given.Flag(0), .sorted = given.Flag(3)};
  if (given[1] && !given[1]->none()) {
    if (given[1]->is(Type::kString))
      style.indent = *given[1]->text;
    else {
      const int64_t width = given.Whole(1, 0);
      if (width > 1000) runtime.Fail("the indentation is too wide");
      style.indent = std::string(static_cast<size_t>(std::max<int64_t>(width, 0)), ' ');
    }
  }
  style.item = style.indent ? "," : ", ";
  style.key = ": ";
  if (given[2] && !given[2]->none()) {
    const std::vector<Value> pair = Elements(runtime, *given[2]);
    if (pair.size() != 2) runtime.Fail("separators must be two strings");
    style.item = TextOf(runtime, pair[0]);
    style.key = TextOf(runtime, pair[1]);
  }
  return runtime.String(ToJson(runtime, value, style));
}

Value Extreme(Runtime& runtime, const Value& value, const Parameters& given, bool largest) {
  const std::vector<Keyed> keyed = WithKeys(runtime, value, given[1], given.Flag(0));
  if (keyed.empty()) return runtime.Undefined("No aggregated item, sequence was empty.");
  const Keyed* best = &keyed[0];
  for (const Keyed& each : keyed) {
    const int order = Compare(runtime, each.key, best->key, largest ? ">" : "<");
    if (largest ? order > 0 : order < 0) best = &each;
  }
  return best->value;
}

Value Sum(Runtime& runtime, const Value& value, const Parameters& given) {
  Value total = given[1] ? *given[1] : Value::Int(0);
  for (const Value& each : Elements(runtime, value)) {
    const Value one =
        given[0] && !given[0]->none() ? AttributePath(runtime, each, *given[0], nullptr) : each;
    total = Arithmetic(runtime, "+", total, one);
  }
  return total;
}

Value Last(Runtime& runtime, const Value& value) {
  if (value.is(Type::kGenerator)) runtime.Fail("'generator' object is not reversible");
  const std::vector<Value> items = Elements(runtime, value);
  return items.empty() ? runtime.Undefined("No last item, sequence was empty.") : items.back();
}
Value First(Runtime& runtime, const Value& value) {
  if (value.is(Type::kGenerator)) {
    List& list = *value.list;
    if (list.next < list.items.size()) return list.items[list.next++];
    return runtime.Undefined("No first item, sequence was empty.");
  }
  const std::vector<Value> items = Elements(runtime, value);
  return items.empty() ? runtime.Undefined("No first item, sequence was empty.") : items.front();
}

Value ItemsOf(Runtime& runtime, const Value& value) {
  std::vector<Value> pairs;
  if (!value.is(Type::kUndefined)) {
    if (!value.is(Type::kDict)) runtime.Fail("Can only get item pairs from a mapping.");
    for (const auto& [key, item] : value.dict->items) pairs.push_back(Pair(runtime, key, item));
  }
  return Generator(runtime, std::move(pairs));
}

Value Truncated(Runtime& runtime, const Value& value, const Parameters& given) {
  const int64_t length = given.Whole(0, 255), leeway = given.Whole(3, 5);
  if (!value.is(Type::kString)) {
    if (Length(runtime, value) <= length + leeway) return value;
    runtime.Unsupported("truncating what is not a text");
  }
  const std::string text = Subject(runtime, value), end = given.Text(2, "...");
  if (length < CountCharacters(end) || leeway < 0)
    runtime.Fail("truncate: the length or leeway is too small");
  const std::vector<std::string_view> characters = Characters(text);
  if (std::ssize(characters) <= length + leeway) return runtime.String(text);
  std::string kept;
  for (int64_t i = 0; i < length - CountCharacters(end); ++i)
    kept += characters[static_cast<size_t>(i)];
  if (!given.Flag(1)) kept = kept.substr(0, kept.rfind(' '));
  return runtime.String(kept + end);
}

// A function for each name. `p`: the names of the parameters, and how many are required.
struct Filter {
  std::string_view name;
  Names parameters;
  size_t required;
  Value (*apply)(Runtime& runtime, const Value& value, const Parameters& given);
};
const Filter kFilters[] = {
    {"abs",
     {},
     0,
     [](Runtime& runtime, const Value& value, const Parameters&) {
       const bool negative = value.is(Type::kFloat) ? std::signbit(value.number)
                                                    : value.integral() && value.whole() < 0;
       return negative || !value.number_like() ? Negated(runtime, value)
              : value.is(Type::kBool)          ? Value::Int(value.whole())
                                               : value;
     }},
    {"attr",
     {"name"},
     1,
     [](Runtime& runtime, const Value& value, const Parameters& given) {
       const std::string name = given.Text(0, "");
       if (value.is(Type::kDict) && !HasMethod(value, name))
         return runtime.Undefined(fmt::format("'dict object' has no attribute '{}'", name));
       return Attribute(runtime, value, *runtime.String(name).text);
     }},
    {"batch", {"linecount", "fill_with"}, 1, Batch},
    {"center",
     {"width"},
     0,
     [](Runtime& runtime, const Value& value, const Parameters& given) {
       return CallMethod(runtime, runtime.String(TextOf(runtime, value)), "center",
                         {.positional = {Value::Int(given.Whole(0, 80))}});
     }},
    {"count",
     {},
     0,
     [](Runtime& runtime, const Value& value, const Parameters&) {
       return Value::Int(Length(runtime, value));
     }},
    {"d",
     {"default_value", "boolean"},
     0,
     [](Runtime& runtime, const Value& value, const Parameters& given) {
       const bool missing = value.is(Type::kUndefined) || (given.Flag(1) && !Truth(value));
       return !missing ? value : given[0] ? *given[0] : runtime.String("");
     }},
    {"dictsort", {"case_sensitive", "by", "reverse"}, 0, DictSort},
    {"e",
     {},
     0,
     [](Runtime& runtime, const Value& value, const Parameters&) {
       return Escaped(runtime, value);
     }},
    {"first",
     {},
     0,
     [](Runtime& runtime, const Value& value, const Parameters&) { return First(runtime, value); }},
    {"float", {"default"}, 0, ToFloat},
    {"groupby", {"attribute", "default", "case_sensitive"}, 1, GroupBy},
    {"indent", {"width", "first", "blank"}, 0, Indent},
    {"int", {"default", "base"}, 0, ToInt},
    {"items",
     {},
     0,
     [](Runtime& runtime, const Value& value, const Parameters&) {
       return ItemsOf(runtime, value);
     }},
    {"join", {"d", "attribute"}, 0, Join},
    {"last",
     {},
     0,
     [](Runtime& runtime, const Value& value, const Parameters&) { return Last(runtime, value); }},
    {"list",
     {},
     0,
     [](Runtime& runtime, const Value& value, const Parameters&) {
       return runtime.NewList(Elements(runtime, value));
     }},
    {"max",
     {"case_sensitive", "attribute"},
     0,
     [](Runtime& runtime, const Value& value, const Parameters& given) {
       return Extreme(runtime, value, given, true);
     }},
    {"min",
     {"case_sensitive", "attribute"},
     0,
     [](Runtime& runtime, const Value& value, const Parameters& given) {
       return Extreme(runtime, value, given, false);
     }},
    {"replace",
     {"old", "new", "count"},
     2,
     [](Runtime& runtime, const Value& value, const Parameters& given) {
       Arguments arguments{
           .positional = {runtime.String(given.Text(0, "")), runtime.String(given.Text(1, ""))}};
       if (given[2] && !given[2]->none()) arguments.positional.push_back(*given[2]);
       return CallMethod(runtime, runtime.String(TextOf(runtime, value)), "replace", arguments);
     }},
    {"reverse",
     {},
     0,
     [](Runtime& runtime, const Value& value, const Parameters&) {
       return Reversed(runtime, value);
     }},
    {"round", {"precision", "method"}, 0, Rounded},
    {"safe",
     {},
     0,
     [](Runtime& runtime, const Value& value, const Parameters&) {
       return Safe(runtime.String(TextOf(runtime, value)));
     }},
    {"sort",
     {"reverse", "case_sensitive", "attribute"},
     0,
     [](Runtime& runtime, const Value& value, const Parameters& given) {
       if (given[2] && given[2]->is(Type::kString) &&
           given[2]->text->find(',') != std::string::npos)
         runtime.Unsupported("sorting by several attributes");
       std::vector<Keyed> keyed = WithKeys(runtime, value, given[2], given.Flag(1));
       SortByKey(runtime, keyed, given.Flag(0));
       return ValuesOf(runtime, keyed);
     }},
    {"sum", {"attribute", "start"}, 0, Sum},
    {"title",
     {},
     0,
     [](Runtime& runtime, const Value& value, const Parameters&) {
       return TitleWords(runtime, value);
     }},
    {"trim",
     {"chars"},
     0,
     [](Runtime& runtime, const Value& value, const Parameters& given) {
       Arguments arguments;
       if (given[0]) arguments.positional.push_back(*given[0]);
       return CallMethod(runtime, runtime.String(TextOf(runtime, value)), "strip", arguments);
     }},
    {"truncate", {"length", "killwords", "end", "leeway"}, 0, Truncated},
    {"unique", {"case_sensitive", "attribute"}, 0, Unique},
};
// Filters of the text of a value.
struct TextFilter {
  std::string_view name;
  std::string (*apply)(std::string_view text);
};
const TextFilter kTextFilters[] = {
    {"capitalize", Capitalized},
    {"lower", Lowercase},
    {"string", [](std::string_view text) { return std::string(text); }},
    {"upper", Uppercase},
};

// Other names of the same filter.
std::string_view Canonical(std::string_view name) {
  if (name == "default") return "d";
  if (name == "length") return "count";
  if (name == "escape" || name == "forceescape") return "e";
  return name;
}

constexpr std::string_view kOtherFilters[] = {"filesizeformat", "pprint",    "random", "slice",
                                              "striptags",      "urlencode", "urlize", "wordcount",
                                              "wordwrap",       "xmlattr"};
// These take the names of other filters and tests, or any arguments.
constexpr std::string_view kSpecialFilters[] = {"format", "map",        "reject", "rejectattr",
                                                "select", "selectattr", "tojson"};

const Filter* FindFilter(std::string_view name) {
  name = Canonical(name);
  for (const Filter& each : kFilters)
    if (each.name == name) return &each;
  return nullptr;
}
const TextFilter* FindTextFilter(std::string_view name) {
  for (const TextFilter& each : kTextFilters)
    if (each.name == name) return &each;
  return nullptr;
}
template <size_t size>
bool Among(const std::string_view (&names)[size], std::string_view name) {
  return std::find(std::begin(names), std::end(names), name) != std::end(names);
}

// The comparisons among the tests, and their operators.
constexpr std::pair<std::string_view, std::string_view> kComparisons[] = {
    {"eq", "=="}, {"equalto", "=="},    {"==", "=="}, {"ne", "!="}, {"!=", "!="},
    {"gt", ">"},  {"greaterthan", ">"}, {">", ">"},   {"ge", ">="}, {">=", ">="},
    {"lt", "<"},  {"lessthan", "<"},    {"<", "<"},   {"le", "<="}, {"<=", "<="}};
constexpr std::string_view kTests[] = {
    "boolean", "callable", "defined",  "divisibleby", "even",    "false",     "filter", "float",
    "in",      "integer",  "iterable", "lower",       "mapping", "none",      "number", "odd",
    "sameas",  "sequence", "string",   "test",        "true",    "undefined", "upper"};

}  // namespace

Parameters::Parameters(Runtime& runtime, std::string function, const Arguments& arguments,
                       std::initializer_list<std::string_view> names, size_t required)
    : runtime_(runtime), function_(std::move(function)), values_(names.size()) {
  if (arguments.positional.size() > names.size())
    runtime.Fail(fmt::format("{} takes at most {} arguments, {} are given", function_, names.size(),
                             arguments.positional.size()));
  for (size_t i = 0; i < arguments.positional.size(); ++i) values_[i] = &arguments.positional[i];
  for (const auto& [name, value] : arguments.named) {
    const auto found = std::find(names.begin(), names.end(), name);
    if (found == names.end())
      runtime.Fail(fmt::format("{} has no parameter '{}'", function_, name));
    const Value*& place = values_[static_cast<size_t>(found - names.begin())];
    if (place)
      runtime.Fail(fmt::format("{} has two values for the parameter '{}'", function_, name));
    place = &value;
  }
  for (size_t i = 0; i < required; ++i)
    if (!values_[i])
      runtime.Fail(fmt::format("{} requires the argument '{}'", function_, *(names.begin() + i)));
}
bool Parameters::Flag(size_t i, bool missing) const {
  return values_[i] ? Truth(*values_[i]) : missing;
}
int64_t Parameters::Whole(size_t i, int64_t missing) const {
  if (!values_[i]) return missing;
  if (!values_[i]->integral())
    runtime_.Fail(fmt::format("{} requires an integer, not {}", function_, TypeName(*values_[i])));
  return values_[i]->whole();
}
std::string Parameters::Text(size_t i, std::string_view missing) const {
  return values_[i] ? TextOf(runtime_, *values_[i]) : std::string(missing);
}

bool IsFilter(std::string_view name) {
  return FindFilter(name) || FindTextFilter(name) || Among(kSpecialFilters, name);
}
bool IsTest(std::string_view name) {
  return Among(kTests, name) || std::any_of(std::begin(kComparisons), std::end(kComparisons),
                                            [&](const auto& each) { return each.first == name; });
}

Value ApplyFilter(Runtime& runtime, std::string_view name, const Value& value,
                  const Arguments& arguments) {
  const Nested nested(runtime);
  if (name == "tojson") return JsonOf(runtime, value, arguments);
  if (name == "map") return Mapped(runtime, value, arguments);
  if (name.starts_with("select") || name.starts_with("reject"))
    if (Among(kSpecialFilters, name)) return Selected(runtime, name, value, arguments);
  if (name == "format") {
    if (!arguments.named.empty()) runtime.Unsupported("the filter format with named arguments");
    const std::string format = TextOf(runtime, value);
    return runtime.String(
        Format(runtime, format, runtime.NewList(arguments.positional, Type::kTuple)));
  }
  if (const TextFilter* filter = FindTextFilter(name)) {
    const Parameters none(runtime, fmt::format("the filter {}", name), arguments, {});
    const std::string text = Subject(runtime, value);
    return runtime.String(filter->apply(text));
  }
  if (const Filter* filter = FindFilter(name))
    return filter->apply(runtime, value,
                         Parameters(runtime, fmt::format("the filter {}", name), arguments,
                                    filter->parameters, filter->required));
  if (Among(kOtherFilters, name)) runtime.Unsupported(fmt::format("the filter '{}'", name));
  runtime.Fail(fmt::format("there is no filter '{}'", name));
}

bool ApplyTest(Runtime& runtime, std::string_view name, const Value& value,
               const Arguments& arguments) {
  const Nested nested(runtime);
  if (!arguments.named.empty()) runtime.Unsupported("a test with named arguments");
  const auto comparison = std::find_if(std::begin(kComparisons), std::end(kComparisons),
                                       [&](const auto& each) { return each.first == name; });
  const bool compares = comparison != std::end(kComparisons);
  const size_t wanted =
      compares || name == "in" || name == "divisibleby" || name == "sameas" ? 1 : 0;
  if (IsTest(name) && arguments.positional.size() != wanted)
    runtime.Fail(fmt::format("the test {} takes {}, {} given", name,
                             Counted(static_cast<int64_t>(wanted), "argument"),
                             arguments.positional.size()));
  if (compares) {
    const Value& other = arguments.positional[0];
    const std::string_view symbol = comparison->second;
    if (symbol == "==" || symbol == "!=") return Equal(runtime, value, other) == (symbol == "==");
    const int order = Compare(runtime, value, other, symbol);
    return symbol == ">"    ? order > 0
           : symbol == ">=" ? order >= 0
           : symbol == "<"  ? order < 0
                            : order <= 0;
  }
  if (name == "defined") return !value.is(Type::kUndefined);
  if (name == "undefined") return value.is(Type::kUndefined);
  if (name == "none") return value.none();
  if (name == "boolean") return value.is(Type::kBool);
  if (name == "true") return value.is(Type::kBool) && value.boolean;
  if (name == "false") return value.is(Type::kBool) && !value.boolean;
  if (name == "integer") return value.is(Type::kInt);
  if (name == "float") return value.is(Type::kFloat);
  if (name == "number") return value.number_like();
  if (name == "string") return value.is(Type::kString);
  if (name == "mapping") return value.is(Type::kDict);
  if (name == "callable") return value.is(Type::kFunction) || value.is(Type::kUndefined);
  if (name == "iterable")
    return value.is(Type::kString) || value.is(Type::kDict) || IsSequence(value) ||
           value.is(Type::kGenerator) || value.is(Type::kUndefined) || value.is(Type::kLoop);
  if (name == "sequence")
    return value.is(Type::kString) || value.is(Type::kDict) || value.is(Type::kList) ||
           value.is(Type::kTuple) || value.is(Type::kUndefined) ||
           (value.is(Type::kView) && value.list->name == "range");
  if (name == "odd" || name == "even" || name == "divisibleby") {
    const Value by = name == "divisibleby" ? arguments.positional[0] : Value::Int(2);
    return Equal(runtime, Arithmetic(runtime, "%", value, by), Value::Int(name == "odd" ? 1 : 0));
  }
  if (name == "in") return Contains(runtime, arguments.positional[0], value);
  if (name == "sameas") {
    const Value& other = arguments.positional[0];
    // Identity of numbers and texts is a matter of Python's memory.
    return value.type == other.type && Equal(runtime, value, other) &&
           (!IsSequence(value) || value.list == other.list) &&
           (!value.is(Type::kDict) || value.dict == other.dict);
  }
  if (name == "lower" || name == "upper") {
    const std::string text = TextOf(runtime, value);
    return IsAll(name == "lower" ? "islower" : "isupper", text);
  }
  if (name == "filter") return value.is(Type::kString) && IsFilter(*value.text);
  if (name == "test") return value.is(Type::kString) && IsTest(*value.text);
  if (name == "escaped") runtime.Unsupported("the test 'escaped'");
  runtime.Fail(fmt::format("there is no test '{}'", name));
}

}  // namespace mlc::text::jinja

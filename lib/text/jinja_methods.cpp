// Methods of Python's types, and global functions.
#include <algorithm>

#include "lib/text/jinja_format.h"
#include "lib/text/jinja_functions.h"
#include "lib/text/python_text.h"
#include "lib/text/unicode.h"

namespace mlc::text::jinja {

namespace {

constexpr int64_t kLargestRange = 100000;  // MAX_RANGE of jinja2/sandbox.py

class Method {
 public:
  Method(Runtime& runtime, const Value& self, std::string_view name, const Arguments& arguments)
      : runtime_(runtime), self_(self), name_(name), arguments_(arguments) {}

  Value Call() {
    switch (self_.type) {
      case Type::kString:
        return OfString();
      case Type::kDict:
        return OfDict();
      case Type::kList:
      case Type::kTuple:
      case Type::kView:
        return OfList();
      default:
        runtime_.Unsupported(fmt::format("the method {} of {}", name_, TypeName(self_)));
    }
  }

 private:
  Parameters Given(std::initializer_list<std::string_view> names, size_t required = 0) const {
    return Parameters(runtime_, fmt::format("the method {}", name_), arguments_, names, required);
  }
  Value String(std::string_view text) const { return runtime_.String(std::string(text)); }
  Value Strings(const std::vector<std::string_view>& texts) const {
    runtime_.Memory(texts.size() * sizeof(Value));
    std::vector<Value> values;
    for (std::string_view text : texts) values.push_back(String(text));
    return runtime_.NewList(std::move(values));
  }
  const std::string& Required(const Value* value) const {
    if (!value->is(Type::kString))
      runtime_.Fail(fmt::format("the method {} requires a str, not {}", name_, TypeName(*value)));
    return *value->text;
  }

  Value OfString() {
    const std::string& text = *self_.text;
    runtime_.Work(text.size() / 16);
    if (name_ == "strip" || name_ == "lstrip" || name_ == "rstrip") {
      const Parameters given = Given({"chars"});
      std::string_view rest = text;
      const bool spaces = !given[0] || given[0]->none();
      const std::string characters = spaces ? "" : Required(given[0]);
      runtime_.Work(text.size() / 16 * (1 + characters.size() / 4));
      if (name_ != "rstrip") rest = spaces ? StripLeft(rest) : StripLeft(rest, characters);
      if (name_ != "lstrip") rest = spaces ? StripRight(rest) : StripRight(rest, characters);
      return String(rest);
    }
    if (name_ == "startswith" || name_ == "endswith") return Affix(text);
    if (name_ == "split" || name_ == "rsplit") {
      const Parameters given = Given({"sep", "maxsplit"});
      const bool right = name_ == "rsplit";
      const int64_t most = given.Whole(1, -1);
      runtime_.Memory(text.size());
      if (!given[0] || given[0]->none()) return Strings(SplitAtSpace(text, most, right));
      if (Required(given[0]).empty()) runtime_.Fail("empty separator");
      return Strings(SplitAt(text, *given[0]->text, most, right));
    }
    if (name_ == "splitlines") return Strings(SplitLines(text, Given({"keepends"}).Flag(0)));
    if (name_ == "partition" || name_ == "rpartition") {
      const std::string& separator = Required(Given({"sep"}, 1)[0]);
      if (separator.empty()) runtime_.Fail("empty separator");
      const bool right = name_ == "rpartition";
      const size_t at = right ? text.rfind(separator) : text.find(separator);
      std::vector<Value> parts{String(right ? "" : text), String(""), String(right ? text : "")};
      if (at != text.npos)
        parts = {String(text.substr(0, at)), String(separator),
                 String(text.substr(at + separator.size()))};
      return runtime_.NewList(std::move(parts), Type::kTuple);
    }
    if (name_ == "replace") {
      const Parameters given = Given({"old", "new", "count"}, 2);
      const std::string &from = Required(given[0]), &to = Required(given[1]);
      const int64_t most = given.Whole(2, -1);
      CheckSize(runtime_,
                static_cast<double>(CountOf(text, from)) * static_cast<double>(to.size()) +
                    static_cast<double>(text.size()));
      return String(Replaced(text, from, to, most));
    }
    if (name_ == "removeprefix" || name_ == "removesuffix") {
      const std::string& part = Required(Given({"affix"}, 1)[0]);
      std::string_view rest = text;
      if (name_ == "removeprefix" && rest.starts_with(part)) rest.remove_prefix(part.size());
      if (name_ == "removesuffix" && rest.ends_with(part)) rest.remove_suffix(part.size());
      return String(rest);
    }
    if (name_ == "join") {
      std::string out;
      bool first = true;
      size_t index = 0;
      for (const Value& each : Elements(runtime_, *Given({"iterable"}, 1)[0])) {
        if (!each.is(Type::kString))
          runtime_.Fail(fmt::format("sequence item {}: expected str instance, {} found", index,
                                    TypeName(each)));
        ++index;
        runtime_.Memory(each.text->size() + text.size());
        if (!first) out += text;
        first = false;
        out += *each.text;
      }
      return runtime_.String(std::move(out));
    }
    if (name_ == "find" || name_ == "rfind" || name_ == "index" || name_ == "rindex" ||
        name_ == "count")
      return Search(text);
    if (name_ == "format") return runtime_.String(FormatBraces(runtime_, text, arguments_));
    if (name_ == "center" || name_ == "ljust" || name_ == "rjust" || name_ == "zfill")
      return Pad(text);
    if (name_ == "expandtabs" || name_ == "casefold" || name_ == "encode" ||
        name_ == "format_map" || name_ == "isidentifier" || name_ == "isprintable" ||
        name_ == "maketrans" || name_ == "translate")
      runtime_.Unsupported(fmt::format("the method {} of str", name_));
    Given({});
    if (name_.starts_with("is")) return Value::Bool(IsAll(name_, text));
    if (name_ == "upper") return runtime_.String(Uppercase(text));
    if (name_ == "lower") return runtime_.String(Lowercase(text));
    if (name_ == "title") return runtime_.String(Titlecased(text));
    if (name_ == "capitalize") return runtime_.String(Capitalized(text));
    if (name_ == "swapcase") return runtime_.String(CaseSwapped(text));
    runtime_.Unsupported(fmt::format("the method {} of str", name_));
  }

  // The bytes of text[start:end], and where they begin.
  std::string_view Range(std::string_view text, const Parameters& given, int64_t& start) const {
    const int64_t size = CountCharacters(text);
    const auto end = [&](size_t i, int64_t missing) {
      if (!given[i] || given[i]->none()) return missing;
      const int64_t at = given.Whole(i, missing);
      return at < 0 ? std::max<int64_t>(at + size, 0) : at;
    };
    start = end(1, 0);
    const int64_t stop = std::min(end(2, size), size);
    if (start > stop) return {};
    const auto bytes = [&](int64_t characters) {
      size_t at = 0;
      for (int64_t i = 0; i < characters && at < text.size(); ++i) at += CharacterBytes(text[at]);
      return std::min(at, text.size());
    };
    return text.substr(bytes(start), bytes(stop) - bytes(start));
  }

  Value Affix(std::string_view text) const {
    const Parameters given = Given({"prefix", "start", "end"}, 1);
    int64_t start = 0;
    if (given[1] || given[2]) text = Range(text, given, start);
    const auto matches = [&](const Value& part) {
      if (!part.is(Type::kString))
        runtime_.Fail(fmt::format("{} first arg must be str or a tuple of str, not {}", name_,
                                  TypeName(part)));
      return name_ == "startswith" ? text.starts_with(*part.text) : text.ends_with(*part.text);
    };
    if (!given[0]->is(Type::kTuple)) return Value::Bool(matches(*given[0]));
    const std::vector<Value>& parts = given[0]->list->items;
    return Value::Bool(std::any_of(parts.begin(), parts.end(), matches));
  }

  Value Search(std::string_view whole) const {
    const Parameters given = Given({"sub", "start", "end"}, 1);
    const std::string& part = Required(given[0]);
    int64_t start = 0;
    const bool beyond =
        given[1] && given[1]->integral() && given[1]->whole() > CountCharacters(whole);
    const std::string_view text = Range(whole, given, start);
    runtime_.Work(text.size() / 256 * (1 + part.size() / 256));
    if (name_ == "count") return Value::Int(beyond ? 0 : static_cast<int64_t>(CountOf(text, part)));
    const bool right = name_.starts_with("r");
    const size_t at = beyond ? text.npos : right ? text.rfind(part) : text.find(part);
    if (at != text.npos) return Value::Int(start + CountCharacters(text.substr(0, at)));
    if (name_.ends_with("index")) runtime_.Fail("substring not found");
    return Value::Int(-1);
  }

  Value Pad(const std::string& text) {
    const Parameters given = Given({"width", "fillchar"}, 1);
    const int64_t width = given.Whole(0, 0);
    if (name_ == "zfill") {
      const bool sign = text.starts_with('-') || text.starts_with('+');
      const std::string rest =
          Padded(runtime_, text.substr(sign ? 1 : 0), "0", '>', width - (sign ? 1 : 0));
      return runtime_.String((sign ? text.substr(0, 1) : "") + rest);
    }
    const std::string fill = given[1] ? Required(given[1]) : " ";
    if (CountCharacters(fill) != 1)
      runtime_.Fail("The fill character must be exactly one character long");
    if (name_ != "center")
      return runtime_.String(Padded(runtime_, text, fill, name_ == "ljust" ? '<' : '>', width));
    // str.center puts the odd one to the left of texts of odd widths.
    const int64_t size = CountCharacters(text), missing = width - size;
    if (missing <= 0) return self_;
    const int64_t left = missing / 2 + (missing & width & 1);
    return runtime_.String(
        Padded(runtime_, Padded(runtime_, text, fill, '>', size + left), fill, '<', width));
  }

  Value OfDict() {
    Dict& dict = *self_.dict;
    runtime_.Work(dict.items.size() / 4);
    if (name_ == "items" || name_ == "keys" || name_ == "values") {
      Given({});
      std::vector<Value> values;
      for (const auto& [key, item] : dict.items)
        values.push_back(name_ == "keys"     ? key
                         : name_ == "values" ? item
                                             : runtime_.NewList({key, item}, Type::kTuple));
      return runtime_.NewList(std::move(values), Type::kView,
                              name_ == "keys"     ? "dict_keys"
                              : name_ == "values" ? "dict_values"
                                                  : "dict_items");
    }
    if (name_ == "get") {
      const Parameters given = Given({"key", "default"}, 1);
      const Value* found = Find(runtime_, dict, *given[0]);
      return found ? *found : given[1] ? *given[1] : Value();
    }
    if (name_ == "copy") {
      Given({});
      runtime_.Memory(dict.items.size() * 2 * sizeof(Value));
      const Value made = runtime_.NewDict();
      made.dict->items = dict.items;
      return made;
    }
    // transformers' sandbox refuses the methods that change a value; llama.cpp has them.
    if (name_ == "pop") {
      const Parameters given = Given({"key", "default"}, 1);
      const Value* found = Find(runtime_, dict, *given[0]);
      if (!found && !given[1]) runtime_.Fail(fmt::format("there is no key {}", Repr(*given[0])));
      if (!found) return *given[1];
      const Value value = *found;
      std::erase_if(dict.items, [&](const auto& each) { return &each.second == found; });
      return value;
    }
    if (name_ == "setdefault") {
      const Parameters given = Given({"key", "default"}, 1);
      if (const Value* found = Find(runtime_, dict, *given[0])) return *found;
      const Value value = given[1] ? *given[1] : Value();
      Insert(runtime_, dict, *given[0], value);
      return value;
    }
    if (name_ == "update") {
      for (const Value& other : arguments_.positional) {
        if (!other.is(Type::kDict)) runtime_.Unsupported("update with anything but a dict");
        const std::vector<std::pair<Value, Value>> items = other.dict->items;
        for (const auto& [key, item] : items) Insert(runtime_, dict, key, item);
      }
      for (const auto& [key, item] : arguments_.named) Insert(runtime_, dict, String(key), item);
      return {};
    }
    if (name_ == "clear") {
      Given({});
      dict.items.clear();
      return {};
    }
    runtime_.Unsupported(fmt::format("the method {} of dict", name_));
  }

  std::string Repr(const Value& value) const {
    std::string text;
    AppendRepr(runtime_, value, text);
    return text;
  }

  Value OfList() {
    std::vector<Value>& items = self_.list->items;
    runtime_.Work(items.size() / 4);
    if (name_ == "index") {
      const Parameters given = Given({"value"}, 1);
      for (size_t i = 0; i < items.size(); ++i)
        if (Equal(runtime_, items[i], *given[0])) return Value::Int(static_cast<int64_t>(i));
      runtime_.Fail(fmt::format("{} is not in the list", Repr(*given[0])));
    }
    if (name_ == "count") {
      const Parameters given = Given({"value"}, 1);
      return Value::Int(std::count_if(items.begin(), items.end(), [&](const Value& each) {
        return Equal(runtime_, each, *given[0]);
      }));
    }
    if (name_ == "copy") {
      Given({});
      return runtime_.NewList(items);
    }
    if (name_ == "append") {
      const Value item = *Given({"object"}, 1)[0];
      runtime_.Memory(sizeof(Value));
      items.push_back(item);
      return {};
    }
    if (name_ == "extend") {
      const std::vector<Value> more = Elements(runtime_, *Given({"iterable"}, 1)[0]);
      items.insert(items.end(), more.begin(), more.end());
      return {};
    }
    if (name_ == "insert") {
      const Parameters given = Given({"index", "object"}, 2);
      const int64_t size = std::ssize(items), at = given.Whole(0, 0);
      runtime_.Work(items.size());
      runtime_.Memory(sizeof(Value));
      const Value item = *given[1];
      items.insert(items.begin() + std::clamp<int64_t>(at < 0 ? at + size : at, 0, size), item);
      return {};
    }
    if (name_ == "pop") {
      const Parameters given = Given({"index"});
      const auto at = Position(given.Whole(0, -1), items.size());
      if (!at) runtime_.Fail(items.empty() ? "pop from empty list" : "pop index out of range");
      const Value value = items[*at];
      items.erase(items.begin() + static_cast<ptrdiff_t>(*at));
      return value;
    }
    if (name_ == "reverse") {
      Given({});
      std::reverse(items.begin(), items.end());
      return {};
    }
    if (name_ == "clear") {
      Given({});
      items.clear();
      return {};
    }
    runtime_.Unsupported(fmt::format("the method {} of {}", name_, TypeName(self_)));
  }

  Runtime& runtime_;
  const Value& self_;
  std::string_view name_;
  const Arguments& arguments_;
};

Value Range(Runtime& runtime, const Arguments& arguments) {
  const Parameters given(runtime, "range", arguments, {"start", "stop", "step"}, 1);
  const bool one = !given[1];
  const int64_t start = one ? 0 : given.Whole(0, 0), stop = given.Whole(one ? 0 : 1, 0),
                step = given.Whole(2, 1);
  if (step == 0) runtime.Fail("range() arg 3 must not be zero");
  constexpr int64_t kMost = int64_t{1} << 40;
  for (int64_t each : {start, stop, step})
    if (each > kMost || each < -kMost) runtime.Fail("Range too big");
  const int64_t count =
      step > 0 ? (stop - start + step - 1) / step : (start - stop - step - 1) / -step;
  if (count > kLargestRange)
    runtime.Fail(
        fmt::format("Range too big. The sandbox blocks ranges larger than {}", kLargestRange));
  std::vector<Value> items;
  for (int64_t i = 0; i < count; ++i) items.push_back(Value::Int(start + i * step));
  const Value made = runtime.NewList(std::move(items), Type::kView, "range");
  made.list->printed = given[2] && step != 1 ? fmt::format("range({}, {}, {})", start, stop, step)
                                             : fmt::format("range({}, {})", start, stop);
  return made;
}

Value Filled(Runtime& runtime, const Arguments& arguments, Type type) {
  const Value made = runtime.NewDict(type);
  for (const Value& each : arguments.positional) {
    if (each.is(Type::kDict)) {
      for (const auto& [key, item] : each.dict->items) Insert(runtime, *made.dict, key, item);
      continue;
    }
    for (const Value& pair : Elements(runtime, each)) {
      const std::vector<Value> both = Elements(runtime, pair);
      if (both.size() != 2) runtime.Fail("a dict is made of pairs");
      Insert(runtime, *made.dict, both[0], both[1]);
    }
  }
  for (const auto& [key, item] : arguments.named)
    Insert(runtime, *made.dict, runtime.String(std::string(key)), item);
  return made;
}

Value TimeText(Runtime& runtime, const Arguments& arguments, std::time_t now) {
  const std::string format =
      Parameters(runtime, "strftime_now", arguments, {"format"}, 1).Text(0, "");
  // glibc's widths ("%999999d") are not Python's.
  for (size_t at = 0; (at = format.find('%', at)) != format.npos; at += 2) {
    size_t letter = at + 1;
    if (letter < format.size() && format[letter] == '-') ++letter;
    if (letter >= format.size() ||
        std::string_view("aAbBcdeFfGgHhIjklmMnpPrRsStTuUVwWxXyYzZ%CD").find(format[letter]) ==
            std::string_view::npos ||
        format[letter] == 'f')
      runtime.Unsupported(fmt::format("the time format {}", ReprOfText(format)));
  }
  if (format.empty()) return runtime.String("");
  if (format.size() > 1000) runtime.Fail("the time format is too long");
  std::tm local{};
  localtime_r(&now, &local);
  std::string text(16 * format.size() + 256, '\0');
  text.resize(std::strftime(text.data(), text.size(), format.c_str(), &local));
  return runtime.String(std::move(text));
}

}  // namespace

bool IsGlobal(std::string_view name) {
  constexpr std::string_view kGlobals[] = {"range",        "dict",   "namespace", "raise_exception",
                                           "strftime_now", "lipsum", "cycler",    "joiner"};
  return std::find(std::begin(kGlobals), std::end(kGlobals), name) != std::end(kGlobals);
}

Value CallGlobal(Runtime& runtime, std::string_view name, const Arguments& arguments,
                 std::time_t now) {
  if (name == "range") return Range(runtime, arguments);
  if (name == "dict") return Filled(runtime, arguments, Type::kDict);
  if (name == "namespace") return Filled(runtime, arguments, Type::kNamespace);
  if (name == "strftime_now") return TimeText(runtime, arguments, now);
  if (name == "raise_exception")
    runtime.Fail(
        fmt::format("the chat template rejects the conversation: {}",
                    Parameters(runtime, std::string(name), arguments, {"message"}, 1).Text(0, "")));
  runtime.Unsupported(fmt::format("the function '{}'", name));
}

Value CallMethod(Runtime& runtime, const Value& self, std::string_view name,
                 const Arguments& arguments) {
  const Nested nested(runtime);
  return Method(runtime, self, name, arguments).Call();
}

}  // namespace mlc::text::jinja

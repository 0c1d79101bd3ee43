// Elements, attributes, subscripts and slices of values.
#include <string.h>

#include <algorithm>

#include "lib/text/jinja_value.h"
#include "lib/text/unicode.h"

namespace mlc::text::jinja {

namespace {

// All methods of Python's types: a dictionary's key of such a name is reached by a subscript only.
constexpr std::string_view kStringMethods[] = {
    "capitalize",   "casefold",    "center",    "count",      "encode",       "endswith",
    "expandtabs",   "find",        "format",    "format_map", "index",        "isalnum",
    "isalpha",      "isascii",     "isdecimal", "isdigit",    "isidentifier", "islower",
    "isnumeric",    "isprintable", "isspace",   "istitle",    "isupper",      "join",
    "ljust",        "lower",       "lstrip",    "maketrans",  "partition",    "removeprefix",
    "removesuffix", "replace",     "rfind",     "rindex",     "rjust",        "rpartition",
    "rsplit",       "rstrip",      "split",     "splitlines", "startswith",   "strip",
    "swapcase",     "title",       "translate", "upper",      "zfill"};
constexpr std::string_view kDictMethods[] = {"clear",      "copy",   "fromkeys", "get",
                                             "items",      "keys",   "pop",      "popitem",
                                             "setdefault", "update", "values"};
constexpr std::string_view kListMethods[] = {"append", "clear",   "copy",   "count",
                                             "extend", "index",   "insert", "pop",
                                             "remove", "reverse", "sort"};
constexpr std::string_view kTupleMethods[] = {"count", "index"};
constexpr std::string_view kLoopMethods[] = {"cycle", "changed"};

template <size_t size>
bool Has(const std::string_view (&names)[size], std::string_view name) {
  return std::find(std::begin(names), std::end(names), name) != std::end(names);
}

std::optional<Value> LoopAttribute(Runtime& runtime, const Loop& loop, std::string_view name) {
  const auto index = static_cast<int64_t>(loop.index), size = std::ssize(loop.items);
  if (name == "index") return Value::Int(index + 1);
  if (name == "index0") return Value::Int(index);
  if (name == "revindex") return Value::Int(size - index);
  if (name == "revindex0") return Value::Int(size - index - 1);
  if (name == "first") return Value::Bool(index == 0);
  if (name == "last") return Value::Bool(index + 1 == size);
  if (name == "length") return Value::Int(size);
  if (name == "depth") return Value::Int(static_cast<int64_t>(loop.depth) + 1);
  if (name == "depth0") return Value::Int(static_cast<int64_t>(loop.depth));
  if (name == "previtem")
    return index > 0 ? loop.items[loop.index - 1] : runtime.Undefined("there is no previous item");
  if (name == "nextitem")
    return index + 1 < size ? loop.items[loop.index + 1]
                            : runtime.Undefined("there is no next item");
  return std::nullopt;
}

std::string ObjectName(const Value& value) {
  return value.none() ? "None" : TypeName(value) + " object";
}

void RequireHashable(Runtime& runtime, const Value& key) {
  const Nested nested(runtime);
  if (key.is(Type::kList) || key.is(Type::kDict))
    runtime.Fail(fmt::format("unhashable type: '{}'", TypeName(key)));
  if (key.is(Type::kTuple))
    for (const Value& item : key.list->items) RequireHashable(runtime, item);
}

}  // namespace

int64_t CountCharacters(std::string_view text) {
  return std::count_if(text.begin(), text.end(),
                       [](char c) { return (static_cast<unsigned char>(c) & 0xc0) != 0x80; });
}

std::vector<std::string_view> Characters(std::string_view text) {
  std::vector<std::string_view> characters;
  for (size_t at = 0; at < text.size();) {
    const size_t size = std::min(CharacterBytes(text[at]), text.size() - at);
    characters.push_back(text.substr(at, size));
    at += size;
  }
  return characters;
}

std::optional<size_t> Position(int64_t index, size_t size) {
  if (index < 0) index += static_cast<int64_t>(size);
  if (index < 0 || index >= static_cast<int64_t>(size)) return std::nullopt;
  return static_cast<size_t>(index);
}

int64_t Length(Runtime& runtime, const Value& value) {
  switch (value.type) {
    case Type::kUndefined:
      return 0;
    case Type::kString:
      runtime.Work(value.text->size() / 256);
      return CountCharacters(*value.text);
    case Type::kList:
    case Type::kTuple:
    case Type::kView:
      return std::ssize(value.list->items);
    case Type::kDict:
      return std::ssize(value.dict->items);
    case Type::kLoop:
      return std::ssize(value.loop->items);
    default:
      runtime.Fail(fmt::format("object of type '{}' has no len()", TypeName(value)));
  }
}

std::vector<Value> Elements(Runtime& runtime, const Value& value) {
  std::vector<Value> items;
  switch (value.type) {
    case Type::kUndefined:
      break;
    case Type::kString:
      runtime.Memory(value.text->size() * sizeof(std::string_view));
      for (std::string_view character : Characters(*value.text))
        items.push_back(runtime.String(std::string(character)));
      break;
    case Type::kDict:
      for (const auto& item : value.dict->items) items.push_back(item.first);
      break;
    case Type::kGenerator:
      items.assign(value.list->items.begin() + static_cast<ptrdiff_t>(value.list->next),
                   value.list->items.end());
      value.list->next = value.list->items.size();
      break;
    case Type::kList:
    case Type::kTuple:
    case Type::kView:
      items = value.list->items;
      break;
    default:
      runtime.Fail(fmt::format("'{}' object is not iterable", TypeName(value)));
  }
  runtime.Memory(items.size() * sizeof(Value));
  return items;
}

bool Contains(Runtime& runtime, const Value& container, const Value& item) {
  switch (container.type) {
    case Type::kString: {
      if (!item.is(Type::kString))
        runtime.Fail(
            fmt::format("'in <string>' requires string as left operand, not {}", TypeName(item)));
      runtime.Work(container.text->size() / 64);
      // In linear time, which std::string does not promise.
      return memmem(container.text->data(), container.text->size(), item.text->data(),
                    item.text->size()) != nullptr;
    }
    case Type::kDict:
      RequireHashable(runtime, item);
      return Find(runtime, *container.dict, item);
    case Type::kGenerator: {
      // Python consumes up to the item.
      List& list = *container.list;
      while (list.next < list.items.size())
        if (Equal(runtime, list.items[list.next++], item)) return true;
      return false;
    }
    case Type::kUndefined:
      return false;
    case Type::kList:
    case Type::kTuple:
    case Type::kView:
      for (const Value& each : container.list->items)
        if (Equal(runtime, each, item)) return true;
      return false;
    default:
      runtime.Fail(fmt::format("argument of type '{}' is not iterable", TypeName(container)));
  }
}

const Value* Find(Runtime& runtime, const Dict& dict, const Value& key) {
  runtime.Work(1 + dict.items.size() / 4);
  for (const auto& [name, value] : dict.items) {
    if (key.is(Type::kString)) {
      if (name.is(Type::kString) && *name.text == *key.text) return &value;
    } else if (!name.is(Type::kString) && Equal(runtime, name, key)) {
      return &value;
    }
  }
  return nullptr;
}

const Value* Find(const Dict& dict, std::string_view key) {
  for (const auto& [name, value] : dict.items)
    if (name.is(Type::kString) && *name.text == key) return &value;
  return nullptr;
}

void Insert(Runtime& runtime, Dict& dict, const Value& key, const Value& value) {
  RequireHashable(runtime, key);
  if (const Value* found = Find(runtime, dict, key)) {
    const_cast<Value&>(*found) = value;
    return;
  }
  runtime.Memory(2 * sizeof(Value));
  dict.items.emplace_back(key, value);
}

bool HasMethod(const Value& value, std::string_view name) {
  switch (value.type) {
    case Type::kString:
      return Has(kStringMethods, name);
    case Type::kDict:
      return Has(kDictMethods, name);
    case Type::kList:
      return Has(kListMethods, name);
    case Type::kTuple:
      return Has(kTupleMethods, name);
    case Type::kView:
      return value.list->name == "range" && Has(kTupleMethods, name);
    case Type::kLoop:
      return Has(kLoopMethods, name);
    default:
      return false;
  }
}

Value Attribute(Runtime& runtime, const Value& value, std::string_view name) {
  runtime.Work(1);
  if (value.is(Type::kUndefined)) runtime.Fail(*value.text);
  if (value.is(Type::kLoop))
    if (std::optional<Value> found = LoopAttribute(runtime, *value.loop, name)) return *found;
  if (HasMethod(value, name))
    return runtime.NewFunction({.kind = Function::Kind::kMethod, .name = name, .self = value});
  if (value.is(Type::kDict) || value.is(Type::kNamespace)) {
    runtime.Work(value.dict->items.size() / 4);
    if (const Value* found = Find(*value.dict, name)) return *found;
  }
  if (value.number_like() &&
      (name == "real" || name == "imag" || name == "numerator" || name == "denominator"))
    runtime.Unsupported(fmt::format("the attribute {} of numbers", name));
  return runtime.Undefined(fmt::format("'{}' has no attribute '{}'", ObjectName(value), name));
}

Value Item(Runtime& runtime, const Value& value, const Value& key) {
  runtime.Work(1);
  if (value.is(Type::kUndefined)) runtime.Fail(*value.text);
  if (value.is(Type::kDict)) {
    if (const Value* found = Find(runtime, *value.dict, key)) return *found;
  } else if (key.integral()) {
    if (value.is(Type::kString)) {
      runtime.Work(value.text->size() / 16);
      const int64_t count = CountCharacters(*value.text);
      if (const auto at = Position(key.whole(), static_cast<size_t>(count))) {
        size_t begin = 0;
        for (size_t i = 0; i < *at; ++i) begin += CharacterBytes((*value.text)[begin]);
        return runtime.String(value.text->substr(begin, CharacterBytes((*value.text)[begin])));
      }
    } else if (value.is(Type::kList) || value.is(Type::kTuple) ||
               (value.is(Type::kView) && value.list->name == "range")) {
      if (const auto at = Position(key.whole(), value.list->items.size()))
        return value.list->items[*at];
    }
  }
  if (key.is(Type::kString)) {
    if (value.is(Type::kDict) || value.is(Type::kNamespace) || value.is(Type::kLoop) ||
        HasMethod(value, *key.text))
      if (!value.is(Type::kDict) || HasMethod(value, *key.text))
        return Attribute(runtime, value, *key.text);
    return runtime.Undefined(
        fmt::format("'{}' has no attribute '{}'", ObjectName(value), *key.text));
  }
  std::string index;
  AppendRepr(runtime, key, index);
  return runtime.Undefined(fmt::format("{} has no element {}", ObjectName(value), index));
}

Value Slice(Runtime& runtime, const Value& value, const Value& start, const Value& stop,
            const Value& step) {
  if (value.is(Type::kUndefined)) runtime.Fail(*value.text);
  const bool sequence = value.is(Type::kList) || value.is(Type::kTuple) ||
                        (value.is(Type::kView) && value.list->name == "range");
  if (!value.is(Type::kString) && !sequence)
    runtime.Fail(fmt::format("{} has no slices", ObjectName(value)));
  for (const Value* each : {&start, &stop, &step})
    if (!each->none() && !each->integral())
      runtime.Fail(fmt::format("slice indices must be integers, not {}", TypeName(*each)));
  const int64_t by = step.none() ? 1 : step.whole();
  if (by == 0) runtime.Fail("slice step cannot be zero");
  const int64_t size = Length(runtime, value);
  // The rules of PySlice_AdjustIndices: both ends are clamped to the sequence.
  const auto clamped = [&](const Value& end, int64_t missing) {
    if (end.none()) return missing;
    int64_t at = end.whole();
    if (at < 0)
      at = at < -size ? -1 : at + size;
    else if (at > size)
      at = size;
    if (at < 0) return by < 0 ? int64_t{-1} : int64_t{0};
    return at >= size ? (by < 0 ? size - 1 : size) : at;
  };
  const int64_t from = clamped(start, by < 0 ? size - 1 : 0);
  const int64_t to = clamped(stop, by < 0 ? -1 : size);
  std::vector<size_t> chosen;
  if (by > 0 && from < to)
    chosen.resize(static_cast<size_t>((to - from - 1) / by + 1));
  else if (by < 0 && to < from)
    chosen.resize(static_cast<size_t>((from - to - 1) / (by == INT64_MIN ? INT64_MAX : -by) + 1));
  runtime.Memory(chosen.size() * sizeof(Value));
  for (size_t i = 0; i < chosen.size(); ++i)
    chosen[i] = static_cast<size_t>(from + static_cast<int64_t>(i) * by);
  if (value.is(Type::kString)) {
    runtime.Memory(value.text->size() * sizeof(std::string_view));
    const std::vector<std::string_view> characters = Characters(*value.text);
    std::string text;
    for (size_t i : chosen) text += characters[i];
    return runtime.String(std::move(text));
  }
  std::vector<Value> items;
  for (size_t i : chosen) items.push_back(value.list->items[i]);
  if (value.is(Type::kView)) runtime.Unsupported("a slice of a range");
  return runtime.NewList(std::move(items), value.type);
}

}  // namespace mlc::text::jinja

// lib/text/jinja_value.h - the values of chat templates, with the semantics of Python's: arithmetic,
// comparison, iteration, subscripts and texts.
//
// A Runtime owns all objects of one rendering, so that values are plain copies and lists may
// contain themselves. It also counts the work and the memory, whose limits hold for all values
// together: any function below may throw Error "resource-limit". Python's exceptions are Error
// "chat-template", at the part of the template that is being evaluated.
#pragma once

#include <cstdint>
#include <deque>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lib/support/error.h"

namespace mlc::text::jinja {

struct Node;
struct Value;
struct List;
struct Dict;
struct Function;
struct Loop;
struct Scope;

enum class Type : uint8_t {
  kUndefined,  // a name that is not defined: false, empty, and an error in most operations
  kNone,
  kBool,
  kInt,
  kFloat,
  kString,
  kList,
  kTuple,
  kView,       // an immutable sequence: range, dict.items() ...
  kGenerator,  // values that are consumed by iteration
  kDict,
  kNamespace,
  kLoop,
  kFunction,
};

struct Value {
  Type type = Type::kNone;
  bool safe = false;  // kString: a result of the filters safe and escape, which + does not escape
  union {
    bool boolean;
    int64_t integer;
    double number;
    const std::string* text;  // kString: UTF-8; kUndefined: why it is undefined
    List* list;               // kList, kTuple, kView, kGenerator
    Dict* dict;               // kDict, kNamespace
    Loop* loop;
    Function* function;
  };

  Value() : integer(0) {}
  static Value Bool(bool value);
  static Value Int(int64_t value);
  static Value Float(double value);
  // Refers to a text that outlives the value.
  static Value Of(const std::string& text);
  bool is(Type t) const { return type == t; }
  bool none() const { return type == Type::kNone; }
  bool number_like() const {
    return type == Type::kBool || type == Type::kInt || type == Type::kFloat;
  }
  bool integral() const { return type == Type::kBool || type == Type::kInt; }
  int64_t whole() const { return type == Type::kBool ? int64_t{boolean} : integer; }
  double real() const { return type == Type::kFloat ? number : static_cast<double>(whole()); }
};

struct List {
  std::vector<Value> items;
  std::string_view name = {};  // kView: "dict_items"; kGenerator: "generator"
  std::string printed = {};    // of a range
  size_t next = 0;             // kGenerator: the number of consumed items
};
struct Dict {
  std::vector<std::pair<Value, Value>> items;  // in order of insertion
};
struct Loop {
  std::vector<Value> items;
  size_t index = 0, depth = 0;
  std::optional<std::vector<Value>> changed;  // last arguments of loop.changed
};
struct Scope {
  Scope* outer = nullptr;
  std::vector<std::pair<std::string_view, Value>> names;
};
struct Function {
  enum class Kind { kGlobal, kMethod, kMacro, kCaller } kind;
  std::string_view name;
  Value self = {};              // kMethod
  const Node* macro = nullptr;  // kMacro, kCaller: the definition, and the scope around it
  Scope* scope = nullptr;
};

struct Arguments {
  std::vector<Value> positional;
  std::vector<std::pair<std::string_view, Value>> named;
};

// Limits that no template and conversation of a real model approach.
struct Limits {
  int64_t work = 30'000'000;            // evaluated nodes, visited elements
  int64_t memory = int64_t{512} << 20;  // bytes of all values ever made
  size_t output = size_t{32} << 20;     // bytes of the rendered text
  int depth = 500;                      // nested evaluations; lists in lists
};

class Runtime {
 public:
  Runtime(std::string_view source, const Limits& limits) : source_(source), limits_(limits) {}
  Runtime(const Runtime&) = delete;

  Value String(std::string text);
  Value NewList(std::vector<Value> items, Type type = Type::kList, std::string_view name = {});
  Value NewDict(Type type = Type::kDict);
  Value NewFunction(Function function);
  Value Undefined(std::string why);
  Scope& NewScope(Scope* outer);
  Loop& NewLoop();

  void Work(size_t amount);   // counts work
  void Memory(size_t bytes);  // counts memory, before it is allocated
  // Throws Error "chat-template" at `at`: an exception of Python, or what is not supported.
  [[noreturn]] void Fail(std::string text) const;
  [[noreturn]] void Unsupported(const std::string& what) const;
  const Limits& limits() const { return limits_; }

  size_t at = 0;  // offset in the template, for errors
  int depth = 0;  // of evaluation

 private:
  std::string_view source_;
  Limits limits_;
  int64_t work_ = 0, memory_ = 0;
  std::deque<std::string> texts_;
  std::deque<List> lists_;
  std::deque<Dict> dicts_;
  std::deque<Loop> loops_;
  std::deque<Function> functions_;
  std::deque<Scope> scopes_;
};

// Counts a nested evaluation. Error "resource-limit" if there are too many.
class Nested {
 public:
  explicit Nested(Runtime& runtime);
  ~Nested() { --runtime_.depth; }
  Nested(const Nested&) = delete;

 private:
  Runtime& runtime_;
};

// The way out of what is not supported.
inline constexpr char kElsewhere[] =
    "choose another template with option 'chat-template', or write the prompt in the format of the "
    "model without option 'chat'";
// Throws Error "chat-template" with the line and column of `offset`.
[[noreturn]] void FailAt(std::string_view source, size_t offset, std::string text,
                         std::string help);
Location PlaceOf(std::string_view source, size_t offset);

// The name of the type in Python's messages: "str", "NoneType".
std::string TypeName(const Value& value);
bool Truth(const Value& value);
bool IsSequence(const Value& value);  // a list, tuple or view
// str() and repr(), appended to `out`.
void AppendText(Runtime& runtime, const Value& value, std::string& out);
void AppendRepr(Runtime& runtime, const Value& value, std::string& out);
std::string TextOf(Runtime& runtime, const Value& value);
std::string FloatText(double number);
std::string ReprOfText(std::string_view text);   // with quotes
std::string EscapedText(std::string_view text);  // as in HTML

bool Equal(Runtime& runtime, const Value& a, const Value& b);
// Negative, zero or positive. `symbol` is the operator for the message about unordered types.
int Compare(Runtime& runtime, const Value& a, const Value& b, std::string_view symbol);
bool Contains(Runtime& runtime, const Value& container, const Value& item);
// symbol: + - * / // % **
Value Arithmetic(Runtime& runtime, std::string_view symbol, const Value& a, const Value& b);
Value Negated(Runtime& runtime, const Value& value);

// len(); fails for numbers, none and generators.
int64_t Length(Runtime& runtime, const Value& value);
// The elements: characters of a text, keys of a dictionary. Consumes generators.
std::vector<Value> Elements(Runtime& runtime, const Value& value);
const Value* Find(Runtime& runtime, const Dict& dict, const Value& key);
const Value* Find(const Dict& dict, std::string_view key);
void Insert(Runtime& runtime, Dict& dict, const Value& key, const Value& value);
// value.name and value[key], undefined if there is none; value[start:stop:step].
Value Attribute(Runtime& runtime, const Value& value, std::string_view name);
Value Item(Runtime& runtime, const Value& value, const Value& key);
Value Slice(Runtime& runtime, const Value& value, const Value& start, const Value& stop,
            const Value& step);
// Returns whether values of this type have a method of this name in Python, even if it is not supported.
bool HasMethod(const Value& value, std::string_view name);

Value FromJson(Runtime& runtime, const nlohmann::ordered_json& json);

struct JsonStyle {
  bool ascii = false;
  std::optional<std::string> indent;
  std::string item, key;  // separators: ", " and ": "
  bool sorted = false;
};
// json.dumps.
std::string ToJson(Runtime& runtime, const Value& value, const JsonStyle& style);

// text % value.
std::string Format(Runtime& runtime, std::string_view format, const Value& values);

// A limit of Python's: the position of an index in a sequence, or nothing.
std::optional<size_t> Position(int64_t index, size_t size);
// Characters of UTF-8 text.
int64_t CountCharacters(std::string_view text);
std::vector<std::string_view> Characters(std::string_view text);
// Rejects a number of bytes that would exceed the limits before they are made.
void CheckSize(Runtime& runtime, double bytes);

}  // namespace mlc::text::jinja

// lib/text/jinja_syntax.h - the syntax of chat templates: tokens, and the tree that is evaluated.
//
// The syntax is Jinja2's with the settings of transformers: trim_blocks, lstrip_blocks, the tags
// break, continue and generation. What differs is refused by name.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "lib/text/jinja_value.h"

namespace mlc::text::jinja {

struct Token {
  enum class Kind : uint8_t {
    kText,  // outside of tags
    kVariableBegin,
    kVariableEnd,
    kBlockBegin,
    kBlockEnd,
    kName,
    kString,  // `text` is the value
    kInteger,
    kFloat,
    kOperator,
    kEnd,
  };
  Kind kind;
  std::string text;
  size_t offset;
};
// Newlines become \n, and one at the end is removed. Offsets and positions are those of the result.
std::string NormalizedSource(std::string_view source);
std::vector<Token> Lex(std::string_view source);

using NodePtr = std::unique_ptr<Node>;
using Body = std::vector<NodePtr>;

struct Argument {
  enum class Kind : uint8_t { kPlain, kNamed, kList, kDict } kind = Kind::kPlain;  // kList: *x
  std::string name = {};
  NodePtr value;  // in a parameter: the default, or null
};

struct Node {
  enum class Kind : uint8_t {
    // Expressions. kids:
    kConstant,   // none: `constant`
    kName,       // none
    kTuple,      // elements
    kList,       // elements
    kDict,       // keys and values in turns
    kAttribute,  // the object; `name`
    kItem,       // the object, the key
    kSlice,      // the object, start, stop, step, each of which may be null
    kCall,       // the function; `arguments`
    kFilter,     // the value, null in a block; `name`, `arguments`
    kTest,       // the value; `name`, `arguments`
    kNot,
    kNegative,
    kPositive,
    kAnd,
    kOr,
    kArithmetic,  // two operands; `name` is the operator
    kConcat,      // operands of ~
    kCompare,     // operands; `operators` between them
    kCondition,   // condition, value, other value or null
    // Statements. kids; bodies:
    kText,         // none; `name` is the text
    kOutput,       // the value
    kIf,           // conditions; a body for each, and one for else
    kFor,          // target, values, condition or null; the body, and that of else
    kSet,          // target, value
    kSetBlock,     // target, filters or null; the body
    kMacro,        // none; `name`, `arguments` are parameters; the body
    kCallBlock,    // the call; `arguments` are parameters; the body
    kFilterBlock,  // filters; the body
    kWith,         // targets and values in turns; the body
    kScope,        // none; the body
    kBreak,
    kContinue,
  };
  Kind kind;
  size_t offset;
  int depth = 1;
  std::string name = {};
  std::variant<std::monostate, bool, int64_t, double, std::string> constant = {};
  Body kids = {};
  std::vector<std::string> operators = {};
  std::vector<Argument> arguments = {};
  std::vector<Body> bodies = {};
};

// Throws Error "chat-template" for a syntax error or what is not supported, "resource-limit" for
// deep nesting.
Body Parse(std::string_view source);

}  // namespace mlc::text::jinja

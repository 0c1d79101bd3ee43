// The evaluation of the tree.
#include "lib/text/jinja.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "lib/text/jinja_functions.h"
#include "lib/text/jinja_syntax.h"
#include "lib/text/unicode.h"

namespace mlc::text {

namespace jinja {
namespace {

using Kind = Node::Kind;
constexpr size_t kLongestTemplate = size_t{1} << 20;

class Evaluator {
 public:
  Evaluator(Runtime& runtime, std::time_t now) : runtime_(runtime), now_(now) {}

  enum class Flow { kOn, kBreak, kContinue };

  Flow Execute(const Body& body, Scope& scope, std::string& out) {
    for (const NodePtr& node : body)
      if (const Flow flow = Execute(*node, scope, out); flow != Flow::kOn) return flow;
    return Flow::kOn;
  }

 private:
  // Counts a nested evaluation; errors are at the node.
  class Visit : Nested {
   public:
    Visit(Evaluator& evaluator, const Node& node)
        : Nested((evaluator.runtime_.at = node.offset, evaluator.runtime_)) {}
  };

  // ---- Statements --------------------------------------------------------------------------

  Flow Execute(const Node& node, Scope& scope, std::string& out) {
    const Visit visit(*this, node);
    switch (node.kind) {
      case Kind::kText:
        return Write(node.name, out);
      case Kind::kOutput:
        return Output(*node.kids[0], scope, out);
      case Kind::kIf:
        return If(node, scope, out);
      case Kind::kFor:
        return For(node, scope, out);
      case Kind::kSet:
        Assign(*node.kids[0], Evaluate(*node.kids[1], scope), scope);
        return Flow::kOn;
      case Kind::kSetBlock:
        return SetBlock(node, scope);
      case Kind::kMacro: {
        const Value macro = runtime_.NewFunction(
            {.kind = Function::Kind::kMacro, .name = node.name, .macro = &node, .scope = &scope});
        Define(scope, node.name, macro);
        return Flow::kOn;
      }
      case Kind::kCallBlock:
        return CallBlock(node, scope, out);
      case Kind::kFilterBlock: {
        std::string text;
        const Flow flow = Execute(node.bodies[0], runtime_.NewScope(&scope), text);
        const Value value = Filtered(*node.kids[0], runtime_.String(std::move(text)), scope);
        Write(TextOf(runtime_, value), out);
        return flow;
      }
      case Kind::kWith: {
        Scope& inner = runtime_.NewScope(&scope);
        // The values are those outside of the block.
        for (size_t i = 0; i < node.kids.size(); i += 2)
          Assign(*node.kids[i], Evaluate(*node.kids[i + 1], scope), inner);
        return Execute(node.bodies[0], inner, out);
      }
      case Kind::kScope:
        return Execute(node.bodies[0], runtime_.NewScope(&scope), out);
      case Kind::kBreak:
        return Flow::kBreak;
      case Kind::kContinue:
        return Flow::kContinue;
      default:
        MLC_CHECK(false, "a node that is no statement");
    }
  }

  Flow Write(std::string_view text, std::string& out) {
    if (out.size() + text.size() > runtime_.limits().output)
      throw Error("resource-limit", "the text of the chat template exceeds {} MB",
                  runtime_.limits().output >> 20);
    runtime_.Memory(text.size());
    out += text;
    return Flow::kOn;
  }
  Flow Output(const Node& node, Scope& scope, std::string& out) {
    const Value value = Evaluate(node, scope);
    if (value.is(Type::kString)) return Write(*value.text, out);
    runtime_.at = node.offset;
    return Write(TextOf(runtime_, value), out);
  }

  Flow If(const Node& node, Scope& scope, std::string& out) {
    for (size_t i = 0; i < node.kids.size(); ++i)
      if (Truth(Evaluate(*node.kids[i], scope))) return Execute(node.bodies[i], scope, out);
    return node.bodies.size() > node.kids.size() ? Execute(node.bodies.back(), scope, out)
                                                 : Flow::kOn;
  }

  Flow For(const Node& node, Scope& outer, std::string& out) {
    const Node &target = *node.kids[0], *condition = node.kids[2].get();
    const Value values = Evaluate(*node.kids[1], outer);
    runtime_.at = node.offset;
    std::vector<Value> items = Elements(runtime_, values);
    Scope& scope = runtime_.NewScope(&outer);
    if (condition) {
      std::vector<Value> kept;
      for (const Value& item : items) {
        scope.names.clear();
        Assign(target, item, scope);
        if (Truth(Evaluate(*condition, scope))) kept.push_back(item);
      }
      items = std::move(kept);
    }
    if (items.empty())
      return node.bodies.size() > 1 ? Execute(node.bodies[1], runtime_.NewScope(&outer), out)
                                    : Flow::kOn;
    Loop& loop = runtime_.NewLoop();
    loop.depth = loops_;
    loop.items = std::move(items);
    Value handle;
    handle.type = Type::kLoop;
    handle.loop = &loop;
    const size_t depth = loops_++;
    for (loop.index = 0; loop.index < loop.items.size(); ++loop.index) {
      // Variables that an iteration sets do not exist in the next one.
      scope.names.clear();
      scope.names.emplace_back("loop", handle);
      Assign(target, loop.items[loop.index], scope);
      if (Execute(node.bodies[0], scope, out) == Flow::kBreak) break;
      runtime_.Work(1);
    }
    loops_ = depth;
    return Flow::kOn;
  }

  Flow SetBlock(const Node& node, Scope& scope) {
    std::string text;
    const Flow flow = Execute(node.bodies[0], runtime_.NewScope(&scope), text);
    Value value = runtime_.String(std::move(text));
    if (node.kids[1]) value = Filtered(*node.kids[1], value, scope);
    Assign(*node.kids[0], value, scope);
    return flow;
  }

  Flow CallBlock(const Node& node, Scope& scope, std::string& out) {
    const Node& call = *node.kids[0];
    const Value function = Evaluate(*call.kids[0], scope);
    Arguments arguments = ArgumentsOf(call, scope);
    arguments.named.emplace_back(
        "caller",
        runtime_.NewFunction(
            {.kind = Function::Kind::kCaller, .name = "caller", .macro = &node, .scope = &scope}));
    runtime_.at = call.offset;
    return Write(TextOf(runtime_, Call(function, std::move(arguments))), out);
  }

  void Define(Scope& scope, std::string_view name, const Value& value) {
    runtime_.Work(1 + scope.names.size() / 8);
    for (auto& [known, held] : scope.names)
      if (known == name) {
        held = value;
        return;
      }
    runtime_.Memory(sizeof(Value) * 2);
    scope.names.emplace_back(name, value);
  }

  void Assign(const Node& target, const Value& value, Scope& scope) {
    const Visit visit(*this, target);
    if (target.kind == Kind::kName) return Define(scope, target.name, value);
    if (target.kind == Kind::kAttribute) {
      const Value object = Evaluate(*target.kids[0], scope);
      runtime_.at = target.offset;
      if (!object.is(Type::kNamespace))
        runtime_.Fail("cannot assign attribute on non-namespace object");
      Insert(runtime_, *object.dict, Value::Of(target.name), value);
      return;
    }
    const std::vector<Value> parts = Elements(runtime_, value);
    if (parts.size() < target.kids.size())
      runtime_.Fail(fmt::format("not enough values to unpack (expected {}, got {})",
                                target.kids.size(), parts.size()));
    if (parts.size() > target.kids.size())
      runtime_.Fail(fmt::format("too many values to unpack (expected {})", target.kids.size()));
    for (size_t i = 0; i < parts.size(); ++i) Assign(*target.kids[i], parts[i], scope);
  }

  // ---- Expressions -------------------------------------------------------------------------

  Value Evaluate(const Node& node, Scope& scope) {
    const Visit visit(*this, node);
    switch (node.kind) {
      case Kind::kConstant:
        return Constant(node);
      case Kind::kName:
        return Lookup(node.name, scope);
      case Kind::kTuple:
        return Several(node, scope, Type::kTuple);
      case Kind::kList:
        return Several(node, scope, Type::kList);
      case Kind::kDict:
        return DictOf(node, scope);
      case Kind::kAttribute: {
        const Value object = Evaluate(*node.kids[0], scope);
        runtime_.at = node.offset;
        return Attribute(runtime_, object, node.name);
      }
      case Kind::kItem: {
        const Value object = Evaluate(*node.kids[0], scope), key = Evaluate(*node.kids[1], scope);
        runtime_.at = node.offset;
        return Item(runtime_, object, key);
      }
      case Kind::kSlice:
        return SliceOf(node, scope);
      case Kind::kCall:
        return CallOf(node, scope);
      case Kind::kFilter:
        return Filtered(node, {}, scope);
      case Kind::kTest:
        return TestOf(node, scope);
      case Kind::kNot:
        return Value::Bool(!Truth(Evaluate(*node.kids[0], scope)));
      case Kind::kNegative:
      case Kind::kPositive:
        return Signed(node, scope);
      case Kind::kAnd:
      case Kind::kOr: {
        const Value left = Evaluate(*node.kids[0], scope);
        return Truth(left) == (node.kind == Kind::kOr) ? left : Evaluate(*node.kids[1], scope);
      }
      case Kind::kArithmetic: {
        const Value left = Evaluate(*node.kids[0], scope), right = Evaluate(*node.kids[1], scope);
        runtime_.at = node.offset;
        return Arithmetic(runtime_, node.name, left, right);
      }
      case Kind::kConcat:
        return Concat(node, scope);
      case Kind::kCompare:
        return CompareOf(node, scope);
      case Kind::kCondition:
        if (Truth(Evaluate(*node.kids[0], scope))) return Evaluate(*node.kids[1], scope);
        if (node.kids[2]) return Evaluate(*node.kids[2], scope);
        return runtime_.Undefined(
            "the inline if-expression evaluated to false and no else section was defined.");
      default:
        MLC_CHECK(false, "a node that is no expression");
    }
  }

  static Value Constant(const Node& node) {
    if (const auto* text = std::get_if<std::string>(&node.constant)) return Value::Of(*text);
    if (const auto* flag = std::get_if<bool>(&node.constant)) return Value::Bool(*flag);
    if (const auto* whole = std::get_if<int64_t>(&node.constant)) return Value::Int(*whole);
    if (const auto* real = std::get_if<double>(&node.constant)) return Value::Float(*real);
    return {};
  }

  Value Lookup(std::string_view name, const Scope& innermost) {
    for (const Scope* scope = &innermost; scope; scope = scope->outer) {
      runtime_.Work(1 + scope->names.size() / 8);
      for (const auto& [known, value] : scope->names)
        if (known == name) return value;
    }
    if (IsGlobal(name))
      return runtime_.NewFunction({.kind = Function::Kind::kGlobal, .name = name});
    return runtime_.Undefined(fmt::format("'{}' is undefined", name));
  }

  Value Several(const Node& node, Scope& scope, Type type) {
    std::vector<Value> items;
    for (const NodePtr& kid : node.kids) items.push_back(Evaluate(*kid, scope));
    return runtime_.NewList(std::move(items), type);
  }
  Value DictOf(const Node& node, Scope& scope) {
    const Value made = runtime_.NewDict();
    for (size_t i = 0; i < node.kids.size(); i += 2) {
      const Value key = Evaluate(*node.kids[i], scope);
      const Value value = Evaluate(*node.kids[i + 1], scope);
      Insert(runtime_, *made.dict, key, value);
    }
    return made;
  }
  Value SliceOf(const Node& node, Scope& scope) {
    const Value object = Evaluate(*node.kids[0], scope);
    Value ends[3];
    for (size_t i = 0; i < 3; ++i)
      if (node.kids[i + 1]) ends[i] = Evaluate(*node.kids[i + 1], scope);
    runtime_.at = node.offset;
    return Slice(runtime_, object, ends[0], ends[1], ends[2]);
  }
  Value Signed(const Node& node, Scope& scope) {
    const Value value = Evaluate(*node.kids[0], scope);
    runtime_.at = node.offset;
    if (node.kind == Kind::kNegative) return Negated(runtime_, value);
    if (!value.number_like())
      runtime_.Fail(fmt::format("bad operand type for unary +: '{}'", TypeName(value)));
    return value.is(Type::kBool) ? Value::Int(value.whole()) : value;
  }
  Value Concat(const Node& node, Scope& scope) {
    std::string text;
    for (const NodePtr& kid : node.kids) {
      const Value value = Evaluate(*kid, scope);
      if (value.is(Type::kString)) runtime_.Memory(value.text->size());
      AppendText(runtime_, value, text);
    }
    return runtime_.String(std::move(text));
  }
  Value CompareOf(const Node& node, Scope& scope) {
    Value left = Evaluate(*node.kids[0], scope);
    for (size_t i = 0; i < node.operators.size(); ++i) {
      const Value right = Evaluate(*node.kids[i + 1], scope);
      runtime_.at = node.offset;
      const std::string& symbol = node.operators[i];
      bool holds;
      if (symbol == "==" || symbol == "!=") {
        holds = Equal(runtime_, left, right) == (symbol == "==");
      } else if (symbol == "in" || symbol == "not in") {
        holds = Contains(runtime_, right, left) == (symbol == "in");
      } else {
        const int order = Compare(runtime_, left, right, symbol);
        holds = symbol == "<"    ? order < 0
                : symbol == "<=" ? order <= 0
                : symbol == ">"  ? order > 0
                                 : order >= 0;
      }
      if (!holds) return Value::Bool(false);
      left = right;
    }
    return Value::Bool(true);
  }
  Value TestOf(const Node& node, Scope& scope) {
    const Value value = Evaluate(*node.kids[0], scope);
    const Arguments arguments = ArgumentsOf(node, scope);
    runtime_.at = node.offset;
    return Value::Bool(ApplyTest(runtime_, node.name, value, arguments));
  }
  // The first filter of a chain without a value is applied to `block`.
  Value Filtered(const Node& node, const Value& block, Scope& scope) {
    const Visit visit(*this, node);
    const Node* inner = node.kids[0].get();
    const Value value = !inner                         ? block
                        : inner->kind == Kind::kFilter ? Filtered(*inner, block, scope)
                                                       : Evaluate(*inner, scope);
    const Arguments arguments = ArgumentsOf(node, scope);
    runtime_.at = node.offset;
    return ApplyFilter(runtime_, node.name, value, arguments);
  }

  // ---- Calls -------------------------------------------------------------------------------

  Arguments ArgumentsOf(const Node& node, Scope& scope) {
    Arguments arguments;
    for (const Argument& argument : node.arguments) {
      const Value value = Evaluate(*argument.value, scope);
      switch (argument.kind) {
        case Argument::Kind::kPlain:
          arguments.positional.push_back(value);
          break;
        case Argument::Kind::kNamed:
          arguments.named.emplace_back(argument.name, value);
          break;
        case Argument::Kind::kList:
          for (const Value& each : Elements(runtime_, value)) arguments.positional.push_back(each);
          break;
        case Argument::Kind::kDict:
          if (!value.is(Type::kDict)) runtime_.Fail("argument after ** must be a mapping");
          for (const auto& [key, each] : value.dict->items) {
            if (!key.is(Type::kString)) runtime_.Fail("keywords must be strings");
            runtime_.Memory(sizeof(Value) * 2);
            arguments.named.emplace_back(*key.text, each);
          }
          break;
      }
    }
    return arguments;
  }

  Value CallOf(const Node& node, Scope& scope) {
    const Value function = Evaluate(*node.kids[0], scope);
    Arguments arguments = ArgumentsOf(node, scope);
    runtime_.at = node.offset;
    return Call(function, std::move(arguments));
  }

  Value Call(const Value& callee, Arguments arguments) {
    if (callee.is(Type::kUndefined)) runtime_.Fail(*callee.text);
    if (!callee.is(Type::kFunction))
      runtime_.Fail(fmt::format("'{}' object is not callable", TypeName(callee)));
    const Function& function = *callee.function;
    switch (function.kind) {
      case Function::Kind::kGlobal:
        return CallGlobal(runtime_, function.name, arguments, now_);
      case Function::Kind::kMethod:
        return function.self.is(Type::kLoop)
                   ? LoopMethod(*function.self.loop, function.name, arguments)
                   : CallMethod(runtime_, function.self, function.name, arguments);
      default:
        return CallMacro(function, std::move(arguments));
    }
  }

  Value LoopMethod(Loop& loop, std::string_view name, const Arguments& arguments) {
    if (name == "cycle") {
      if (arguments.positional.empty()) runtime_.Fail("no items for cycling given");
      return arguments.positional[loop.index % arguments.positional.size()];
    }
    const bool same =
        loop.changed && loop.changed->size() == arguments.positional.size() &&
        std::equal(loop.changed->begin(), loop.changed->end(), arguments.positional.begin(),
                   [&](const Value& a, const Value& b) { return Equal(runtime_, a, b); });
    loop.changed = arguments.positional;
    return Value::Bool(!same);
  }

  Value CallMacro(const Function& function, Arguments arguments) {
    const Node& macro = *function.macro;
    const Nested nested(runtime_);
    Scope& scope = runtime_.NewScope(function.scope);
    const std::vector<Argument>& parameters = macro.arguments;
    std::vector<Value> further;
    for (size_t i = 0; i < arguments.positional.size(); ++i) {
      if (i < parameters.size())
        Define(scope, parameters[i].name, arguments.positional[i]);
      else
        further.push_back(arguments.positional[i]);
    }
    const Value named = runtime_.NewDict();
    const size_t given = std::min(arguments.positional.size(), parameters.size());
    for (const auto& [name, value] : arguments.named) {
      const auto found = std::find_if(parameters.begin(), parameters.end(),
                                      [&](const Argument& each) { return each.name == name; });
      if (found == parameters.end()) {
        if (name == "caller")
          Define(scope, "caller", value);
        else
          Insert(runtime_, *named.dict, runtime_.String(std::string(name)), value);
        continue;
      }
      if (static_cast<size_t>(found - parameters.begin()) < given)
        runtime_.Fail(
            fmt::format("macro '{}' has two values for the parameter '{}'", macro.name, name));
      Define(scope, found->name, value);
    }
    const bool varargs = Uses(macro, "varargs"), kwargs = Uses(macro, "kwargs");
    if (!further.empty() && !varargs)
      runtime_.Fail(fmt::format("macro '{}' takes not more than {} argument(s)", macro.name,
                                parameters.size()));
    if (!named.dict->items.empty() && !kwargs)
      runtime_.Fail(fmt::format("macro '{}' takes no keyword argument '{}'", macro.name,
                                *named.dict->items[0].first.text));
    if (varargs) Define(scope, "varargs", runtime_.NewList(std::move(further), Type::kTuple));
    if (kwargs) Define(scope, "kwargs", named);
    for (const Argument& parameter : parameters) {
      const bool known = std::any_of(scope.names.begin(), scope.names.end(), [&](const auto& each) {
        return each.first == parameter.name;
      });
      if (known) continue;
      Define(scope, parameter.name,
             parameter.value ? Evaluate(*parameter.value, scope)
                             : runtime_.Undefined(
                                   fmt::format("parameter '{}' was not provided", parameter.name)));
    }
    const size_t loops = std::exchange(loops_, 0);
    std::string text;
    Execute(macro.bodies[0], scope, text);
    loops_ = loops;
    return runtime_.String(std::move(text));
  }

  // Returns whether a macro uses a name. The search counts as work.
  bool Uses(const Node& node, std::string_view name) {
    runtime_.Work(1);
    if (node.kind == Kind::kName && node.name == name) return true;
    const auto uses = [&](const NodePtr& kid) { return kid && Uses(*kid, name); };
    if (std::any_of(node.kids.begin(), node.kids.end(), uses)) return true;
    for (const Argument& argument : node.arguments)
      if (uses(argument.value)) return true;
    return std::any_of(node.bodies.begin(), node.bodies.end(), [&](const Body& body) {
      return std::any_of(body.begin(), body.end(), uses);
    });
  }

  Runtime& runtime_;
  std::time_t now_;
  size_t loops_ = 0;  // loops around
};

}  // namespace
}  // namespace jinja

struct JinjaTemplate::State {
  std::string source;
  jinja::Body body;
};

JinjaTemplate::JinjaTemplate(std::string_view source) {
  if (source.size() > jinja::kLongestTemplate)
    throw Error("resource-limit", "the chat template has {} bytes, more than {}", source.size(),
                jinja::kLongestTemplate);
  auto state = std::make_unique<State>();
  state->source = jinja::NormalizedSource(ValidUtf8(source));
  state->body = jinja::Parse(state->source);
  state_ = std::move(state);
}
JinjaTemplate::~JinjaTemplate() = default;
JinjaTemplate::JinjaTemplate(JinjaTemplate&&) noexcept = default;
JinjaTemplate& JinjaTemplate::operator=(JinjaTemplate&&) noexcept = default;

std::string JinjaTemplate::Render(const nlohmann::ordered_json& variables, std::time_t now) const {
  jinja::Runtime runtime(state_->source, jinja::Limits());
  jinja::Scope& scope = runtime.NewScope(nullptr);
  for (const auto& [name, value] : variables.items())
    scope.names.emplace_back(name, jinja::FromJson(runtime, value));
  std::string out;
  jinja::Evaluator(runtime, now).Execute(state_->body, runtime.NewScope(&scope), out);
  return out;
}

}  // namespace mlc::text

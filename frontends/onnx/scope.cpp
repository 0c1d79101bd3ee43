#include "frontends/onnx/scope.h"

#include <algorithm>
#include <charconv>

#include "frontends/onnx/row.h"
#include "lib/support/memory_limits.h"
#include "lib/support/work_scope.h"

namespace mlc::onnx {

namespace {

// Nested function calls can expand exponentially.
constexpr size_t kMaxNodes = 100'000;
constexpr int kMaxDepth = 64;

std::vector<std::string> Split(const std::string& text, char separator) {
  std::vector<std::string> parts;
  for (size_t begin = 0; begin <= text.size();) {
    size_t end = std::min(text.find(separator, begin), text.size());
    parts.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return parts;
}

template <class T>
bool ParseAll(const std::vector<std::string>& parts, std::vector<T>& values) {
  values.clear();
  for (const std::string& part : parts) {
    T value{};
    auto [end, failure] = std::from_chars(part.data(), part.data() + part.size(), value);
    if (failure != std::errc() || end != part.data() + part.size()) return false;
    values.push_back(value);
  }
  return true;
}

// Parses the value of --replace as integers, else floats, else text, and converts it to the type of
// the existing attribute.
Attribute ParseAttribute(const std::string& name, const std::string& text, Attribute::Kind old) {
  using Kind = Attribute::Kind;
  Attribute attribute;
  attribute.name = name;
  std::vector<std::string> parts = Split(text, ',');
  bool list =
      parts.size() > 1 || old == Kind::kFloats || old == Kind::kInts || old == Kind::kStrings;
  bool is_float = old == Kind::kFloat || old == Kind::kFloats;
  bool is_string = old == Kind::kString || old == Kind::kStrings;
  if (!is_float && !is_string && ParseAll(parts, attribute.ints)) {
    attribute.kind = list ? Kind::kInts : Kind::kInt;
  } else if (!is_string && ParseAll(parts, attribute.floats)) {
    attribute.kind = list ? Kind::kFloats : Kind::kFloat;
  } else {
    attribute.strings = parts;
    attribute.kind = list ? Kind::kStrings : Kind::kString;
  }
  return attribute;
}

// Copies a node of a function body, with attribute references replaced by the call's attributes and
// without inputs that the call omits.
NodeDef Substitute(const NodeDef& node,
                   const std::unordered_map<std::string, const Attribute*>& actual,
                   const std::unordered_set<std::string>& absent) {
  NodeDef copy = node;
  copy.attributes.clear();
  for (std::string& input : copy.inputs)
    if (absent.contains(input)) input.clear();
  for (const Attribute& attribute : node.attributes) {
    if (!attribute.reference.empty()) {
      auto it = actual.find(attribute.reference);
      if (it == actual.end()) continue;  // uses the operator's default
      copy.attributes.push_back(*it->second);
      copy.attributes.back().name = attribute.name;
      continue;
    }
    Attribute& added = copy.attributes.emplace_back(attribute);
    for (std::shared_ptr<const Graph>& graph : added.graphs) {
      auto inner = std::make_shared<Graph>(*graph);
      for (NodeDef& nested : inner->nodes) nested = Substitute(nested, actual, absent);
      graph = std::move(inner);
    }
  }
  return copy;
}

std::string FullName(const NodeDef& def) {
  return def.domain.empty() ? def.op : def.domain + "::" + def.op;
}

std::vector<Bound> Same(Node& node, std::string_view same) {
  // "add(x, y)"
  size_t open = same.find('(');
  std::string_view params = same.substr(open + 1, same.size() - open - 2);
  Builder::Args args;
  for (int i = 0; !params.empty(); ++i) {
    size_t end = std::min(params.find(", "), params.size());
    args.emplace_back(params.substr(0, end), node.In(i));
    params.remove_prefix(std::min(end + 2, params.size()));
  }
  if (node.inputs() > static_cast<int>(args.size()))
    node.Fail("bad-graph", "the node has {} inputs, expected {}", node.inputs(), args.size());
  node.Set(node.Make(same.substr(0, open), std::move(args)));
  return node.results();
}

}  // namespace

const Tensor& ImportState::Get(const Constant& constant) {
  if (constant.error && !trial && !said.insert(constant.error.get()).second) throw Skipped();
  return constant.Get();
}

void Scope::Declare(const Constant& constant) { constants_.emplace(constant.name, &constant); }

void Scope::Bind(const std::string& name, Bound bound) {
  if (name.empty()) return;
  if (constants_.contains(name) || !bound_.emplace(name, bound).second)
    throw Error("bad-graph", "duplicate value name \"{}\"", name);
}

Bound Scope::Find(const std::string& name) {
  if (auto it = bound_.find(name); it != bound_.end()) {
    if (it->second.failed()) throw Skipped();
    return it->second;
  }
  if (auto it = constants_.find(name); it != constants_.end()) {
    const Constant* constant = it->second;
    Value* value = builder_.Const(import_.Get(*constant), name);
    import_.named.insert(value);
    constants_.erase(it);
    return bound_[name] = Bound{value, constant->tensor.dtype()};
  }
  if (outer_) return outer_->Find(name);
  throw Error("bad-graph", "\"{}\" is neither an input, an initializer nor the output of a node",
              name);
}

int Scope::OpsetOf(const std::string& domain) const {
  auto it = opsets_.find(domain);
  return it == opsets_.end() ? 1 : static_cast<int>(std::clamp<int64_t>(it->second, 0, 1 << 20));
}

void Scope::Report(Error error, const NodeDef& def, int opset) {
  if (import_.trial) return;
  std::string full_name = FullName(def);
  if (!error.text().starts_with(full_name)) {  // thrown below the handler
    Error named(error.id(), full_name + ": " + error.text());
    for (const std::string& note : error.notes()) named.Note(note);
    named.At(error.location());
    error = std::move(named);
  }
  NodeDef shown = def;
  if (!shown.name.empty()) shown.name = prefix_ + shown.name;
  error.At({import_.file, fmt::format("{}, opset {}", Describe(shown), opset)});
  import_.diagnostics.Add(std::move(error));
}

void Scope::Lower(const std::vector<NodeDef>& nodes, const std::vector<std::string>& wanted) {
  NodeOrder order = OrderNodes(nodes, wanted);
  used_ = std::move(order.used);
  for (size_t index : order.nodes) {
    ThrowIfCancelled();
    LowerNode(nodes[index]);
  }
}

NodeDef Scope::WithReplacements(const NodeDef& def) {
  NodeDef copy = def;
  for (size_t i = 0; i < import_.options.replacements.size(); ++i) {
    const ImportOptions::Replacement& replacement = import_.options.replacements[i];
    if (replacement.op != def.op) continue;
    import_.replaced[i] = true;
    auto old = std::ranges::find_if(
        copy.attributes, [&](const Attribute& a) { return a.name == replacement.attribute; });
    Attribute::Kind kind = old == copy.attributes.end() ? Attribute::Kind::kNone : old->kind;
    if (old != copy.attributes.end()) copy.attributes.erase(old);
    copy.attributes.push_back(ParseAttribute(replacement.attribute, replacement.value, kind));
  }
  return copy;
}

void Scope::LowerNode(const NodeDef& def) {
  ++import_.lowered;
  if (import_.lowered > kMaxNodes + 1) {  // already reported
    for (const std::string& output : def.outputs) Bind(output, Bound());
    return;
  }
  if (import_.lowered > kMaxNodes)
    throw Error("resource-limit", "functions and subgraphs expand to more than {} nodes",
                kMaxNodes);
  int opset = OpsetOf(def.domain);
  std::vector<Bound> results;
  try {
    auto function = std::ranges::find_if(import_.model.functions, [&](const FunctionDef& f) {
      return f.name == def.op && f.domain == def.domain && f.overload == def.overload;
    });
    if (function != import_.model.functions.end())
      results = Call(*function, def);
    else if (import_.options.replacements.empty())
      results = Handle(def, opset);
    else
      results = Handle(WithReplacements(def), opset);
  } catch (const Skipped&) {
    results.clear();
  } catch (Error& error) {
    results.clear();
    Report(std::move(error), def, opset);
  } catch (const std::bad_alloc&) {
    results.clear();
    Report(OutOfMemory("out of memory"), def, opset);
  }
  for (size_t i = 0; i < def.outputs.size(); ++i)
    Bind(def.outputs[i], i < results.size() ? results[i] : Bound());
}

std::vector<Bound> Scope::Invoke(const NodeDef& def, const NodeRow& row, int opset) {
  Node node(def, *this, builder_, opset);
  if (row.handler)
    row.handler(node);
  else
    Same(node, row.same);
  for (const std::string& attribute : node.UnreadAttributes())
    node.Unsupported(attribute, "attribute \"{}\" is not supported", attribute);
  for (int i = 0; i < node.outputs(); ++i)
    if (node.HasOutput(i) && node.results()[i].failed())
      node.Fail("unsupported-operator", "output {} (\"{}\") is not supported", i, def.outputs[i]);
  return node.results();
}

Value* Scope::Apply(NodeDef def, int opset, const std::vector<Bound>& inputs) {
  const NodeRow* row = FindRow("", def.op, opset);
  MLC_CHECK(row && (row->handler || !row->same.empty()), "no row for {} in opset {}", def.op,
            opset);
  Opsets opsets = {{"", opset}};
  Scope scope(import_, nullptr, builder_, opsets, prefix_, depth_);
  for (size_t i = 0; i < inputs.size(); ++i) {
    def.inputs.push_back(inputs[i].failed() ? "" : std::to_string(i));
    scope.Bind(def.inputs.back(), inputs[i]);
  }
  scope.used_.insert(def.outputs.begin(), def.outputs.end());
  return scope.Invoke(def, *row, opset).at(0).value;
}

std::vector<Bound> Scope::Handle(const NodeDef& def, int opset) {
  const NodeRow* row = FindRow(def.domain, def.op, opset);
  if (!row) {
    std::string text = fmt::format("{}: operator not supported", FullName(def));
    for (const NodeRow* other : AllRows())
      if (other->domain == def.domain && other->name == def.op) {
        text = fmt::format("{}: operator not supported in opset {}", FullName(def), opset);
        break;
      }
    throw Error("unsupported-operator", text)
        .Help("`mlc ops option 'frontend' onnx` lists the supported operators");
  }

  if (!row->handler && row->same.empty())
    throw Error("unsupported-operator", "{}: {}", FullName(def), row->condition);

  // Looks up all inputs first. If an earlier error caused one to be skipped, the handler still
  // runs, so that it reports which inputs must be constant.
  for (const std::string& input : def.inputs) {
    try {
      if (!input.empty()) Find(input);
    } catch (const Skipped&) {
    }
  }

  Function& function = *builder_.block().function;
  auto first_output = std::ranges::find_if(def.outputs, [](const auto& n) { return !n.empty(); });
  builder_.SetName(first_output == def.outputs.end() ? def.op : *first_output);
  builder_.SetLocation(std::make_shared<Location>(Location{import_.file, Describe(def)}));
  size_t before = builder_.block().operations().size();

  std::vector<Bound> results = Invoke(def, *row, opset);

  // Results take the names of the ONNX values. An intermediate value that already has such a name
  // is renamed.
  std::unordered_map<std::string, Value*> made;  // by name, filled on first use
  auto rename = [&](Value* value, const std::string& name) {
    if (auto it = made.find(value->name); it != made.end() && it->second == value) made.erase(it);
    function.Rename(value, name);
    made[value->name] = value;
  };
  for (size_t i = 0; i < results.size(); ++i) {
    Value* value = results[i].value;
    if (!value || !import_.named.insert(value).second || !value->def) continue;
    std::string name = LegalName(def.outputs[i].empty() ? def.op : def.outputs[i]);
    if (value->name == name) continue;
    if (made.empty()) {
      const Block::Operations& operations = builder_.block().operations();
      auto it = operations.rbegin();
      for (size_t left = operations.size() - std::min(before, operations.size()); left > 0;
           --left, ++it)
        for (std::unique_ptr<Value>& result : (*it)->results) made[result->name] = result.get();
    }
    if (auto it = made.find(name); it != made.end() && !import_.named.contains(it->second))
      rename(it->second, name + "_1");
    rename(value, name);
  }
  return results;
}

std::vector<Bound> Scope::Call(const FunctionDef& function, const NodeDef& call) {
  if (depth_ >= kMaxDepth)
    throw Error("resource-limit", "{}: function calls are nested more than {} levels deep",
                FullName(call), kMaxDepth);
  if (call.inputs.size() > function.inputs.size())
    throw Error("bad-graph", "{}: the node has {} inputs, but the function takes {}",
                FullName(call), call.inputs.size(), function.inputs.size());
  Scope scope(import_, nullptr, builder_, function.opsets,
              prefix_ + (call.name.empty() ? call.op : call.name) + "/", depth_ + 1);
  for (size_t i = 0; i < call.inputs.size(); ++i)
    if (!call.inputs[i].empty()) scope.Bind(function.inputs[i], Find(call.inputs[i]));
  std::unordered_map<std::string, const Attribute*> actual;
  for (const Attribute& attribute : function.defaults) actual[attribute.name] = &attribute;
  for (const Attribute& attribute : call.attributes) {
    if (std::ranges::find(function.attributes, attribute.name) == function.attributes.end() &&
        !actual.contains(attribute.name))
      throw Error("unsupported-attribute", "{}: the function has no attribute \"{}\"",
                  FullName(call), attribute.name);
    actual[attribute.name] = &attribute;
  }
  std::vector<NodeDef> nodes;
  std::unordered_set<std::string> absent(function.inputs.begin(), function.inputs.end());
  for (size_t i = 0; i < call.inputs.size(); ++i)
    if (!call.inputs[i].empty()) absent.erase(function.inputs[i]);
  for (const NodeDef& node : function.nodes) nodes.push_back(Substitute(node, actual, absent));
  std::vector<std::string> wanted;
  for (size_t i = 0; i < function.outputs.size() && i < call.outputs.size(); ++i)
    if (!call.outputs[i].empty()) wanted.push_back(function.outputs[i]);
  scope.Lower(nodes, wanted);
  std::vector<Bound> results(call.outputs.size());
  for (size_t i = 0; i < function.outputs.size() && i < call.outputs.size(); ++i)
    if (!call.outputs[i].empty()) results[i] = scope.Find(function.outputs[i]);
  return results;
}

std::vector<Bound> Scope::Inline(const Graph& graph, const std::vector<Bound>& inputs,
                                 Builder& into) {
  if (depth_ >= kMaxDepth)
    throw Error("resource-limit", "subgraphs are nested more than {} levels deep", kMaxDepth);
  if (inputs.size() != graph.inputs.size())
    throw Error("bad-graph", "a subgraph has {} inputs, expected {}", graph.inputs.size(),
                inputs.size());
  Scope scope(import_, this, into, opsets_, prefix_, depth_ + 1);
  for (const Constant& constant : graph.initializers) scope.Declare(constant);
  for (size_t i = 0; i < inputs.size(); ++i) scope.Bind(graph.inputs[i].name, inputs[i]);
  std::vector<std::string> wanted;
  for (const ValueInfo& output : graph.outputs) wanted.push_back(output.name);
  std::string name = into.name();
  std::shared_ptr<const Location> location = into.location();
  scope.Lower(graph.nodes, wanted);
  into.SetName(name);
  into.SetLocation(location);
  std::vector<Bound> results;
  for (const std::string& name : wanted) results.push_back(scope.Find(name));
  return results;
}

}  // namespace mlc::onnx

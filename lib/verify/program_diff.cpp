#include "lib/verify/program_diff.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <map>
#include <set>
#include <unordered_map>

#include "lib/ir/port_index.h"

namespace mlc::verify {

namespace {

constexpr int64_t kLeastWeight = 10;  // elements
constexpr int kRadius = 8;            // widest neighbourhood, in steps

using Hash = uint64_t;

Hash Mix(Hash a, Hash b) {
  // The finalizer of SplitMix64 (Steele, Lea, Flood: Fast splittable pseudorandom number
  // generators).
  uint64_t x = a * 0x9E3779B97F4A7C15u + b;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
  return x ^ (x >> 31);
}
Hash HashOf(std::string_view text) { return std::hash<std::string_view>()(text); }

bool IsWeight(const Tensor& tensor) {
  return tensor.dtype() != DType::kString && tensor.size() >= kLeastWeight;
}

std::string Text(const Tensor& tensor) {
  if (!tensor) return "nothing";
  if (tensor.dtype() == DType::kString)
    return tensor.size() == 1 ? "\"" + tensor.strings()[0] + "\""
                              : fmt::format("{} strings", tensor.size());
  if (IsWeight(tensor))
    return fmt::format("{} [{}]", Name(tensor.dtype()), fmt::join(tensor.dims(), ", "));
  std::string elements;
  for (int64_t i = 0; i < tensor.size(); ++i)
    elements += fmt::format("{}{}", i ? ", " : "", tensor.Double(i));
  return tensor.rank() == 0 ? elements : "[" + elements + "]";
}

bool IsStrings(const Tensor& tensor) {
  return tensor && tensor.dtype() == DType::kString && tensor.rank() > 0;
}

// Compares lists of strings, such as the labels of a classifier, element by element: "classes[3]:
// "a" -> "b"".
void CompareStrings(const std::string& name, const std::vector<std::string>& a,
                    const std::vector<std::string>& b, std::vector<std::string>& changes) {
  auto quoted = [](const std::vector<std::string>& list, size_t i) {
    return i < list.size() ? fmt::format("\"{}\"", list[i]) : std::string("nothing");
  };
  for (size_t i = 0; i < std::max(a.size(), b.size()); ++i)
    if (std::string x = quoted(a, i), y = quoted(b, i); x != y)
      changes.push_back(fmt::format("{}[{}]: {} -> {}", name, i, x, y));
}

// The hash of an operation without its neighbours. kStrict covers the operator, the result types
// and the constants except the contents of weights; kLoose covers the operator and which of its
// parameters are constant.
enum Strictness { kStrict, kLoose };
Hash Own(const Operation& op, Strictness strictness) {
  Hash hash = HashOf(op.def->name);
  const std::vector<Param>& params = op.def->canonical().params;
  if (strictness == kLoose) {
    for (size_t p = 0; p < op.args().size(); ++p)
      for (const Operand& operand : op.args()[p])
        if (operand.constant()) hash = Mix(hash, HashOf(params[p].name));
    return hash;
  }
  for (const auto& result : op.results) {
    hash = Mix(hash, static_cast<Hash>(result->type.kind));
    hash = Mix(hash, static_cast<Hash>(result->type.dtype));
    for (const Dim& dim : result->type.shape)
      hash = Mix(hash, dim.is_constant() ? static_cast<Hash>(dim.constant()) : Hash{1} << 63);
  }
  for (size_t p = 0; p < op.args().size(); ++p)
    for (const Operand& operand : op.args()[p])
      if (Tensor constant = operand.constant())
        hash = Mix(hash, Mix(HashOf(params[p].name), HashOf(Text(constant))));
  return hash;
}

class Side {
 public:
  explicit Side(const Function& function) {
    for (const auto& input : function.body.inputs)
      inputs_[input.get()] = HashOf("input " + input->name);
    OwnInputs(function.body);
    for (size_t i = 0; i < function.body.outputs().size(); ++i)
      outputs_.emplace(function.body.outputs()[i], HashOf(fmt::format("output {}", i)));
    ForEachOperation(const_cast<Function&>(function), [&](Operation* op) {
      if (op->def->is_const()) return;
      for (const auto& block : op->blocks) OwnInputs(*block);
      index_[op] = operations.size();
      operations.push_back(op);
    });
    for (Strictness strictness : {kStrict, kLoose}) {
      std::vector<Hash> level;
      for (const Operation* op : operations) level.push_back(Own(*op, strictness));
      hashes[strictness].push_back(level);
      for (int radius = 1; radius <= kRadius; ++radius) {
        std::vector<Hash> next = level;
        for (size_t i = 0; i < operations.size(); ++i) next[i] = Widen(*operations[i], level, i);
        hashes[strictness].push_back(next);
        level = std::move(next);
      }
    }
    match.assign(operations.size(), nullptr);
  }

  // Returns the block that owns a block input, and the index of the input.
  std::pair<const Block*, size_t> OwnerOf(const Value* input) const { return owners_.at(input); }
  bool HasInput(const std::string& name) const {
    return std::ranges::any_of(inputs_,
                               [&](const auto& input) { return input.first->name == name; });
  }
  int Find(const Operation* op) const {
    auto it = index_.find(op);
    return it == index_.end() ? -1 : static_cast<int>(it->second);
  }

  std::vector<const Operation*> operations;  // in execution order
  std::vector<std::vector<Hash>> hashes[2];  // by strictness and radius
  std::vector<const Operation*>
      match;  // the matched operations of the other side; null if unmatched

 private:
  void OwnInputs(const Block& block) {
    for (size_t i = 0; i < block.inputs.size(); ++i) owners_[block.inputs[i].get()] = {&block, i};
  }
  Hash Widen(const Operation& op, const std::vector<Hash>& level, size_t i) const {
    Hash hash = level[i];
    const std::vector<Param>& params = op.def->canonical().params;
    for (size_t p = 0; p < op.args().size(); ++p)
      for (const Operand& operand : op.args()[p]) {
        if (!operand.value || operand.value->is_constant()) continue;
        Hash source = 1;
        if (auto it = inputs_.find(operand.value); it != inputs_.end()) source = it->second;
        if (operand.value->def)
          source =
              Mix(level[index_.at(operand.value->def)], static_cast<Hash>(operand.value->index));
        hash = Mix(hash, Mix(HashOf(params[p].name), source));
      }
    Hash users = 0;  // a sum, so that the order of users does not matter
    for (const auto& result : op.results) {
      for (const Operation* user : result->users) users += Mix(level[index_.at(user)], 7);
      if (auto it = outputs_.find(result.get()); it != outputs_.end()) users += it->second;
    }
    return Mix(hash, users);
  }

  std::unordered_map<const Operation*, size_t> index_;
  std::unordered_map<const Value*, Hash> inputs_, outputs_;
  std::unordered_map<const Value*, std::pair<const Block*, size_t>> owners_;  // by block input
};

void Pair(Side& a, size_t i, Side& b, size_t j) {
  a.match[i] = b.operations[j];
  b.match[j] = a.operations[i];
}

// Matches operations whose neighbourhoods of this radius are equal, in order, if both sides have
// equally many of them.
void PairEqual(Side& a, Side& b, Strictness strictness, int radius) {
  std::map<Hash, std::pair<std::vector<size_t>, std::vector<size_t>>> groups;
  for (size_t i = 0; i < a.operations.size(); ++i)
    if (!a.match[i]) groups[a.hashes[strictness][radius][i]].first.push_back(i);
  for (size_t j = 0; j < b.operations.size(); ++j)
    if (!b.match[j]) groups[b.hashes[strictness][radius][j]].second.push_back(j);
  for (auto& [hash, group] : groups) {
    auto& [left, right] = group;
    if (radius > 0 && left.size() != right.size()) continue;
    for (size_t k = 0; k < std::min(left.size(), right.size()); ++k) Pair(a, left[k], b, right[k]);
  }
}

// Matches operations of the same type that produce operands or use results of matched operations.
bool PairNeighbours(Side& a, Side& b) {
  bool paired = false;
  auto pair = [&](const Operation* x, const Operation* y) {
    int i = a.Find(x), j = b.Find(y);
    if (i < 0 || j < 0 || a.match[i] || b.match[j] || x->def != y->def) return;
    Pair(a, i, b, j);
    paired = true;
  };
  for (size_t i = 0; i < a.operations.size(); ++i) {
    const Operation *x = a.operations[i], *y = a.match[i];
    if (!y || x->def != y->def) continue;
    for (size_t p = 0; p < x->args().size(); ++p)
      for (size_t k = 0; k < std::min(x->args()[p].size(), y->args()[p].size()); ++k) {
        const Value *from = x->args()[p][k].value, *to = y->args()[p][k].value;
        if (from && to && from->def && to->def) pair(from->def, to->def);
      }
    for (size_t r = 0; r < std::min(x->results.size(), y->results.size()); ++r)
      for (const Operation* user : x->results[r]->users)
        for (const Operation* other : y->results[r]->users) pair(user, other);
  }
  return paired;
}

double LargestDifference(const Tensor& a, const Tensor& b, double& scale) {
  constexpr int64_t kBlock = 1 << 16;
  double largest = 0;
  std::vector<double> left(kBlock), right(kBlock);
  Tensor wide_a = a.Cast(DType::kFp64), wide_b = b.Cast(DType::kFp64);
  for (int64_t first = 0; first < a.size(); first += kBlock) {
    int64_t count = std::min(kBlock, a.size() - first);
    wide_a.Read(first, count, reinterpret_cast<std::byte*>(left.data()));
    wide_b.Read(first, count, reinterpret_cast<std::byte*>(right.data()));
    for (int64_t i = 0; i < count; ++i) {
      if (left[i] == right[i] || (std::isnan(left[i]) && std::isnan(right[i]))) continue;
      double difference = std::fabs(left[i] - right[i]);
      if (std::isnan(difference)) return std::numeric_limits<double>::infinity();
      largest = std::max(largest, difference);
    }
    for (int64_t i = 0; i < count; ++i)
      if (std::isfinite(left[i])) scale = std::max(scale, std::fabs(left[i]));
    wide_a.Release(first, count);
    wide_b.Release(first, count);
  }
  return largest;
}

std::string Producer(const Value* value) {
  if (value->is_constant()) return "a constant";
  if (value->def) return fmt::format("{} \"{}\"", value->def->def->name, value->name);
  return fmt::format("input \"{}\"", value->name);
}

size_t IndexOf(const Block* block) {
  const auto& blocks = block->parent->blocks;
  auto it = std::ranges::find_if(blocks, [&](const auto& one) { return one.get() == block; });
  return static_cast<size_t>(it - blocks.begin());
}

// Returns whether two blocks belong to matched operations, or to the two functions.
bool SameBlock(const Side& a, const Block* x, const Block* y) {
  if (!x->parent || !y->parent) return x->parent == y->parent;
  return a.match[a.Find(x->parent)] == y->parent && IndexOf(x) == IndexOf(y);
}

// Function inputs are the same if their names are equal, or if neither name exists in the other
// program.
bool SameInput(const Side& a, const Value* x, const Side& b, const Value* y) {
  auto [outer, i] = a.OwnerOf(x);
  auto [other, j] = b.OwnerOf(y);
  if (outer->parent || other->parent) return i == j && SameBlock(a, outer, other);
  return x->name == y->name || (!b.HasInput(x->name) && !a.HasInput(y->name));
}

// Returns whether two values are the same once operations are matched. Removed and inserted
// operations are reported separately, so their results equal any value.
bool SameValue(const Side& a, const Value* x, const Side& b, const Value* y) {
  if (x->is_constant() && y->is_constant()) return x->constant().SameBytes(y->constant());
  if (x->is_constant() || y->is_constant()) return false;
  const Operation* to = x->def ? a.match[a.Find(x->def)] : nullptr;
  const Operation* from = y->def ? b.match[b.Find(y->def)] : nullptr;
  if ((x->def && !to) || (y->def && !from)) return true;
  if (!x->def && !y->def) return SameInput(a, x, b, y);
  return to == y->def && x->index == y->index;
}

// Compares the blocks nested in two matched operations, and the blocks that contain them.
void CompareBlocks(const Side& a, const Operation& x, const Side& b, const Operation& y,
                   std::vector<std::string>& changes) {
  if (!SameBlock(a, x.block, y.block)) changes.push_back("moved to another block");
  for (size_t k = 0; k < std::min(x.blocks.size(), y.blocks.size()); ++k) {
    std::vector<Value*> left = x.blocks[k]->outputs(), right = y.blocks[k]->outputs();
    for (size_t i = 0; i < std::min(left.size(), right.size()); ++i)
      if (!SameValue(a, left[i], b, right[i]))
        changes.push_back(fmt::format("output {} of block {}: {} -> {}", i, k, Producer(left[i]),
                                      Producer(right[i])));
  }
}

// Returns the operations of `a` that access a state on the other side of a write than in `b`; of a
// read and a write that swapped places, the read. The order of these accesses does not follow from
// data dependencies.
std::set<const Operation*> MovedAcrossWrites(const Function& function, const Side& a,
                                             const Side& b) {
  std::set<const Operation*> moved;
  for (const auto& state : function.body.inputs) {
    if (state->type.kind != Type::Kind::kState) continue;
    const Operation* last_write = nullptr;
    std::vector<const Operation*> since;  // reads after the last write
    auto check = [&](const Operation* first, const Operation* second) {
      const Operation* other = a.match[a.Find(first)];
      if (other && b.Find(other) > b.Find(a.match[a.Find(second)]))
        moved.insert(first->def->effect == Effect::kWritesState ? second : first);
    };
    for (const Operation* op : a.operations) {
      if (std::find(state->users.begin(), state->users.end(), op) == state->users.end()) continue;
      bool writes = op->def->effect == Effect::kWritesState;
      if (a.match[a.Find(op)]) {
        if (last_write) check(last_write, op);
        if (writes)
          for (const Operation* read : since) check(read, op);
      }
      if (writes) {
        last_write = op;
        since.clear();
      } else {
        since.push_back(op);
      }
    }
  }
  return moved;
}

void ComparePair(const Side& side_a, const Operation& a, const Side& side_b, const Operation& b,
                 bool moved, ProgramDiff& diff) {
  OperationPair pair{&a, &b, {}};
  if (moved) pair.changes.push_back("moved across a write to the state");
  const std::vector<Param>& params = a.def->canonical().params;
  for (size_t p = 0; p < a.args().size(); ++p) {
    const Operands &left = a.args()[p], &right = b.args()[p];
    std::string name(params[p].name);
    if (left.size() != right.size()) {
      pair.changes.push_back(fmt::format("{}: {} operands -> {}", name, left.size(), right.size()));
      continue;
    }
    for (size_t k = 0; k < left.size(); ++k) {
      Tensor x = left[k].constant(), y = right[k].constant();
      if (!x && !y) {
        if (!SameValue(side_a, left[k].value, side_b, right[k].value))
          pair.changes.push_back(
              fmt::format("{}: {} -> {}", name, Producer(left[k].value), Producer(right[k].value)));
        continue;
      }
      if (x && y && IsWeight(x) && IsWeight(y)) {
        WeightPair weight{&a, &b, name, WeightPair::State::kEqual, 0, x.byte_size(), y.byte_size()};
        if (!x.SameBytes(y)) {
          double scale = 0;
          weight.largest_difference = x.dims() == y.dims() && x.dtype() != DType::kBool
                                          ? LargestDifference(x, y, scale)
                                          : std::numeric_limits<double>::infinity();
          weight.state = weight.largest_difference <= 1e-3 * scale ? WeightPair::State::kClose
                                                                   : WeightPair::State::kChanged;
        }
        diff.weights.push_back(weight);
      } else if (IsStrings(x) && IsStrings(y)) {
        CompareStrings(name, x.strings(), y.strings(), pair.changes);
      } else if (!x || !y || !x.SameBytes(y)) {
        pair.changes.push_back(
            fmt::format("{}: {} -> {}", name, x ? Text(x) : "computed", y ? Text(y) : "computed"));
      }
    }
  }
  for (size_t r = 0; r < std::min(a.results.size(), b.results.size()); ++r) {
    const Type &x = a.results[r]->type, &y = b.results[r]->type;
    if (!MayAgree(x, y))
      pair.changes.push_back(fmt::format("result: {} -> {}", x.ToString(), y.ToString()));
  }
  CompareBlocks(side_a, a, side_b, b, pair.changes);
  if (pair.changes.empty())
    ++diff.matched;
  else
    diff.operations.push_back(std::move(pair));
}

// Adds a line about a function, with its name if the program has several functions.
void Say(const Function& function, const std::string& text, ProgramDiff& diff) {
  bool several = function.program->functions.size() > 1;
  diff.interface.push_back(several ? fmt::format("function {}: {}", function.name, text) : text);
}

// Returns the names, in order, of the ports that both programs have.
std::string Order(const std::vector<Port>& ports,
                  const PortIndex<const std::vector<Port>>& others) {
  std::vector<std::string> names;
  for (const Port& port : ports)
    if (others.Find(port.name)) names.push_back(port.name);
  return fmt::format("{}", fmt::join(names, ", "));
}

void ComparePorts(std::string_view kind, const Function& function, const std::vector<Port>& a,
                  const std::vector<Port>& b, const std::function<std::string(size_t, bool)>& type,
                  ProgramDiff& diff) {
  const PortIndex in_a(a), in_b(b);
  for (size_t i = 0; i < a.size(); ++i) {
    const Port* other = in_b.Find(a[i].name);
    if (!other) {
      Say(function, fmt::format("{} \"{}\": only in the first program", kind, a[i].name), diff);
    } else if (std::string x = type(i, false),
               y = type(static_cast<size_t>(other - b.data()), true);
               x != y) {
      Say(function, fmt::format("{} \"{}\": {} -> {}", kind, a[i].name, x, y), diff);
    }
  }
  for (const Port& port : b)
    if (!in_a.Find(port.name))
      Say(function, fmt::format("{} \"{}\": only in the second program", kind, port.name), diff);
  if (std::string x = Order(a, in_b), y = Order(b, in_a); x != y)
    Say(function, fmt::format("order of {}s: {} -> {}", kind, x, y), diff);
}

std::string SizesText(std::pair<int64_t, int64_t> range) {
  if (range.first == range.second) return std::to_string(range.first);
  return fmt::format(
      "{}..{}", range.first,
      range.second < 0 || range.second >= INT32_MAX ? "" : std::to_string(range.second));
}

// Returns the type with its flexible sizes, taken from the description or else from the symbols of
// the program.
std::string Described(const Type& type, const Port& port, const Symbols& symbols) {
  const Type& tensor = type.kind == Type::Kind::kState ? type.elements[0] : type;
  if (!tensor.is_tensor()) return type.ToString();
  std::string dims;
  for (size_t d = 0; d < tensor.shape.size(); ++d) {
    dims += d ? ", " : "";
    if (d < port.shape_range.size()) {
      dims += SizesText(port.shape_range[d]);
    } else if (tensor.shape[d].is_constant()) {
      dims += tensor.shape[d].ToString();
    } else {
      auto known = symbols.find(tensor.shape[d].symbol().value_or(""));
      dims += known == symbols.end() ? "?" : SizesText({known->second.low, known->second.high});
    }
  }
  std::string text = fmt::format("{} [{}]", Name(tensor.dtype), dims);
  if (!port.shape_range.empty() || !port.enumerated_shapes.empty())
    text += fmt::format(" by default [{}]", fmt::join(port.default_shape, ", "));
  for (const Dims& shape : port.enumerated_shapes)
    text += fmt::format(" or [{}]", fmt::join(shape, ", "));
  if (port.feature != Port::Feature::kMultiArray)
    text += fmt::format(", {}{} image",
                        port.feature == Port::Feature::kImageRgb   ? "rgb"
                        : port.feature == Port::Feature::kImageBgr ? "bgr"
                                                                   : "gray",
                        port.dtype == DType::kFp16 ? " float16" : "");
  if (!port.description.empty()) text += fmt::format(", \"{}\"", port.description);
  if (port.default_value) text += fmt::format(", {:g} by default", *port.default_value);
  return port.optional ? text + ", optional" : text;
}

std::unordered_map<std::string_view, const Value*> ByName(const Function& function, bool outputs) {
  std::unordered_map<std::string_view, const Value*> values;
  if (outputs)
    for (const Value* value : function.body.outputs()) values.emplace(value->name, value);
  else
    for (const auto& value : function.body.inputs) values.emplace(value->name, value.get());
  return values;
}

void CompareFunctions(const Function& a, const Function& b, ProgramDiff& diff) {
  const std::array values{std::array{ByName(a, false), ByName(b, false)},
                          std::array{ByName(a, true), ByName(b, true)}};
  auto value_of = [&](bool second, const std::string& name, bool output) {
    auto it = values[output][second].find(name);
    return it == values[output][second].end() ? nullptr : it->second;
  };
  auto ports = [&](std::string_view kind, const std::vector<Port>& left,
                   const std::vector<Port>& right, bool output) {
    ComparePorts(
        kind, a, left, right,
        [&](size_t i, bool second) {
          const Port& port = second ? right[i] : left[i];
          const Value* value = value_of(second, port.name, output);
          return value ? Described(value->type, port, output ? Symbols() : (second ? b : a).symbols)
                       : std::string("nothing");
        },
        diff);
  };
  ports("input", a.inputs, b.inputs, false);
  ports("output", a.outputs, b.outputs, true);
  ports("state", a.states, b.states, false);
  if (a.opset != b.opset)
    diff.interface.push_back(fmt::format("operator set of {}: {} -> {}", a.name, OpsetName(a.opset),
                                         OpsetName(b.opset)));
  Side left(a), right(b);
  for (Strictness strictness : {kStrict, kLoose})
    for (int radius = kRadius; radius > 0; --radius) PairEqual(left, right, strictness, radius);
  PairEqual(left, right, kStrict, 0);
  while (PairNeighbours(left, right)) {
  }
  for (const Port& port : a.outputs) {
    const Value *x = value_of(false, port.name, true), *y = value_of(true, port.name, true);
    if (x && y && !SameValue(left, x, right, y))
      Say(a, fmt::format("output \"{}\": {} -> {}", port.name, Producer(x), Producer(y)), diff);
  }
  std::set<const Operation*> moved = MovedAcrossWrites(a, left, right);
  for (size_t i = 0; i < left.operations.size(); ++i) {
    if (left.match[i])
      ComparePair(left, *left.operations[i], right, *left.match[i],
                  moved.contains(left.operations[i]), diff);
    else
      diff.operations.push_back({left.operations[i], nullptr, {}});
  }
  for (size_t j = 0; j < right.operations.size(); ++j)
    if (!right.match[j]) diff.operations.push_back({nullptr, right.operations[j], {}});
}

void CompareTexts(const std::string& what, const std::string& a, const std::string& b,
                  ProgramDiff& diff) {
  if (a != b) diff.interface.push_back(fmt::format("{}: \"{}\" -> \"{}\"", what, a, b));
}

}  // namespace

bool ProgramDiff::same() const {
  return interface.empty() && operations.empty() &&
         std::ranges::all_of(weights, [](const WeightPair& weight) {
           return weight.state == WeightPair::State::kEqual;
         });
}

ProgramDiff Diff(const Program& a, const Program& b) {
  ProgramDiff diff;
  const Interface &left = a.interface, &right = b.interface;
  CompareTexts("author", left.author, right.author, diff);
  CompareTexts("license", left.license, right.license, diff);
  CompareTexts("description", left.short_description, right.short_description, diff);
  CompareTexts("version", left.version, right.version, diff);
  if (a.functions.size() > 1 || b.functions.size() > 1)
    CompareTexts("default function", left.default_function, right.default_function, diff);
  if (left.specification_version && right.specification_version &&
      left.specification_version != right.specification_version)
    diff.interface.push_back(fmt::format("specification version: {} -> {}",
                                         left.specification_version, right.specification_version));
  std::map<std::string, std::string> metadata_a(left.metadata.begin(), left.metadata.end()),
      metadata_b(right.metadata.begin(), right.metadata.end());
  for (const auto& [key, value] : metadata_a) {
    auto it = metadata_b.find(key);
    if (it == metadata_b.end())
      diff.interface.push_back(fmt::format("metadata \"{}\": only in the first program", key));
    else
      CompareTexts(fmt::format("metadata \"{}\"", key), value, it->second, diff);
  }
  for (const auto& [key, value] : metadata_b)
    if (!metadata_a.contains(key))
      diff.interface.push_back(fmt::format("metadata \"{}\": only in the second program", key));
  auto find = [&](const Program& program, const std::string& name) -> const Function* {
    for (const auto& function : program.functions)
      if (function->name == name) return function.get();
    // Single functions correspond even if their names differ.
    return a.functions.size() == 1 && b.functions.size() == 1 ? program.functions[0].get()
                                                              : nullptr;
  };
  for (const auto& function : a.functions) {
    if (const Function* other = find(b, function->name))
      CompareFunctions(*function, *other, diff);
    else
      diff.interface.push_back(
          fmt::format("function {}: only in the first program", function->name));
  }
  for (const auto& function : b.functions)
    if (!find(a, function->name))
      diff.interface.push_back(
          fmt::format("function {}: only in the second program", function->name));
  return diff;
}

}  // namespace mlc::verify

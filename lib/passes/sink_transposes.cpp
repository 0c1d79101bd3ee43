// Propagates transposes through elementwise and other layout-independent operations, so that as few
// as possible remain.
//
//   a = transpose(conv, [0, 2, 3, 1]); b = relu(a); c = concat(b, b, axis = 3)
//   d = transpose(c, [0, 3, 1, 2])
//     ->   b = relu(conv); d = concat(b, b, axis = 1)
//
// Every such operation has a layout: the permutation of its operands and results in memory.
// Connected operations of one rank form a group with a common layout. A group takes the layout,
// among those that its neighbours require, that needs the fewest transposes at its border; of two
// with the same number, the one with the transposes after the group, where they may meet others.
// Axes, padding, slices and constants are permuted at compile time. All other operations, inputs,
// outputs and values used by nested blocks keep their order of dimensions.
//
// Must not fire if the same number of transposes would remain before the same operations, after a
// cast or before a conversion to fp16, on operations with computed axes, or if a run-time operand
// of lower rank is broadcast. No numeric effect, except for the order of summation.
#include <map>
#include <unordered_map>
#include <unordered_set>

#include "lib/ir/arithmetic.h"
#include "lib/ir/shape_tensors.h"
#include "lib/passes/rewriting.h"

namespace mlc::passes {
namespace {

using Perm = std::vector<int64_t>;  // transpose(x, perm): dimension i of the result is perm[i] of x

Perm Identity(size_t rank) { return Consecutive(0, static_cast<int64_t>(rank)); }
bool IsIdentity(const Perm& perm) { return std::ranges::is_sorted(perm); }
// Returns the permutation of transpose(transpose(x, first), second).
Perm Compose(const Perm& first, const Perm& second) {
  Perm perm(second.size());
  for (size_t i = 0; i < second.size(); ++i) perm[i] = first[second[i]];
  return perm;
}
Perm Inverse(const Perm& perm) {
  Perm inverse(perm.size());
  for (size_t i = 0; i < perm.size(); ++i) inverse[perm[i]] = static_cast<int64_t>(i);
  return inverse;
}

// An operation whose operator works in any layout, according to its row in lib/ops.
struct Node {
  Operation* op = nullptr;
  const Layout* row = nullptr;
  size_t rank = 0;
  std::vector<int64_t> axes;            // the values of the row's axes parameter
  std::unordered_set<int64_t> dropped;  // dimensions that the results lack
  std::unordered_set<int64_t> added;    // dimensions of 1 that the result has and the operand lacks
  Perm layout;
  int group = 0;
};

// Returns the dimensions of 1 whose removal turns `from` into `to`; empty if there are none.
std::unordered_set<int64_t> DroppedOnes(const Shape& from, const Shape& to) {
  std::unordered_set<int64_t> dropped;
  size_t at = 0;
  for (size_t i = 0; i < from.size(); ++i) {
    if (at < to.size() && from[i] == to[at])
      ++at;
    else if (from[i] == Dim(1))
      dropped.insert(static_cast<int64_t>(i));
    else
      return {};
  }
  return at == to.size() ? dropped : std::unordered_set<int64_t>();
}

// Returns the operation as a node, unless it depends on the order of its dimensions.
std::optional<Node> AsNode(Operation* op) {
  const Layout* row = &op->def->layout;
  if (row->data[0].empty() || op->results.empty()) return std::nullopt;
  // After a conversion to fp16, a transpose moves half as many bytes.
  if (IsCast(*op) && op->result()->type.dtype == DType::kFp16) return std::nullopt;
  Node node;
  node.op = op;
  node.row = row;
  for (std::string_view param : row->data)
    if (!param.empty())
      for (const Operand& operand : op->arg(param)) {
        if (!operand.type().is_tensor()) return std::nullopt;
        node.rank = std::max(node.rank, operand.type().shape.size());
      }
  if (node.rank < 2) return std::nullopt;
  for (std::string_view param : row->data)
    if (!param.empty())
      for (const Operand& operand : op->arg(param)) {
        size_t rank = operand.type().shape.size();
        if (rank != node.rank && rank != 0 && !operand.constant()) return std::nullopt;
      }
  if (!row->axes.empty()) {
    auto axes = ConstantAxes(*op, row->axes, static_cast<int>(node.rank));
    if (!axes || !op->has(row->axes)) return std::nullopt;
    node.axes = *axes;
  }
  for (std::string_view param : row->per_dimension) {
    if (param.empty() || !op->has(param)) continue;
    Tensor numbers = op->constant(param);
    if (!numbers || (param != "pad" && numbers.size() != static_cast<int64_t>(node.rank)))
      return std::nullopt;
    if (param == "squeeze_mask")
      for (int64_t i = 0; i < numbers.size(); ++i)
        if (numbers.Bool(i)) node.dropped.insert(i);
  }
  bool squeezes = op->is("squeeze");
  if (op->def->Find("keep_dims") >= 0) {
    Tensor keep = op->constant_or_default("keep_dims");
    if (!keep) return std::nullopt;
    squeezes = !keep.Bool(0);
  }
  if (op->is("reshape") || op->is("expand_dims")) {
    if (!op->value("x")) return std::nullopt;
    const Shape &from = op->value("x")->type.shape, &to = op->result()->type.shape;
    if (op->is("reshape")) {
      node.dropped = DroppedOnes(from, to);
      node.added = DroppedOnes(to, from);
    } else if (auto axes = ConstantAxes(*op, "axes", static_cast<int>(to.size()))) {
      node.added = {axes->begin(), axes->end()};
    }
    if (node.dropped.empty() && node.added.empty()) return std::nullopt;
  }
  if (squeezes) node.dropped = {node.axes.begin(), node.axes.end()};
  for (const std::unique_ptr<Value>& result : op->results)
    if (!result->type.is_tensor() ||
        result->type.shape.size() + node.dropped.size() != node.rank + node.added.size())
      return std::nullopt;
  node.layout = Identity(node.rank);
  return node;
}

bool KeepsRank(const Node& node) { return node.dropped.empty() && node.added.empty(); }

// Returns the layout of a node's results for operands in `layout`. Added dimensions keep their
// positions.
Perm ResultLayout(const Node& node, const Perm& layout) {
  if (KeepsRank(node)) return layout;
  std::vector<int64_t> place(node.rank);  // positions of operand dimensions in the result
  int64_t at = 0;
  for (size_t i = 0; i < node.rank; ++i) {
    while (node.added.contains(at)) ++at;
    place[i] = at;
    at += !node.dropped.contains(static_cast<int64_t>(i));
  }
  Perm result;
  auto fill = [&] {
    while (node.added.contains(static_cast<int64_t>(result.size())))
      result.push_back(static_cast<int64_t>(result.size()));
  };
  for (int64_t dim : layout) {
    if (node.dropped.contains(dim)) continue;
    fill();
    result.push_back(place[dim]);
  }
  fill();
  return result;
}

// Returns (before, after) for every dimension.
std::vector<int64_t> PadAmounts(const Node& node) {
  std::vector<int64_t> amounts = node.op->constant("pad").Ints();
  amounts.insert(amounts.begin(), 2 * node.rank - amounts.size(), 0);
  return amounts;
}
std::vector<int64_t> PermutedPad(const Node& node, const Perm& layout) {
  std::vector<int64_t> amounts = PadAmounts(node), permuted;
  for (int64_t dim : layout)
    permuted.insert(permuted.end(), {amounts[2 * dim], amounts[2 * dim + 1]});
  return permuted;
}

// Reflection and replication padding supports the last two dimensions only.
bool WorksIn(const Node& node, const Perm& layout) {
  if (!node.op->is("pad")) return true;
  Tensor mode = node.op->constant_or_default("mode");
  if (mode && mode.strings()[0] == "constant") return true;
  std::vector<int64_t> amounts = PermutedPad(node, layout);
  return std::all_of(amounts.begin(), amounts.end() - 4, [](int64_t n) { return n == 0; });
}

Tensor PermutedConstant(const Tensor& constant, const Perm& layout) {
  if (constant.size() == 1 && constant.rank() < static_cast<int>(layout.size())) return constant;
  Dims dims = constant.dims();
  dims.insert(dims.begin(), layout.size() - dims.size(), 1);
  return constant.Reshaped(dims).Transposed({layout.begin(), layout.end()});
}

class Layouts {
 public:
  Layouts(Block& block, PassContext& context) : block_(block), context_(context) {}

  bool Run() {
    if (std::ranges::none_of(block_.operations(),
                             [](const auto& op) { return op->is("transpose"); }))
      return false;
    CollectNodes();
    if (nodes_.empty()) return false;
    CollectUses();
    bool changed = Improve(Groups());
    // Then nodes one by one, except at values with so many users that moving one of them changes
    // nothing.
    constexpr size_t kManyUses = 64;
    std::vector<std::vector<int>> singles;
    for (int i = 0; i < static_cast<int>(nodes_.size()); ++i) {
      std::vector<Value*> roots = RootsOf(i);
      if (std::ranges::all_of(roots, [&](Value* root) {
            auto it = uses_.find(root);
            return it == uses_.end() || it->second.all.size() <= kManyUses;
          }))
        singles.push_back({i});
    }
    changed |= Improve(singles);
    if (changed) Apply();
    return changed;
  }

 private:
  // A value seen through transposes: transpose(root, perm).
  struct View {
    Value* root;
    Perm perm;
  };
  struct Use {
    int node;  // -1: an operation that keeps its order
    Perm perm;
  };
  // The users of a root.
  struct Uses {
    std::vector<Use> all;
    std::map<Perm, int64_t> wanted;  // the number of users per required layout
  };

  bool UsedInside(const Operation& op) const {
    for (const std::unique_ptr<Value>& result : op.results)
      for (const Operation* user : result->users)
        if (user->block != &block_) return true;
    return false;
  }

  bool IsThrough(const Operation* op) const {
    return op && op->block == &block_ && op->is("transpose") && !UsedInside(*op) &&
           op->value("x") && ConstantAxes(*op, "perm", op->result()->type.rank());
  }

  void CollectNodes() {
    for (Operation* op : block_.operations()) {
      operations_.push_back(op);
      if (UsedInside(*op)) continue;
      if (std::optional<Node> node = AsNode(op)) {
        index_[op] = static_cast<int>(nodes_.size());
        nodes_.push_back(std::move(*node));
      }
    }
  }

  int NodeOf(const Operation* op) const {
    auto it = index_.find(op);
    return it == index_.end() ? -1 : it->second;
  }

  View Resolve(Value* value) const {
    View view{value, Identity(value->type.shape.size())};
    while (IsThrough(view.root->def)) {
      view.perm =
          Compose(*ConstantAxes(*view.root->def, "perm", view.root->type.rank()), view.perm);
      view.root = view.root->def->value("x");
    }
    return view;
  }

  // Visits run-time operands that have the node's layout.
  template <class F>
  void ForEachOperand(const Node& node, F&& f) const {
    for (std::string_view param : node.row->data)
      if (!param.empty())
        for (const Operand& operand : node.op->arg(param))
          if (operand.value && !operand.value->is_constant() && operand.value->type.rank() > 0)
            f(operand.value);
  }

  void AddUse(Value* value, int node) {
    View view = Resolve(value);
    if (node < 0 && IsIdentity(view.perm) && NodeOf(view.root->def) < 0) return;
    Uses& uses = uses_[view.root];
    ++uses.wanted[view.perm];
    uses.all.push_back({node, view.perm});
    if (node >= 0) operands_[node].push_back(std::move(view));
  }

  void CollectUses() {
    operands_.resize(nodes_.size());
    for (Operation* op : operations_) {
      int node = NodeOf(op);
      if (node >= 0) {
        ForEachOperand(nodes_[node], [&](Value* value) { AddUse(value, node); });
      } else if (!IsThrough(op)) {
        for (const Operands& operands : op->args())
          for (const Operand& operand : operands)
            if (operand.value && operand.value->type.is_tensor()) AddUse(operand.value, -1);
      }
    }
    for (Value* output : block_.outputs())
      if (output->type.is_tensor()) AddUse(output, -1);
  }

  // Returns groups of connected nodes of one rank.
  std::vector<std::vector<int>> Groups() {
    std::vector<int> parent(nodes_.size());
    for (size_t i = 0; i < parent.size(); ++i) parent[i] = static_cast<int>(i);
    auto find = [&](int i) {
      while (parent[i] != i) i = parent[i] = parent[parent[i]];
      return i;
    };
    for (size_t i = 0; i < nodes_.size(); ++i)
      ForEachOperand(nodes_[i], [&](Value* value) {
        int producer = NodeOf(value->def);
        if (producer >= 0 && KeepsRank(nodes_[producer]))
          parent[find(static_cast<int>(i))] = find(producer);
      });
    std::map<int, std::vector<int>> groups;
    for (size_t i = 0; i < nodes_.size(); ++i) {
      nodes_[i].group = find(static_cast<int>(i));
      groups[nodes_[i].group].push_back(static_cast<int>(i));
    }
    std::vector<std::vector<int>> list;
    for (auto& [root, members] : groups) list.push_back(std::move(members));
    return list;
  }

  Perm LayoutOf(const Value* root) const {
    int producer = NodeOf(root->def);
    return producer < 0 ? Identity(root->type.shape.size())
                        : ResultLayout(nodes_[producer], nodes_[producer].layout);
  }

  // Returns the values that the node reads and its results.
  std::vector<Value*> RootsOf(int node) const {
    std::vector<Value*> roots;
    for (const View& operand : operands_[node]) roots.push_back(operand.root);
    for (const std::unique_ptr<Value>& result : nodes_[node].op->results)
      roots.push_back(result.get());
    return roots;
  }

  void SetLayout(int node, const Perm& layout) {
    for (const View& operand : operands_[node]) {
      std::map<Perm, int64_t>& wanted = uses_[operand.root].wanted;
      auto before = wanted.find(Compose(operand.perm, nodes_[node].layout));
      if (--before->second == 0) wanted.erase(before);
      ++wanted[Compose(operand.perm, layout)];
    }
    nodes_[node].layout = layout;
  }

  // Nodes that change their layout together, and the values that they read and produce.
  struct Group {
    const std::vector<int>& nodes;
    std::unordered_set<int> members;
    std::vector<Value*> roots;
    std::unordered_map<const Value*, std::vector<const Perm*>>
        reads;  // the permutations in which they read each root
  };
  Group Around(const std::vector<int>& nodes) const {
    Group group{nodes, {nodes.begin(), nodes.end()}, {}, {}};
    std::unordered_set<Value*> seen;
    for (int node : nodes) {
      for (Value* root : RootsOf(node))
        if (seen.insert(root).second) group.roots.push_back(root);
      for (const View& operand : operands_[node])
        group.reads[operand.root].push_back(&operand.perm);
    }
    return group;
  }

  // The number of required transposes: all, and those of values from outside the group.
  struct Price {
    int64_t all = 0, before = 0;
    friend auto operator<=>(const Price&, const Price&) = default;
  };
  Price Cost(const Group& group) const {
    Price price;
    for (Value* root : group.roots) {
      auto it = uses_.find(root);
      if (it == uses_.end()) continue;
      const std::map<Perm, int64_t>& wanted = it->second.wanted;
      int64_t needed = std::ssize(wanted) - wanted.contains(LayoutOf(root));
      price.all += needed;
      if (!group.members.contains(NodeOf(root->def))) price.before += needed;
    }
    return price;
  }

  // Returns layouts in which at least one edge at the group's border needs no transpose.
  std::vector<Perm> Candidates(const Group& group) const {
    constexpr size_t kMost = 8;
    const size_t rank = nodes_[group.nodes[0]].rank;
    std::vector<Perm> candidates = {Identity(rank)};
    auto propose = [&](Perm perm) {
      if (candidates.size() < kMost && std::ranges::find(candidates, perm) == candidates.end())
        candidates.push_back(std::move(perm));
    };
    for (Value* root : group.roots) {
      auto it = uses_.find(root);
      if (it == uses_.end() || root->type.shape.size() != rank) continue;
      if (group.members.contains(NodeOf(root->def))) {
        for (const Use& use : it->second.all)
          if (!group.members.contains(use.node))
            propose(use.node < 0 ? use.perm : Compose(use.perm, nodes_[use.node].layout));
      } else {
        Perm held = LayoutOf(root);
        for (const Perm* perm : group.reads.at(root)) propose(Compose(Inverse(*perm), held));
      }
    }
    return candidates;
  }

  // Changes the layouts of groups until none improves. Every change lowers the number of
  // transposes, or moves one towards the end.
  bool Improve(const std::vector<std::vector<int>>& groups) {
    bool changed = false;
    for (bool again = true; again;) {
      again = false;
      for (const std::vector<int>& nodes : groups) {
        Group group = Around(nodes);
        std::vector<Perm> candidates = Candidates(group);
        if (candidates.size() < 2) continue;
        std::vector<Perm> before;
        for (int node : nodes) before.push_back(nodes_[node].layout);
        // Casts of fp16-precision are already in place; after them a transpose would be wider.
        bool casts =
            std::ranges::any_of(nodes, [&](int node) { return nodes_[node].op->is("cast"); });
        Price best = Cost(group);
        const Perm* choice = nullptr;
        for (const Perm& candidate : candidates) {
          if (!std::ranges::all_of(nodes,
                                   [&](int node) { return WorksIn(nodes_[node], candidate); }))
            continue;
          for (int node : nodes) SetLayout(node, candidate);
          Price cost = Cost(group);
          if (!(cost < best) || (casts && cost.all == best.all)) continue;
          best = cost;
          choice = &candidate;
        }
        for (size_t i = 0; i < nodes.size(); ++i) SetLayout(nodes[i], choice ? *choice : before[i]);
        again |= choice != nullptr;
      }
      changed |= again;
    }
    return changed;
  }

  // Returns `value` in a layout, for use by `before`.
  Value* Get(Value* value, const Perm& layout, Operation* before) {
    View view = Resolve(value);
    auto it = held_.find(view.root);
    Value* base = it == held_.end() ? view.root : it->second;
    Perm perm = Compose(Compose(Inverse(LayoutOf(view.root)), view.perm), layout);
    if (IsIdentity(perm)) return base;
    Value*& made = made_[{base, perm}];
    if (!made) {
      Builder builder(block_, context_.diagnostics, before);
      builder.SetName(value->name);
      if (value->def) builder.SetLocation(value->def->location);
      made = Transposed(builder, base, perm);
      if (value->def) names_.emplace_back(made, value->name);
    }
    return made;
  }

  void Rebuild(const Node& node) {
    Operation* op = node.op;
    const Perm& layout = node.layout;
    Perm place = Inverse(layout);
    Builder builder = BuilderBefore(op, context_);
    Builder::Args args = ArgsWithout(*op, {});
    for (Builder::Arg& arg : args) {
      const auto& data = node.row->data;
      const auto& per_dimension = node.row->per_dimension;
      if (std::ranges::find(data, arg.param) != data.end()) {
        for (Operand& operand : arg.operands) {
          if (Tensor constant = operand.constant())
            operand = PermutedConstant(constant, layout);
          else if (operand.value->type.rank() > 0)
            operand = Get(operand.value, layout, op);
        }
      } else if (arg.param == node.row->axes) {
        Perm axes;
        for (int64_t axis : node.axes) axes.push_back(place[axis]);
        arg.operands = {op->constant(arg.param).rank() == 0
                            ? Tensor::Scalar<int32_t>(static_cast<int32_t>(axes[0]))
                            : Ints(axes)};
      } else if (arg.param == "pad") {
        arg.operands = {Ints(PermutedPad(node, layout))};
      } else if (std::ranges::find(per_dimension, arg.param) != per_dimension.end()) {
        Tensor numbers = op->constant(arg.param);
        std::vector<int64_t> permuted;
        for (int64_t dim : layout) permuted.push_back(numbers.Int(dim));
        arg.operands = {Tensor::Vector<int64_t>(permuted).Cast(numbers.dtype())};
      }
    }
    std::vector<Value*> made;
    if (op->is("reshape")) {
      bool drops = !node.dropped.empty();
      Perm axes(node.added.begin(), node.added.end());
      for (int64_t axis : node.dropped) axes.push_back(place[axis]);
      std::ranges::sort(axes);
      made = builder.MakeAll(drops ? "squeeze" : "expand_dims",
                             {{"x", Get(op->value("x"), layout, op)}, {"axes", Ints(axes)}});
    } else {
      made = builder.MakeAll(op->def->name, std::move(args));
    }
    Perm result_layout = ResultLayout(node, layout);
    for (size_t i = 0; i < made.size(); ++i) {
      Value* old = op->result(static_cast<int>(i));
      // Dimensions that type inference could not determine keep their symbols.
      for (size_t d = 0; d < result_layout.size(); ++d)
        made[i]->type.shape[d] = old->type.shape[result_layout[d]];
      held_[old] = made[i];
      names_.emplace_back(made[i], old->name);
    }
    if (made[0]->def) InferTypes(*made[0]->def);
  }

  void Rewire(Operation* op, const std::vector<std::string_view>& only) {
    const std::vector<Param>& params = op->def->canonical().params;
    for (size_t i = 0; i < op->args().size(); ++i) {
      if (!only.empty() && std::ranges::find(only, params[i].name) == only.end()) continue;
      Operands operands = op->args()[i];
      bool changed = false;
      for (Operand& operand : operands) {
        if (!operand.value || operand.value->is_constant() || !operand.value->type.is_tensor())
          continue;
        Value* same = Get(operand.value, Identity(operand.value->type.shape.size()), op);
        changed |= same != operand.value;
        operand.value = same;
      }
      if (changed) op->SetArg(static_cast<int>(i), std::move(operands));
    }
  }

  void Apply() {
    for (Operation* op : operations_) {
      int node = NodeOf(op);
      if (node >= 0 && !IsIdentity(nodes_[node].layout)) {
        Rebuild(nodes_[node]);
      } else if (!IsThrough(op)) {
        Rewire(op, {});
      } else {
        View view = Resolve(op->result());
        if (view.root == op->value("x") && !held_.contains(view.root))
          made_.try_emplace({view.root, view.perm}, op->result());
      }
    }
    std::vector<Value*> outputs = block_.outputs();
    bool is_body = block_.parent == nullptr;
    for (Value* output : outputs) {
      if (!output->type.is_tensor() || !output->is_output()) continue;
      Value* same = Get(output, Identity(output->type.shape.size()), nullptr);
      if (same == output || !CanReplace(output, same)) continue;
      for (size_t i = 0; i < block_.outputs().size(); ++i)
        if (block_.outputs()[i] == output) block_.SetOutput(static_cast<int>(i), same);
      if (!is_body) continue;
      std::string name = output->name;
      block_.function->Rename(output, name + "_before");
      block_.function->Rename(same, name);
    }
    for (auto it = operations_.rbegin(); it != operations_.rend(); ++it) {
      bool used = HasEffects(**it);
      for (const std::unique_ptr<Value>& result : (*it)->results) used |= result->has_uses();
      if (!used) block_.Erase(*it);
    }
    for (auto& [value, name] : names_)
      if (!value->is_output()) block_.function->Rename(value, name);
  }

  Block& block_;
  PassContext& context_;
  std::vector<Operation*> operations_;
  std::vector<Node> nodes_;
  std::unordered_map<const Operation*, int> index_;
  std::unordered_map<Value*, Uses> uses_;
  std::vector<std::vector<View>> operands_;  // operands of each node
  std::unordered_map<Value*, Value*> held_;
  std::map<std::pair<Value*, Perm>, Value*> made_;
  std::vector<std::pair<Value*, std::string>> names_;
};

bool SinkInBlock(Block& block, PassContext& context) {
  bool changed = false;
  for (Operation* op : block.operations())
    for (const std::unique_ptr<Block>& nested : op->blocks)
      changed |= SinkInBlock(*nested, context);
  while (Layouts(block, context).Run()) changed = true;
  return changed;
}

bool RunSinkTransposes(Program& program, PassContext& context) {
  return OnEachFunction(program, [&](Function& f) { return SinkInBlock(f.body, context); });
}

}  // namespace

extern const PassDef kSinkTransposes = {
    "sink-transposes", "propagate transposes through operations so that fewer remain",
    RunSinkTransposes};

}  // namespace mlc::passes

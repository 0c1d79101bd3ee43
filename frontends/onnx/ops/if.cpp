// If: the branch is selected at compile time, or becomes a cond.
#include <algorithm>

#include "frontends/onnx/node_transaction.h"
#include "frontends/onnx/row.h"
#include "frontends/onnx/scope.h"
#include "frontends/onnx/shape_guard.h"
#include "lib/ir/arithmetic.h"
#include "lib/ir/shape_tensors.h"
#include "lib/lower/convert.h"

namespace mlc::onnx {

namespace {

// The difference of two integer operands with one known element each; nothing for other operands.
std::optional<Dim> Difference(const Operation& op) {
  const Value *x = op.value("x"), *y = op.value("y");
  auto a = x ? ElementsOf(x) : std::nullopt, b = y ? ElementsOf(y) : std::nullopt;
  if (!a || !b || a->size() != 1 || b->size() != 1) return std::nullopt;
  return a->front() - b->front();
}

// Handles a condition that compares a flexible dimension with one size. Narrows the dimension's
// symbol to the sizes for which the comparison has one known result, records the decision, and
// returns that result. Returns nothing for other conditions, and when the remaining sizes are empty
// or not contiguous.
std::optional<bool> AssumeSize(Node& node, const Value* condition) {
  bool when_equal = true;
  const Operation* op = condition->def;
  for (; op && !op->is("equal") && !op->is("not_equal"); op = op->value("x")->def) {
    bool passes = op->is("cast") || op->def->moves == Moves::kShape;
    if (op->is("logical_not"))
      when_equal = !when_equal;
    else if (!passes)
      return std::nullopt;
    if (!op->value("x")) return std::nullopt;
  }
  if (!op) return std::nullopt;
  if (op->is("not_equal")) when_equal = !when_equal;
  std::optional<Dim> difference = Difference(*op);
  if (!difference || node.scope().import().trial) return std::nullopt;
  std::optional<Narrowed> narrowed = Narrow(
      node, *difference, [](int64_t value) { return value == 0; },
      "only for these sizes do the branches produce shapes that later nodes accept");
  if (!narrowed || !narrowed->all) return std::nullopt;
  return when_equal;
}

// Returns x if the scalar `keep` is true, else x with zero elements along dimension `axis`.
Value* AllOrNone(Builder& builder, Value* x, int axis, Value* keep) {
  int rank = x->type.rank();
  Value* shape = builder.Make("shape", {{"x", x}});
  Value* some = Binary(builder, "mul", shape, builder.Cast(keep, DType::kInt32));
  std::vector<bool> whole(rank, true);
  whole[axis] = false;
  Value* result = builder.Make("slice_by_index", {{"x", x},
                                                  {"begin", Ints(std::vector<int64_t>(rank))},
                                                  {"end", some},
                                                  {"end_mask", Tensor::Vector(whole)}});
  Bounded(builder, result->type.shape[axis], x->type.shape[axis]);
  return result;
}

// Checks that both branches give an output the same type; sizes may differ.
void CheckAlike(Node& node, int output, const Bound& yes, const Bound& no) {
  auto differ = [&](std::string_view what, const std::string& a, const std::string& b) {
    node.FailUnknown(node.In(0),
                     fmt::format("the shape depends on data: the condition is computed at run "
                                 "time, and the branches return output {} {} {} and {}",
                                 output, what, a, b));
  };
  if (!SameStructure(yes, no))
    differ("with different structures:", std::string(yes.kind()),
           std::string(no.kind()) + " of another length");
  std::vector<Bound> a, b;
  AddLeaves(yes, a);
  AddLeaves(no, b);
  for (size_t i = 0; i < a.size(); ++i) {
    if (a[i].dtype != b[i].dtype)
      node.Fail("bad-graph", "the branches return output {} with different types, {} and {}",
                output, Name(a[i].dtype), Name(b[i].dtype));
    if (a[i].value->type.rank() != b[i].value->type.rank())
      differ("with the shapes", ToString(a[i].value->type.shape), ToString(b[i].value->type.shape));
    if (lower::RuntimeType(a[i].dtype) == DType::kNone)
      node.Fail("unsupported-dtype", "elements of type {} are not supported at run time",
                Name(a[i].dtype));
  }
}

// Returns x with dimensions unknown to type inference where `other` has another size, because the
// loader of coremltools compares the types of both branches. `condition` is true here.
Value* WithOpenSizes(Builder& b, Value* x, const Shape& other, Value* condition) {
  const Shape& shape = x->type.shape;
  std::vector<int64_t> sizes(shape.size());
  std::vector<bool> whole(shape.size(), true);
  for (size_t i = 0; i < shape.size(); ++i) {
    if (shape[i] == other[i] || !shape[i].is_constant() || !other[i].is_constant()) continue;
    sizes[i] = shape[i].constant();
    whole[i] = false;
  }
  if (std::ranges::find(whole, false) == whole.end()) return x;
  Value* one = b.Cast(condition, DType::kInt32);
  return b.Make("slice_by_index", {{"x", x},
                                   {"begin", Ints(std::vector<int64_t>(shape.size()))},
                                   {"end", Binary(b, "mul", Ints(sizes), one)},
                                   {"end_mask", Tensor::Vector(whole)}});
}

bool SameRanks(const Bound& yes, const Bound& no) {
  std::vector<Bound> a, b;
  AddLeaves(yes, a);
  AddLeaves(no, b);
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const Bound& x, const Bound& y) {
    return x.value->type.rank() == y.value->type.rank();
  });
}

// The empty dimension of a constant whose counterpart in the other branch may be non-empty; -1 if
// there is none. Core ML cannot hold empty constants.
int EmptyAxis(const Bound& bound, const Bound& other) {
  if (!bound.value || !other.value || !bound.value->is_constant()) return -1;
  const Shape &shape = bound.value->type.shape, &full = other.value->type.shape;
  if (shape.size() != full.size() || bound.dtype != other.dtype) return -1;
  auto axis = std::ranges::find(shape, Dim(0));
  if (axis == shape.end() || full[axis - shape.begin()] == Dim(0)) return -1;
  for (size_t d = 0; d < shape.size(); ++d)
    if (shape[d] != full[d] && shape.begin() + static_cast<int64_t>(d) != axis) return -1;
  return static_cast<int>(axis - shape.begin());
}

// If one branch returns only empty tensors, the other branch is computed unconditionally, and its
// results are sliced to zero elements when the condition selects the empty branch.
bool GiveAllOrNone(Node& node, Value* condition, NodeTransaction (&transactions)[2],
                   const std::vector<Bound> (&results)[2]) {
  for (int empty : {0, 1}) {
    std::vector<int> axes;
    for (int i = 0; i < node.outputs(); ++i)
      axes.push_back(node.HasOutput(i) && i < std::ssize(results[0]) && i < std::ssize(results[1])
                         ? EmptyAxis(results[empty][i], results[1 - empty][i])
                         : -1);
    if (std::ranges::find(axes, -1) != axes.end()) continue;
    transactions[1 - empty].Splice();
    Builder& b = node.builder();
    Value* keep = empty == 1 ? condition : b.Make("logical_not", {{"x", condition}});
    for (int i = 0; i < node.outputs(); ++i) {
      const Bound& full = results[1 - empty][i];
      node.Set(i, AllOrNone(b, lower::AtRunTime(b, full.value, full.dtype), axes[i], keep),
               full.dtype);
    }
    return true;
  }
  return false;
}

void Branch(Node& node, Value* condition) {
  NodeTransaction transactions[] = {NodeTransaction(node), NodeTransaction(node)};
  std::vector<Bound> results[2];
  for (int i = 0; i < 2; ++i) {
    const char* branch = i == 0 ? "then_branch" : "else_branch";
    try {
      results[i] = node.Inline(node.Subgraph(branch), {}, transactions[i].builder());
    } catch (const Skipped&) {  // its nodes have reported errors
      node.FailUnknown(
          node.In(0),
          fmt::format("{} cannot be compiled, and the condition is computed at run time", branch));
    }
  }
  if (GiveAllOrNone(node, condition, transactions, results)) return;
  std::vector<Bound> leaves[2];
  for (int i = 0; i < node.outputs(); ++i) {
    if (!node.HasOutput(i)) continue;
    if (i >= static_cast<int>(std::min(results[0].size(), results[1].size())))
      node.Fail("bad-graph", "the branches do not return output {}", i);
    if (!SameRanks(results[0][i], results[1][i])) {
      if (std::optional<bool> known = AssumeSize(node, condition)) {
        int chosen = *known ? 0 : 1;
        transactions[chosen].Splice();
        for (int k = 0; k < node.outputs(); ++k) node.Set(k, results[chosen][k]);
        return;
      }
    }
    CheckAlike(node, i, results[0][i], results[1][i]);
    for (int branch : {0, 1}) AddLeaves(results[branch][i], leaves[branch]);
  }
  for (int branch : {0, 1}) {
    Builder& b = transactions[branch].builder();
    std::vector<Value*> outputs;
    for (size_t i = 0; i < leaves[branch].size(); ++i) {
      const Bound& leaf = leaves[branch][i];
      outputs.push_back(lower::AtRunTime(b, leaf.value, leaf.dtype));
      if (branch == 0)
        outputs.back() =
            WithOpenSizes(b, outputs.back(), leaves[1][i].value->type.shape, condition);
    }
    transactions[branch].Finish(outputs);
  }
  if (!leaves[0].empty()) {
    std::vector<std::unique_ptr<Block>> blocks;
    for (NodeTransaction& transaction : transactions) blocks.push_back(transaction.Take());
    std::vector<Value*> values =
        node.builder().MakeNested("cond", {{"pred", condition}}, std::move(blocks));
    for (size_t i = 0; i < values.size(); ++i) leaves[0][i].value = values[i];
  }
  auto next = leaves[0].cbegin();
  for (int i = 0; i < node.outputs(); ++i)
    if (node.HasOutput(i)) node.Set(i, WithLeaves(results[0][i], next));
}

void If(Node& node) {
  node.Ignore({"then_branch", "else_branch"});
  Tensor known = node.Known(0);
  Value* condition = Single(node, node.In(0), "the condition");
  if (!known) return Branch(node, condition);
  std::vector<Bound> results =
      node.Inline(node.Subgraph(known.Bool(0) ? "then_branch" : "else_branch"), {});
  for (int i = 0; i < node.outputs() && i < static_cast<int>(results.size()); ++i)
    node.Set(i, results[i]);
}

constexpr NodeRow kIfRows[] = {
    NodeRow("If", If),
};

}  // namespace

std::span<const NodeRow> IfRows() { return kIfRows; }

}  // namespace mlc::onnx

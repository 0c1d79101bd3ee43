// Rewrites operations on more than five dimensions, which Core ML does not support, with fewer:
// chains of reshape, transpose and reshape, and operations that treat adjacent dimensions alike.
//
//   a: [1, 9, 4, 5]; b = reshape(a, [1, 1, 3, 3, 4, 5])
//   c = transpose(b, [0, 1, 4, 2, 5, 3]); d = reshape(c, [1, 1, 12, 15])
//     ->   b = reshape(a, [3, 3, 4, 5]); c = transpose(b, [2, 0, 3, 1])
//          d = reshape(c, [1, 1, 12, 15])
//
//   a: [2, 3, 4, 5, 6, 7]; b = reduce_sum(a, axes = [1, 2])
//     ->   c = reshape(a, [2, 12, 210]); d = reduce_sum(c, axes = [1])
//          b = reshape(d, [2, 5, 6, 7])
//
//   a: [2, 8, 3, 4, 35]; b = gather(a, indices: [3, 33], axis = 4)
//     ->   c = reshape(a, [192, 35, 1]); d = gather(c, indices: [99], axis = 1)
//          b = reshape(d, [2, 8, 3, 4, 3, 33])
//
// Dimensions of size 1 are removed. Adjacent dimensions that a transpose keeps adjacent, or that an
// elementwise operation broadcasts or a reduction reduces alike, are merged into one; the reshapes
// around them then merge with others. A transpose that still has more than five dimensions is split
// into several with at most five, each of which moves one group to its position. Must not fire if a
// transposed high-rank value has other users or is a model output, or if more than one dimension is
// dynamic. No numeric effect.
//
// Operators by name: the operations of high rank that it matches, and reshapes and transposes.
#include <map>

#include "lib/ir/arithmetic.h"
#include "lib/passes/rewriting.h"

namespace mlc::passes {
namespace {

constexpr size_t kMaxRank = 5;

struct Plan {
  std::vector<int64_t> shape;  // -1 for the one dynamic size
  std::vector<int64_t> perm;
};

// Returns the same permutation with as few dimensions as possible.
std::optional<Plan> Simplify(const Shape& shape, const std::vector<int64_t>& perm) {
  // Maps dimensions to groups in source order. A group ends where the permutation separates
  // adjacent dimensions.
  size_t rank = shape.size();
  std::vector<int64_t> kept_perm;
  for (int64_t axis : perm)
    if (!(shape[axis] == Dim(1))) kept_perm.push_back(axis);
  std::vector<int64_t> kept;
  for (size_t i = 0; i < rank; ++i)
    if (!(shape[i] == Dim(1))) kept.push_back(static_cast<int64_t>(i));
  auto next = [&](int64_t axis) {
    auto it = std::ranges::find(kept, axis);
    return std::next(it) == kept.end() ? int64_t{-1} : *std::next(it);
  };
  std::vector<std::vector<int64_t>> groups;  // in permuted order
  for (int64_t axis : kept_perm) {
    if (!groups.empty() && next(groups.back().back()) == axis)
      groups.back().push_back(axis);
    else
      groups.push_back({axis});
  }
  std::vector<size_t> order(groups.size());  // groups in source order
  for (size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::ranges::sort(order, [&](size_t a, size_t b) { return groups[a][0] < groups[b][0]; });
  Plan plan;
  plan.perm.resize(groups.size());
  int unknown = 0;
  for (size_t place = 0; place < order.size(); ++place) {
    Dim size = 1;
    for (int64_t axis : groups[order[place]]) size = size * shape[axis];
    unknown += !size.is_constant();
    plan.shape.push_back(size.is_constant() ? size.constant() : -1);
    plan.perm[order[place]] = static_cast<int64_t>(place);
  }
  if (unknown > 1) return std::nullopt;
  return plan;
}

bool Rewrite(Operation* last, PassContext& context) {
  if (!last->is("reshape") || !last->constant("shape")) return false;
  Operation* transpose = DefinedBy(last->value("x"), "transpose");
  if (!transpose || !SoleUser(transpose->result()) || !transpose->constant("perm")) return false;
  Operation* first = DefinedBy(transpose->value("x"), "reshape");
  if (!first || !SoleUser(first->result())) return false;
  const Shape& shape = first->result()->type.shape;
  if (shape.size() <= kMaxRank) return false;
  std::vector<int64_t> perm = transpose->constant("perm").Ints();
  for (int64_t& axis : perm)
    if (axis < 0) axis += static_cast<int64_t>(shape.size());
  std::optional<Plan> plan = Simplify(shape, perm);
  if (!plan) return false;

  Builder builder = BuilderBefore(last, context);
  Value* value = first->value("x");
  std::vector<int64_t> sizes = plan->shape;
  std::vector<int64_t> now = Consecutive(0, std::ssize(sizes));  // the position of each group
  for (size_t done = 0; done < plan->perm.size();) {
    if (now == plan->perm) break;
    std::optional<Plan> step;
    std::vector<int64_t> moved;
    if (now.size() <= kMaxRank) {
      std::vector<int64_t> to;
      for (int64_t group : plan->perm) to.push_back(std::ranges::find(now, group) - now.begin());
      step = Plan{{}, to};
      for (int64_t group : now) step->shape.push_back(sizes[group]);
      moved = plan->perm;
      done = plan->perm.size();
    } else {
      // Move the group that belongs at `done` there: [in place][between][group][behind].
      int64_t at = std::ranges::find(now, plan->perm[done]) - now.begin();
      auto product = [&](size_t from, size_t to) {
        int64_t total = 1;
        for (size_t i = from; i < to; ++i) {
          if (sizes[now[i]] < 0) return int64_t{-1};
          total *= sizes[now[i]];
        }
        return total;
      };
      size_t place = static_cast<size_t>(at);
      step = Plan{{product(0, done), product(done, place), product(place, place + 1),
                   product(place + 1, now.size())},
                  {0, 2, 1, 3}};
      moved = now;
      moved.erase(moved.begin() + at);
      moved.insert(moved.begin() + static_cast<int64_t>(done), plan->perm[done]);
      ++done;
      if (moved == now) continue;
    }
    value = WithShape(builder, value, step->shape);
    value = Transposed(builder, value, step->perm);
    now = moved;
  }
  ReplaceAllUses(last->result(),
                 builder.Make("reshape", {{"x", value}, {"shape", last->constant("shape")}}));
  last->block->Erase(last);
  return true;
}

// Returns the axes of a reduction, softmax or cumulative sum; nothing for other operators.
std::optional<std::vector<int64_t>> WorkingAxes(const Operation& op) {
  int rank = op.value("x")->type.rank();
  std::string_view axes = op.def->layout.axes;
  if (axes.empty() || op.def->moves != Moves::kNone) return std::nullopt;
  if (op.has(axes) || axes == "axis") return ConstantAxes(op, axes, rank);
  return Consecutive(0, rank);
}

// Returns groups of adjacent dimensions of `shape` that have the same kind, ignoring sizes of 1.
std::vector<std::vector<size_t>> Groups(const Shape& shape, const std::vector<std::string>& kinds) {
  std::vector<std::vector<size_t>> groups;
  for (size_t d = 0; d < shape.size(); ++d) {
    if (shape[d] == Dim(1)) continue;
    if (!groups.empty() && kinds[groups.back()[0]] == kinds[d])
      groups.back().push_back(d);
    else
      groups.push_back({d});
  }
  return groups;
}

Shape Grouped(const Shape& shape, const std::vector<std::vector<size_t>>& groups) {
  Shape grouped;
  for (const std::vector<size_t>& group : groups) {
    Dim size = 1;
    for (size_t d : group) size = size * shape[d];
    grouped.push_back(size);
  }
  return grouped.empty() ? Shape{1} : grouped;
}

bool FlattenElementwise(Operation* op, PassContext& context) {
  const Shape& shape = op->result()->type.shape;
  if (!op->def->elementwise()) return false;
  // For each operand, its shape extended to the rank of the result.
  std::map<std::string_view, Shape> aligned;
  std::vector<std::string> kinds(shape.size());
  for (size_t p = 0; p < op->args().size(); ++p) {
    if (op->args()[p].empty()) continue;
    Type type = op->args()[p][0].type();
    if (!type.is_tensor() || type.rank() == 0) continue;
    Shape own(shape.size() - type.shape.size(), Dim(1));
    own.insert(own.end(), type.shape.begin(), type.shape.end());
    for (size_t d = 0; d < shape.size(); ++d) {
      if (own[d] != shape[d] && own[d] != Dim(1)) return false;
      kinds[d] += own[d] == Dim(1) ? '1' : 'n';
    }
    aligned[op->def->canonical().params[p].name] = std::move(own);
  }
  std::vector<std::vector<size_t>> groups = Groups(shape, kinds);
  Tensor back = ShapeOperand(shape);
  if (groups.size() > kMaxRank || !back) return false;
  std::map<std::string_view, Tensor> shapes;
  for (const auto& [param, own] : aligned)
    if (!(shapes[param] = ShapeOperand(Grouped(own, groups)))) return false;

  Builder builder = BuilderBefore(op, context);
  Builder::Args args;
  for (size_t p = 0; p < op->args().size(); ++p) {
    std::string_view param = op->def->canonical().params[p].name;
    if (op->args()[p].empty()) continue;
    Operand operand = op->args()[p][0];
    if (auto it = shapes.find(param); it != shapes.end())
      operand = builder.Make("reshape", {{"x", operand}, {"shape", it->second}});
    args.emplace_back(param, operand);
  }
  Value* result = builder.Make(op->def->name, std::move(args));
  return Replace(op, builder.Make("reshape", {{"x", result}, {"shape", back}}));
}

bool FlattenAlong(Operation* op, PassContext& context) {
  if (op->def->Find("x") < 0 || !op->value("x") || op->value("x")->type.rank() <= 5) return false;
  std::optional<std::vector<int64_t>> axes = WorkingAxes(*op);
  if (!axes) return false;
  const Shape& shape = op->value("x")->type.shape;
  std::vector<std::string> kinds(shape.size(), "kept");
  for (int64_t axis : *axes) kinds[axis] = "worked";
  bool single = op->def->Find("axis") >= 0;
  std::vector<std::vector<size_t>> groups = Groups(shape, kinds);
  std::vector<int64_t> places;
  for (size_t i = 0; i < groups.size(); ++i)
    if (kinds[groups[i][0]] == "worked") places.push_back(static_cast<int64_t>(i));
  Tensor to = ShapeOperand(Grouped(shape, groups)), back = ShapeOperand(op->result()->type.shape);
  if (groups.size() > kMaxRank || places.empty() || (single && places.size() != 1) || !to || !back)
    return false;
  Builder builder = BuilderBefore(op, context);
  Builder::Args args = ArgsWithout(*op, {"x", "axis", "axes"});
  args.emplace_back("x", builder.Make("reshape", {{"x", op->value("x")}, {"shape", to}}));
  if (single)
    args.emplace_back("axis", places[0]);
  else
    args.emplace_back("axes", Ints(places));
  Value* result = builder.Make(op->def->name, std::move(args));
  return Replace(op, builder.Make("reshape", {{"x", result}, {"shape", back}}));
}

// Flattens the indices to a vector, and the dimensions of x before and after the axis to one each.
bool FlattenGather(Operation* op, PassContext& context) {
  if (!op->is("gather") || !op->value("x") || op->constant_or_default("batch_dims").Int(0) != 0)
    return false;
  const Shape& shape = op->value("x")->type.shape;
  auto axes = ConstantAxes(*op, "axis", static_cast<int>(shape.size()));
  if (!axes) return false;
  auto axis = shape.begin() + axes->front();
  Shape three = {Product({shape.begin(), axis}), *axis, Product({axis + 1, shape.end()})};
  Tensor to = ShapeOperand(three), back = ShapeOperand(op->result()->type.shape);
  if (!to || !back) return false;
  Builder builder = BuilderBefore(op, context);
  Builder::Args args = ArgsWithout(*op, {"x", "indices", "axis"});
  args.emplace_back("x", builder.Make("reshape", {{"x", op->value("x")}, {"shape", to}}));
  args.emplace_back("indices", WithShape(builder, op->arg("indices")[0], {-1}));
  args.emplace_back("axis", 1);
  Value* rows = builder.Make("gather", std::move(args));
  return Replace(op, builder.Make("reshape", {{"x", rows}, {"shape", back}}));
}

bool RunLowerRank(Program& program, PassContext& context) {
  return RewriteAll(program, [&](Operation* op) {
    if (op->results.size() != 1 || !op->result()->type.is_tensor()) return false;
    if (op->result()->type.rank() > 5 &&
        (FlattenElementwise(op, context) || FlattenGather(op, context)))
      return true;
    return FlattenAlong(op, context) || Rewrite(op, context);
  });
}

}  // namespace

extern const PassDef kLowerRank = {
    "lower-rank", "rewrite operations on more than five dimensions to use at most five",
    RunLowerRank};

}  // namespace mlc::passes

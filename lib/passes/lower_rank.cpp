// Rewrites reshape, transpose, reshape through more than five dimensions, which Core ML does not
// have, with fewer.
//
//   a: [1, 9, 4, 5]; b = reshape(a, [1, 1, 3, 3, 4, 5]); c = transpose(b, [0, 1, 4, 2, 5, 3]); d =
//   reshape(c, [1, 1, 12, 15])
//     ->   b = reshape(a, [3, 3, 4, 5]); c = transpose(b, [2, 0, 3, 1]); d = reshape(c, [1, 1, 12,
//     15])
//
// Dimensions of size 1 vanish; those that stay beside each other become one. What still has more
// than five is split into transposes of at most five dimensions that each bring one group to its
// place. Must not fire where the high-rank values are used elsewhere or are model outputs, nor
// where more than one size is unknown. No numeric effect.
#include "lib/passes/match.h"

namespace mlc {
namespace {

constexpr size_t kMaxRank = 5;

struct Plan {
  std::vector<int64_t> shape;  // -1 for the one size that is not known
  std::vector<int64_t> perm;
};

// The same movement with as few dimensions as possible.
std::optional<Plan> Simplify(const Shape& shape, const std::vector<int64_t>& perm) {
  // Old dimension -> group, in source order; groups break where the permutation separates
  // neighbours.
  size_t rank = shape.size();
  std::vector<int64_t> kept_perm;
  for (int64_t axis : perm)
    if (!(shape[axis] == Dim(1))) kept_perm.push_back(axis);
  std::vector<int64_t> kept;
  for (size_t i = 0; i < rank; ++i)
    if (!(shape[i] == Dim(1))) kept.push_back(static_cast<int64_t>(i));
  auto next = [&](int64_t axis) {
    auto it = std::find(kept.begin(), kept.end(), axis);
    return std::next(it) == kept.end() ? int64_t{-1} : *std::next(it);
  };
  std::vector<std::vector<int64_t>> groups;  // in the permuted order
  for (int64_t axis : kept_perm) {
    if (!groups.empty() && next(groups.back().back()) == axis)
      groups.back().push_back(axis);
    else
      groups.push_back({axis});
  }
  std::vector<size_t> order(groups.size());  // groups in source order
  for (size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::sort(order.begin(), order.end(),
            [&](size_t a, size_t b) { return groups[a][0] < groups[b][0]; });
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
  std::vector<int64_t> sizes = plan->shape,
                       now(plan->perm.size());  // now: which group stands where
  for (size_t i = 0; i < now.size(); ++i) now[i] = static_cast<int64_t>(i);
  for (size_t done = 0; done < plan->perm.size();) {
    if (now == plan->perm) break;
    std::optional<Plan> step;
    std::vector<int64_t> moved;
    if (now.size() <= kMaxRank) {
      std::vector<int64_t> to;
      for (int64_t group : plan->perm)
        to.push_back(std::find(now.begin(), now.end(), group) - now.begin());
      step = Plan{{}, to};
      for (int64_t group : now) step->shape.push_back(sizes[group]);
      moved = plan->perm;
      done = plan->perm.size();
    } else {
      // Bring the group that belongs at `done` there: [in place][between][group][behind].
      int64_t at = std::find(now.begin(), now.end(), plan->perm[done]) - now.begin();
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
    value = builder.Make("reshape", {{"x", value}, {"shape", Ints(step->shape)}});
    value = builder.Make("transpose", {{"x", value}, {"perm", Ints(step->perm)}});
    now = moved;
  }
  ReplaceAllUses(last->result(),
                 builder.Make("reshape", {{"x", value}, {"shape", last->constant("shape")}}));
  last->block->Erase(last);
  return true;
}

bool Run(Program& program, PassContext& context) {
  return RewriteAll(program, [&](Operation* op) { return Rewrite(op, context); });
}

}  // namespace

const PassDef kLowerRank = {"lower-rank", "move elements through five dimensions at most", Run};

}  // namespace mlc

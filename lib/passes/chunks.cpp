#include "lib/passes/chunks.h"

#include <algorithm>
#include <array>

#include "lib/ir/arithmetic.h"

namespace mlc::passes {
namespace {

constexpr int64_t kMostChunks = 64;

// The dimensions of a value in the order of its chunks, concatenated along their channels.
// Dimensions of 1 come first.
std::vector<int64_t> MemoryOrder(const Roles& roles) {
  std::vector<int64_t> order;
  using enum Role;
  for (Role role : {kNone, kBatch, kDivided, kChannel, kHeight, kWidth})
    for (size_t i = 0; i < roles.size(); ++i)
      if (roles[i] == role) order.push_back(static_cast<int64_t>(i));
  return order;
}

// One number for each dimension of a chunk.
std::optional<Tensor> PerDimension(const Operation& op, std::string_view param,
                                   const Roles& roles) {
  const Tensor numbers = op.constant(param);
  const auto rank = static_cast<int64_t>(roles.size());
  if (!numbers || param == "pad" || numbers.size() != rank) return std::nullopt;
  const bool one = param == "end" || param == "stride" || param == "size" || param == "reps";
  std::vector<int64_t> four(4, one ? 1 : 0);
  for (int64_t i = 0; i < rank; ++i) {
    const Role role = roles[static_cast<size_t>(i)];
    const int64_t number = numbers.dtype() == DType::kBool ? numbers.Bool(i) : numbers.Int(i);
    if (role != Role::kNone && role != Role::kDivided)
      four[PlaceOf(role)] = number;
    else if ((param == "reps" || param == "stride") && number != 1)
      return std::nullopt;
  }
  return Tensor::Vector<int64_t>(four).Cast(numbers.dtype());
}

// Returns whether a matrix has a row for each picture of a batch.
bool HasRowsOfPictures(const Value* x) {
  const Operation* op = x->def;
  if (!op || op->def->Find("x") < 0 || !op->value("x")) return false;
  const Shape& from = op->value("x")->type.shape;
  return from.size() == 4 && from[0] == x->type.shape[0] &&
         (Reshapes(*op) || op->def->sums.of != Sums::kNone);
}

}  // namespace

Roles RolesOfFeatures(const Value* x) {
  const Shape& shape = x->type.shape;
  if (shape.size() == 2 && HasRowsOfPictures(x)) return {Role::kBatch, Role::kChannel};
  Roles roles(shape.size(), Role::kNone);
  roles.back() = Role::kChannel;
  std::vector<size_t> others;
  for (size_t i = 0; i + 1 < shape.size(); ++i)
    if (!(shape[i] == Dim(1))) others.push_back(i);
  constexpr std::array kLeading = {Role::kBatch, Role::kHeight, Role::kWidth};
  if (others.size() > kLeading.size()) return {};
  for (size_t i = 0; i < others.size(); ++i)
    roles[others[i]] = others.size() == 2 && i == 1
                           ? Role::kWidth
                           : kLeading[others.size() == 2 ? i : i + 3 - others.size()];
  return roles;
}

Roles WithoutOnes(Roles roles, const Shape& shape) {
  for (size_t i = 0; i < roles.size(); ++i)
    if (shape[i] == Dim(1)) roles[i] = Role::kNone;
  return roles;
}

std::vector<int64_t> DividedSizes(const Roles& roles, const Shape& shape) {
  std::vector<int64_t> sizes;
  for (size_t i = 0; i < roles.size(); ++i)
    if (roles[i] == Role::kDivided) sizes.push_back(shape[i].constant());
  return sizes;
}

Shape ShapeOfChunks(const Roles& roles, const Shape& shape) {
  Shape four = {1, 1, 1, 1};
  for (size_t i = 0; i < roles.size(); ++i) {
    if (roles[i] == Role::kDivided) four[1] = four[1] * shape[i];
    if (roles[i] != Role::kNone && roles[i] != Role::kDivided)
      four[PlaceOf(roles[i])] = four[PlaceOf(roles[i])] * shape[i];
  }
  return four;
}

bool IsPossible(const Roles& roles, const Shape& shape) {
  int64_t chunks = 1;
  for (size_t i = 0; i < roles.size(); ++i) {
    if (roles[i] == Role::kNone && !(shape[i] == Dim(1))) return false;
    if (roles[i] != Role::kNone && roles[i] != Role::kDivided &&
        std::ranges::count(roles, roles[i]) > 1)
      return false;
    if (roles[i] != Role::kDivided) continue;
    if (!shape[i].is_constant() || (chunks *= shape[i].constant()) > kMostChunks) return false;
  }
  return roles.size() <= 5 && ShapeOperand(shape) && ShapeOperand(ShapeOfChunks(roles, shape));
}

std::vector<Value*> Divided(Builder& b, Value* value, const Roles& roles) {
  const Shape& shape = value->type.shape;
  const std::vector<int64_t> perm = MemoryOrder(roles);
  const Shape four = ShapeOfChunks(roles, shape);
  Value* whole = value;
  if (!std::ranges::is_sorted(perm)) whole = Transposed(b, whole, perm);
  if (!(whole->type.shape == four))
    whole = b.Make("reshape", {{"x", whole}, {"shape", ShapeOperand(four)}});
  int64_t count = 1;
  for (int64_t size : DividedSizes(roles, shape)) count *= size;
  if (count == 1) return {whole};
  const int64_t channels = four[1].constant() / count;
  return Parts(b, whole, std::vector<int64_t>(static_cast<size_t>(count), channels), 1);
}

Value* Whole(Builder& b, const Chunked& chunked, const Shape& shape) {
  Value* whole = chunked.chunks[0];
  if (chunked.chunks.size() > 1) whole = Concat(b, chunked.chunks, 1);
  const std::vector<int64_t> order = MemoryOrder(chunked.roles);
  Shape moved;
  std::vector<int64_t> perm;
  for (int64_t axis : order) moved.push_back(shape[static_cast<size_t>(axis)]);
  for (size_t i = 0; i < shape.size(); ++i)
    perm.push_back(std::ranges::find(order, static_cast<int64_t>(i)) - order.begin());
  if (!std::ranges::is_sorted(perm)) {
    if (!(whole->type.shape == moved))
      whole = b.Make("reshape", {{"x", whole}, {"shape", ShapeOperand(moved)}});
    whole = Transposed(b, whole, perm);
  }
  if (!(whole->type.shape == shape))
    whole = b.Make("reshape", {{"x", whole}, {"shape", ShapeOperand(shape)}});
  return whole;
}

size_t IndexOf(const std::vector<int64_t>& index, const Roles& roles, const Shape& shape,
               const Shape& own) {
  int64_t at = 0;
  for (size_t i = 0; i < own.size(); ++i) {
    const size_t d = i + shape.size() - own.size();
    if (roles[d] == Role::kDivided && !(own[i] == Dim(1))) at = at * own[i].constant() + index[d];
  }
  return static_cast<size_t>(at);
}

bool RegroupRoles(const Roles& from, const std::vector<size_t>& source,
                  const std::vector<size_t>& target, const std::function<bool()>& may_divide,
                  Roles& roles) {
  const Role first = from[source[0]], last = from[source.back()];
  if (source.size() == 1 && target.size() == 1) {
    roles[target[0]] = first;
    return true;
  }
  // Channels are the innermost order of the chunks.
  const bool innermost = std::none_of(from.begin() + static_cast<std::ptrdiff_t>(source.back()) + 1,
                                      from.end(), [](Role role) { return role == Role::kDivided; });
  auto all_divided = [&](size_t count) {
    return std::all_of(source.begin(), source.begin() + static_cast<std::ptrdiff_t>(count),
                       [&](size_t d) { return from[d] == Role::kDivided; });
  };
  if (source.size() == 1) {
    if (first == Role::kDivided) {
      for (size_t d : target) roles[d] = Role::kDivided;
      return true;
    }
    if (first == Role::kWidth && target.size() == 2 && !std::ranges::count(from, Role::kHeight)) {
      roles[target[0]] = Role::kHeight;
      roles[target[1]] = Role::kWidth;
      return true;
    }
    if (first != Role::kChannel || !innermost || !may_divide()) return false;
    for (size_t d : target) roles[d] = Role::kDivided;
    roles[target.back()] = Role::kChannel;
    return true;
  }
  if (target.size() != 1) return false;
  if (all_divided(source.size()))
    roles[target[0]] = Role::kDivided;
  else if (last == Role::kChannel && innermost && all_divided(source.size() - 1))
    roles[target[0]] = Role::kChannel;
  else if (source.size() == 2 && first == Role::kHeight && last == Role::kWidth)
    roles[target[0]] = Role::kWidth;
  else
    return false;
  return true;
}

std::optional<ChunkArguments> ArgumentsForChunks(const Operation& op, const Roles& roles) {
  const Layout& row = op.def->layout;
  const int rank = static_cast<int>(roles.size());
  ChunkArguments made;
  std::vector<int64_t> places;
  // A dimension of 1 becomes one that no other dimension has.
  auto place_of = [&](int64_t axis) -> std::optional<int64_t> {
    const Role role = roles[static_cast<size_t>(axis)];
    if (role == Role::kDivided) return std::nullopt;
    if (role != Role::kNone) return PlaceOf(role);
    for (Role other : {Role::kHeight, Role::kWidth, Role::kChannel, Role::kBatch})
      if (!std::ranges::count(roles, other)) return PlaceOf(other);
    return std::nullopt;
  };
  if (!row.axes.empty()) {
    auto axes = ConstantAxes(op, row.axes, rank);
    if (!axes) return std::nullopt;
    for (int64_t axis : *axes) {
      auto place = place_of(axis);
      if (!place || std::ranges::count(places, *place)) return std::nullopt;
      places.push_back(*place);
    }
    if (op.def->Find("keep_dims") >= 0) {
      const Tensor keep = op.constant_or_default("keep_dims");
      if (!keep) return std::nullopt;
      if (!keep.Bool(0)) made.dropped = {axes->begin(), axes->end()};
    }
  }
  const std::vector<Param>& params = op.def->canonical().params;
  for (size_t p = 0; p < op.args().size(); ++p) {
    const std::string_view param = params[p].name;
    if (op.args()[p].empty() || std::ranges::count(row.data, param)) continue;
    if (param == row.axes) {
      made.args.emplace_back(param, op.constant(param).rank() == 0
                                        ? Tensor::Scalar<int32_t>(static_cast<int32_t>(places[0]))
                                        : Ints(places));
    } else if (param == "keep_dims") {
      made.args.emplace_back(param, true);
    } else if (std::ranges::count(row.per_dimension, param)) {
      std::optional<Tensor> numbers = PerDimension(op, param, roles);
      if (!numbers) return std::nullopt;
      if (param == "squeeze_mask") {
        const Tensor squeezed = op.constant(param);
        for (int64_t i = 0; i < squeezed.size(); ++i) {
          if (!squeezed.Bool(i)) continue;
          if (roles[static_cast<size_t>(i)] == Role::kDivided) return std::nullopt;
          made.dropped.insert(i);
        }
      } else {
        made.args.emplace_back(param, *numbers);
      }
    } else {
      Builder::Arg arg(param, op.args()[p][0]);
      arg.operands = op.args()[p];
      made.args.push_back(std::move(arg));
    }
  }
  if (!made.dropped.empty() && !row.axes.empty() && op.def->Find("keep_dims") >= 0 &&
      !op.has("keep_dims"))
    made.args.emplace_back("keep_dims", true);
  return made;
}

}  // namespace mlc::passes

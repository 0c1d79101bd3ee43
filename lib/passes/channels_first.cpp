// Rewrites linear layers, attention and what lies between them in the layout of the Neural Engine:
// four dimensions (batch, channels, 1, sequence), and one value for each head.
//
//   x: [1, 16, 64]                                    ->   c = transpose(x, [0, 2, 1])
//   y = linear(x, weight: [256, 64])                       d = reshape(c, [1, 64, 1, 16])
//   z = gelu(y)                                            y = conv(d, weight: [256, 64, 1, 1])
//                                                          z = gelu(y)
//
//   q, k, v: [1, 2, 16, 32]                           ->   for each head, q, k, v: [1, 32, 1, 16]
//   s = matmul(q, k, transpose_y = true)                   s = einsum(transpose(k, [0, 3, 2, 1]), q)
//   p = softmax(s, axis = -1)                              p = softmax(s, axis = 1)
//   y = matmul(p, v)                                       y = einsum(v, p)
//
// This is the form that Apple asks authors to write (machinelearning.apple.com/research/
// neural-engine-transformers; apple/ml-ane-transformers, reference/multihead_attention.py;
// apple/coreai-models, neural_engine_rules.md: "BC1S format", "Conv2d instead of Linear", "Per-head
// attention", "Softmax placement").
//
// The pass walks through the operations in order and represents values by chunks (chunks.h):
// tensors of four dimensions, one for each index of the dimensions that are divided (heads). A
// linear layer starts a chain of chunks. Operations that work in any layout, according to their
// rows in lib/ops, are then applied to each chunk. A value is restored where another operation or an
// output needs its own order of dimensions. Reshapes and transposes that divide channels into heads
// and reorder dimensions cost nothing.
//
// Must not fire without --optimize-for ane, in functions with a range of sizes (a warning), on nested
// blocks, on weights that are not constant, on values with several dynamic dimensions, on more than
// 64 chunks, or if a reshape mixes dimensions. No numeric effect, except for the order of summation.
//
// Operators by name: products, normalisation, reshapes and slices, which need rewrites of their own
// in this layout.
#include <array>
#include <map>
#include <unordered_map>
#include <unordered_set>

#include "lib/analysis/cost.h"
#include "lib/ir/arithmetic.h"
#include "lib/passes/chunks.h"

namespace mlc::passes {
namespace {

// Returns whether `value` reaches a product of two values through few operations.
bool FeedsProduct(const Value* value) {
  constexpr size_t kMost = 64;
  std::vector<const Value*> open = {value};
  std::unordered_set<const Value*> seen = {value};
  for (size_t i = 0; i < open.size() && i < kMost; ++i)
    for (const Operation* user : open[i]->users) {
      if (user->is("matmul") && !user->constant("x") && !user->constant("y")) return true;
      if (user->def->fp16.kind & Fp16::kProduct && user->def->Find("weight") >= 0) continue;
      for (const std::unique_ptr<Value>& result : user->results)
        if (seen.insert(result.get()).second) open.push_back(result.get());
    }
  return false;
}

class ChannelsFirst {
 public:
  ChannelsFirst(Function& function, PassContext& context)
      : function_(function), context_(context) {}

  bool Run() {
    std::vector<Operation*> operations(function_.body.operations().begin(),
                                       function_.body.operations().end());
    std::vector<Operation*> converted;
    for (Operation* op : operations)
      if (!op->def->is_const() && !op->results.empty() && Convert(op)) converted.push_back(op);
    if (!has_products_) {
      // Without a product, the rewrite would only move transposes.
      const std::unordered_set<const Operation*> own(operations.begin(), operations.end());
      std::vector<Operation*> made;
      for (Operation* op : function_.body.operations())
        if (!own.contains(op)) made.push_back(op);
      for (auto it = made.rbegin(); it != made.rend(); ++it) function_.body.Erase(*it);
      return false;
    }
    for (auto it = converted.rbegin(); it != converted.rend(); ++it) Restore(*it);
    for (Operation* split : packed_) SeparateProjections(split);
    for (const auto* names : {&restored_names_, &names_})
      for (const auto& [value, name] : *names)
        if (!value->is_output()) function_.Rename(value, name);
    return true;
  }

 private:
  const Chunked* ChunkedOf(const Value* value) const {
    auto it = value ? chunked_.find(value) : chunked_.end();
    return it == chunked_.end() ? nullptr : &it->second;
  }

  bool Set(const Value* value, Roles roles, std::vector<Value*> chunks) {
    roles = WithoutOnes(std::move(roles), value->type.shape);
    chunked_[value] = {std::move(roles), std::move(chunks)};
    return true;
  }

  // Returns the chunks of a value for these roles: those that it has, or new ones. Empty if that is
  // not possible.
  std::vector<Value*> Divide(Builder& b, Value* value, Roles roles) {
    const Shape& shape = value->type.shape;
    roles = WithoutOnes(std::move(roles), shape);
    if (!IsPossible(roles, shape)) return {};
    if (const Chunked* chunked = ChunkedOf(value); chunked && chunked->roles == roles)
      return chunked->chunks;
    std::vector<Value*>& chunks = divided_[{value, roles}];
    if (chunks.empty()) chunks = Divided(b, value, roles);
    return chunks;
  }

  bool Convert(Operation* op) {
    for (const std::unique_ptr<Value>& result : op->results)
      if (!result->type.is_tensor() || result->type.shape.empty() ||
          !ShapeOperand(result->type.shape))
        return false;
    if (HasEffects(*op) || !op->blocks.empty()) return false;
    // The cast of an output stays, so that the value is restored in fp16 before it.
    if (IsCast(*op) && op->result()->is_output()) return false;
    Builder b = BuilderBefore(op, context_);
    if (op->is("linear")) return Linear(b, op, op->value("x"), op->value("weight"), false);
    if (op->is("matmul")) return Product(b, op);
    if (op->is("transpose")) return Transpose(b, op);
    if (op->is("layer_norm")) return LayerNorm(b, op);
    if (Reshapes(*op)) return Reshape(b, op);
    return OnDivided(b, op) || InAnyLayout(b, op);
  }

  // y = x times the transposed weight, or times the weight if it is `stored_by_input`.
  bool Linear(Builder& b, Operation* op, Value* x, Value* weight, bool stored_by_input) {
    if (!x || !weight || !weight->is_constant() || weight->type.rank() != 2) return false;
    if (x->type.shape.empty() || !IsFloat(x->type.dtype) || x->type.dtype != weight->type.dtype ||
        x->is_constant())
      return false;
    const Chunked* chunked = ChunkedOf(x);
    Roles roles = RolesOfFeatures(x);
    if (chunked && chunked->chunks.size() == 1 &&
        (chunked->roles.back() == Role::kChannel ||
         (chunked->roles.back() == Role::kNone &&
          !std::ranges::count(chunked->roles, Role::kChannel))))
      roles = chunked->roles;
    if (roles.empty()) return false;
    roles.back() = Role::kChannel;
    Roles result = roles;
    if (!IsPossible(WithoutOnes(result, op->result()->type.shape), op->result()->type.shape))
      return false;
    std::vector<Value*> chunks = Divide(b, x, roles);
    if (chunks.empty()) return false;
    const Tensor matrix =
        stored_by_input ? weight->constant().Transposed({1, 0}) : weight->constant();
    const Dims& dims = matrix.dims();
    Builder::Args args = {
        {"x", chunks[0]},
        {"weight", b.Const(matrix.Reshaped({dims[0], dims[1], 1, 1}), weight->name)},
        {"pad_type", "valid"}};
    if (op->def->Find("bias") >= 0 && op->has("bias")) {
      if (!op->constant("bias")) return false;
      args.emplace_back("bias", op->arg("bias")[0]);
    }
    has_products_ = true;
    return Set(op->result(), result, {Named(b.Make("conv", std::move(args)), op->result())});
  }

  // The dimensions of a matrix operand: rows [M] and columns [K] of x, [K] and [N] of y.
  struct Matrix {
    Value* value;
    size_t rows, columns;
  };
  static Matrix MatrixOf(const Operation* op, std::string_view param, std::string_view flag) {
    Value* value = op->value(param);
    if (!value || value->type.rank() < 2) return {nullptr, 0, 0};
    const size_t rank = value->type.shape.size();
    const Tensor transposed = op->constant_or_default(flag);
    if (!transposed) return {nullptr, 0, 0};
    return transposed.Bool(0) ? Matrix{value, rank - 1, rank - 2}
                              : Matrix{value, rank - 2, rank - 1};
  }

  bool Product(Builder& b, Operation* op) {
    const Matrix x = MatrixOf(op, "x", "transpose_x"), y = MatrixOf(op, "y", "transpose_y");
    if (!x.value || !y.value) return false;
    if (y.value->is_constant() && x.columns + 1 == x.value->type.shape.size()) {
      // Leading dimensions of 1 do not matter, if the result has no more of them than x.
      const Dims& dims = y.value->constant().dims();
      const auto leading = dims.end() - 2;
      if (std::all_of(dims.begin(), leading, [](int64_t size) { return size == 1; }) &&
          op->result()->type.rank() == x.value->type.rank()) {
        Value* matrix =
            dims.size() == 2
                ? y.value
                : b.Const(y.value->constant().Reshaped({leading, dims.end()}), y.value->name);
        return Linear(b, op, x.value, matrix, y.rows < y.columns);
      }
    }
    if (!ChunkedOf(x.value) && !ChunkedOf(y.value)) return false;
    if (!IsFloat(x.value->type.dtype) || x.value->type.dtype != y.value->type.dtype) return false;
    const bool constant = y.value->is_constant();
    // The leading dimensions have common roles; those of the matrices are channels and width.
    const Shape& shape = op->result()->type.shape;
    const size_t rank = shape.size();
    Roles roles(rank, Role::kNone);
    for (const Matrix& m : {x, y})
      if (const Chunked* chunked = ChunkedOf(m.value))
        for (size_t i = 0; i + 2 < m.value->type.shape.size(); ++i) {
          const size_t at = i + rank - m.value->type.shape.size();
          const Role role = chunked->roles[i];
          if (role == Role::kNone) continue;
          if (role != Role::kBatch && role != Role::kDivided) return false;
          if (roles[at] != Role::kNone && roles[at] != role) return false;
          roles[at] = role;
        }
    for (size_t i = 0; i + 2 < rank; ++i) {
      if (roles[i] == Role::kNone && !(shape[i] == Dim(1)))
        roles[i] = i == 0 && !constant && !std::ranges::count(roles, Role::kBatch) ? Role::kBatch
                                                                                   : Role::kDivided;
      for (const Matrix& m : {x, y}) {
        const Shape& own = m.value->type.shape;
        if (roles[i] == Role::kBatch &&
            (i + own.size() < rank || !(own[i + own.size() - rank] == shape[i])))
          return false;
      }
    }
    roles[rank - 2] = Role::kWidth;
    roles[rank - 1] = Role::kChannel;
    if (!IsPossible(WithoutOnes(roles, shape), shape)) return false;
    const std::vector<Value*> left = MatrixChunks(b, x, roles);
    if (left.empty()) return false;
    std::vector<Value*> chunks;
    if (constant) {
      if (std::ranges::count(roles, Role::kBatch)) return false;
      const std::vector<Value*> weights = WeightsOf(b, y);
      if (weights.empty()) return false;
      ForEachChunk(roles, shape, [&](const std::vector<int64_t>& index) {
        chunks.push_back(
            b.Make("conv", {{"x", left[IndexOf(index, roles, shape, x.value->type.shape)]},
                            {"weight", weights[IndexOf(index, roles, shape, y.value->type.shape)]},
                            {"pad_type", "valid"}}));
      });
      has_products_ = true;
      return Set(op->result(), roles, NamedChunks(std::move(chunks), op->result()));
    }
    const std::vector<Value*> right = MatrixChunks(b, y, roles);
    if (right.empty()) return false;
    ForEachChunk(roles, shape, [&](const std::vector<int64_t>& index) {
      Value* first = right[IndexOf(index, roles, shape, y.value->type.shape)];
      Value* second = left[IndexOf(index, roles, shape, x.value->type.shape)];
      chunks.push_back(b.Make("einsum", {{"values", std::vector<Value*>{first, second}},
                                         {"equation", "bkhc,bchq->bkhq"}}));
    });
    has_products_ = true;
    return Set(op->result(), roles, NamedChunks(std::move(chunks), op->result()));
  }

  // The matrices of a constant operand, such as those of experts, as weights of convolutions; empty
  // if there are too many for operations of their own.
  static std::vector<Value*> WeightsOf(Builder& b, const Matrix& m) {
    constexpr int64_t kMostWeights = 32;
    const Dims dims = m.value->constant().dims();
    const int64_t rows = dims[dims.size() - 2], columns = dims.back(),
                  count = ElementCount(dims) / (rows * columns);
    if (count > kMostWeights) return {};
    const Tensor flat = m.value->constant().Reshaped({count, rows, columns});
    const bool stored_by_input = m.rows < m.columns;
    std::vector<Value*> weights;
    for (int64_t i = 0; i < count; ++i) {
      Tensor matrix = flat.Rows(i, i + 1).Reshaped({rows, columns});
      if (stored_by_input) matrix = matrix.Transposed({1, 0});
      weights.push_back(b.Const(matrix.Reshaped({matrix.dims()[0], matrix.dims()[1], 1, 1}),
                                fmt::format("{}_{}", m.value->name, i)));
    }
    return weights;
  }

  // The chunks of an operand of a product: x as (batch, K, 1, M), y as (batch, N, 1, K).
  std::vector<Value*> MatrixChunks(Builder& b, const Matrix& m, const Roles& result) {
    const size_t rank = m.value->type.shape.size();
    Roles roles(rank, Role::kNone);
    for (size_t i = 0; i + 2 < rank; ++i) roles[i] = result[i + result.size() - rank];
    const size_t channel = m.columns, width = m.rows;
    roles[channel] = Role::kChannel;
    roles[width] = Role::kWidth;
    // A chunk in the other order is transposed, so that earlier operations keep their layout.
    const Chunked* chunked = ChunkedOf(m.value);
    if (chunked) {
      Roles swapped = roles;
      std::swap(swapped[channel], swapped[width]);
      if (chunked->roles == WithoutOnes(swapped, m.value->type.shape) &&
          chunked->roles != WithoutOnes(roles, m.value->type.shape)) {
        std::vector<Value*> chunks;
        for (Value* chunk : chunked->chunks) {
          Value*& swapped = swapped_[chunk];
          if (!swapped) swapped = Transposed(b, chunk, {0, 3, 2, 1});
          chunks.push_back(swapped);
        }
        return chunks;
      }
    }
    return Divide(b, m.value, roles);
  }

  bool Transpose(Builder& b, Operation* op) {
    Value* x = op->value("x");
    auto perm = ConstantAxes(*op, "perm", op->result()->type.rank());
    if (!x || !perm) return false;
    const Chunked* chunked = ChunkedOf(x);
    if (!chunked) {
      // A transpose that moves channels to the end is not needed by chunks.
      Roles roles;
      if (*perm == std::vector<int64_t>{0, 2, 3, 1})
        roles = {Role::kBatch, Role::kChannel, Role::kHeight, Role::kWidth};
      else if (*perm == std::vector<int64_t>{0, 2, 1})
        roles = {Role::kBatch, Role::kChannel, Role::kWidth};
      else
        return false;
      if (!IsFloat(x->type.dtype) || x->is_constant()) return false;
      std::vector<Value*> chunks = Divide(b, x, roles);
      if (chunks.empty()) return false;
      Roles moved;
      for (int64_t axis : *perm) moved.push_back(roles[static_cast<size_t>(axis)]);
      return Set(op->result(), moved, chunks);
    }
    Roles roles;
    for (int64_t axis : *perm) roles.push_back(chunked->roles[static_cast<size_t>(axis)]);
    if (!IsPossible(roles, op->result()->type.shape)) return false;
    // The divided dimensions may change their order.
    std::vector<Value*> chunks;
    const Shape& from = x->type.shape;
    ForEachChunk(roles, op->result()->type.shape, [&](const std::vector<int64_t>& index) {
      int64_t at = 0;
      for (size_t i = 0; i < from.size(); ++i)
        if (chunked->roles[i] == Role::kDivided)
          at = at * from[i].constant() +
               index[static_cast<size_t>(std::ranges::find(*perm, static_cast<int64_t>(i)) -
                                         perm->begin())];
      chunks.push_back(chunked->chunks[static_cast<size_t>(at)]);
    });
    return Set(op->result(), roles, std::move(chunks));
  }

  bool LayerNorm(Builder& b, Operation* op) {
    const Chunked* chunked = ChunkedOf(op->value("x"));
    if (!chunked) return false;
    auto axes = ConstantAxes(*op, "axes", op->result()->type.rank());
    if (!axes || axes->size() != 1) return false;
    const Role role = chunked->roles[static_cast<size_t>((*axes)[0])];
    if (role == Role::kNone || role == Role::kDivided) return false;
    std::vector<Value*> chunks;
    for (Value* chunk : chunked->chunks) {
      Builder::Args args = ArgsWithout(*op, {"x", "axes"});
      args.emplace_back("x", chunk);
      args.emplace_back("axes", Ints({PlaceOf(role)}));
      chunks.push_back(b.Make("layer_norm", std::move(args)));
    }
    return Set(op->result(), chunked->roles, NamedChunks(std::move(chunks), op->result()));
  }

  // A reshape that divides a dimension or joins adjacent ones.
  bool Reshape(Builder& b, Operation* op) {
    Value* x = op->value("x");
    // The result of a convolution of images, which attention divides into heads.
    if (x && !ChunkedOf(x) && DefinedBy(x, "conv") && x->type.rank() == 4 &&
        FeedsProduct(op->result()))
      Set(x, {Role::kBatch, Role::kChannel, Role::kHeight, Role::kWidth}, {x});
    const Chunked* chunked = ChunkedOf(x);
    if (!chunked) return false;
    const Shape &from = x->type.shape, &to = op->result()->type.shape;
    Roles roles(to.size(), Role::kNone);
    std::vector<int64_t> divisions;  // sizes of the dimensions that channels are divided into
    size_t i = 0, j = 0;
    auto skip = [](const Shape& shape, size_t& at) {
      while (at < shape.size() && shape[at] == Dim(1)) ++at;
    };
    for (skip(from, i), skip(to, j); i < from.size() || j < to.size(); skip(from, i), skip(to, j)) {
      if (i == from.size() || j == to.size()) return false;
      // The smallest groups of source and target dimensions with equal element counts.
      std::vector<size_t> source = {i++}, target = {j++};
      Dim left = from[source[0]], right = to[target[0]];
      while (!(left == right)) {
        if (!left.is_constant() || !right.is_constant()) return false;
        if (left.constant() < right.constant()) {
          if (skip(from, i); i == from.size()) return false;
          left = left * from[i];
          source.push_back(i++);
        } else {
          if (skip(to, j); j == to.size()) return false;
          right = right * to[j];
          target.push_back(j++);
        }
      }
      if (!RegroupRoles(
              chunked->roles, source, target, [&] { return FeedsProduct(op->result()); }, roles))
        return false;
      if (source.size() == 1 && chunked->roles[source[0]] == Role::kChannel)
        for (size_t d = 0; d + 1 < target.size(); ++d)
          divisions.push_back(to[target[d]].constant());
    }
    roles = WithoutOnes(roles, to);
    if (!IsPossible(roles, to)) return false;
    return Set(op->result(), roles,
               Regrouped(b, *chunked, from, roles, to, divisions, op->result()));
  }

  // The chunks of a reshaped value.
  std::vector<Value*> Regrouped(Builder& b, const Chunked& chunked, const Shape& from,
                                const Roles& roles, const Shape& to,
                                const std::vector<int64_t>& divisions, const Value* named) {
    std::vector<Value*> chunks = chunked.chunks;
    auto product = [](const std::vector<int64_t>& sizes) {
      int64_t total = 1;
      for (int64_t size : sizes) total *= size;
      return total;
    };
    const int64_t before = product(DividedSizes(chunked.roles, from)),
                  after = product(DividedSizes(roles, to));
    if (after < before) {
      std::vector<Value*> joined;
      const auto each = static_cast<size_t>(before / after);
      for (size_t i = 0; i < chunks.size(); i += each)
        joined.push_back(Concat(b,
                                {chunks.begin() + static_cast<std::ptrdiff_t>(i),
                                 chunks.begin() + static_cast<std::ptrdiff_t>(i + each)},
                                1));
      chunks = NamedChunks(std::move(joined), named);
    } else if (after > before) {
      // One dimension at a time: queries, keys and values first, then their heads.
      for (size_t i = 0; i < divisions.size(); ++i) {
        std::vector<Value*> parts;
        for (Value* chunk : chunks) {
          const int64_t channels = chunk->type.shape[1].constant() / divisions[i];
          const std::vector<Value*> made =
              Parts(b, chunk, std::vector<int64_t>(static_cast<size_t>(divisions[i]), channels), 1);
          if (i + 1 < divisions.size()) packed_.push_back(made[0]->def);
          parts.insert(parts.end(), made.begin(), made.end());
        }
        chunks = std::move(parts);
      }
    }
    Shape four = ShapeOfChunks(roles, to);
    if (after > 1) four[1] = four[1].constant() / after;
    for (Value*& chunk : chunks)
      if (!(chunk->type.shape == four))
        chunk = b.Make("reshape", {{"x", chunk}, {"shape", ShapeOperand(four)}});
    return chunks;
  }

  // Operations that select, repeat or add the indices of a divided dimension.
  bool OnDivided(Builder& b, Operation* op) {
    if (op->def->Find("x") < 0) return false;
    const Value* x = op->value("x");
    const Chunked* chunked = ChunkedOf(x);
    if (!chunked) return false;
    if (op->is("tile")) return Tile(op, *chunked);
    if (op->is("split")) return Split(op, *chunked);
    if (op->is("slice_by_index")) return Slice(op, *chunked);
    if (op->is("reduce_sum")) return Sum(b, op, *chunked);
    return false;
  }

  // The sum over a divided dimension, such as that of experts, adds chunks.
  bool Sum(Builder& b, Operation* op, const Chunked& chunked) {
    const Shape& from = op->value("x")->type.shape;
    auto axes = ConstantAxes(*op, "axes", static_cast<int>(from.size()));
    const Tensor keep = op->constant_or_default("keep_dims");
    if (!axes || axes->size() != 1 || !keep) return false;
    const auto axis = static_cast<size_t>((*axes)[0]);
    if (chunked.roles[axis] != Role::kDivided) return false;
    std::map<std::vector<int64_t>, Value*> sums;  // by the indices of the other dimensions
    size_t place = 0;
    ForEachChunk(chunked.roles, from, [&](std::vector<int64_t> index) {
      index[axis] = 0;
      Value*& sum = sums[index];
      Value* chunk = chunked.chunks[place++];
      sum = sum ? Binary(b, "add", sum, chunk) : chunk;
    });
    std::vector<Value*> chunks;
    for (const auto& [index, sum] : sums) chunks.push_back(sum);
    Roles roles = chunked.roles;
    roles[axis] = Role::kNone;
    if (!keep.Bool(0)) roles.erase(roles.begin() + static_cast<std::ptrdiff_t>(axis));
    return Set(op->result(), std::move(roles), NamedChunks(std::move(chunks), op->result()));
  }

  // Tiling a dimension of 1, or a divided one, uses the same chunks again.
  bool Tile(Operation* op, const Chunked& chunked) {
    const Tensor reps = op->constant("reps");
    const Shape &from = op->value("x")->type.shape, &to = op->result()->type.shape;
    if (!reps) return false;
    Roles roles = chunked.roles;
    for (size_t i = 0; i < roles.size(); ++i) {
      if (reps.Int(static_cast<int64_t>(i)) == 1) continue;
      if (roles[i] == Role::kNone) roles[i] = Role::kDivided;
      if (roles[i] != Role::kDivided) return false;
    }
    if (!IsPossible(roles, to)) return false;
    std::vector<Value*> chunks;
    ForEachChunk(roles, to, [&](const std::vector<int64_t>& index) {
      int64_t at = 0;
      for (size_t i = 0; i < from.size(); ++i)
        if (chunked.roles[i] == Role::kDivided)
          at = at * from[i].constant() + index[i] % from[i].constant();
      chunks.push_back(chunked.chunks[static_cast<size_t>(at)]);
    });
    return Set(op->result(), roles, std::move(chunks));
  }

  bool Split(Operation* op, const Chunked& chunked) {
    const Shape& from = op->value("x")->type.shape;
    auto axis = ConstantAxes(*op, "axis", static_cast<int>(from.size()));
    if (!axis || chunked.roles[static_cast<size_t>((*axis)[0])] != Role::kDivided) return false;
    int64_t first = 0;
    for (const std::unique_ptr<Value>& result : op->results) {
      Take(chunked, from, static_cast<size_t>((*axis)[0]), first, 1, result.get(), chunked.roles,
           result->type.shape[static_cast<size_t>((*axis)[0])].constant());
      first += result->type.shape[static_cast<size_t>((*axis)[0])].constant();
    }
    return true;
  }

  // Gives `result` the chunks first, first + step, ... of a divided dimension.
  void Take(const Chunked& chunked, const Shape& from, size_t axis, int64_t first, int64_t step,
            const Value* result, Roles roles, int64_t count) {
    std::vector<Value*> chunks;
    ForEachChunk(chunked.roles, from, [&](const std::vector<int64_t>& index) {
      const int64_t at = index[axis] - first;
      if (at % step != 0 || at / step < 0 || at / step >= count) return;
      int64_t place = 0;
      for (size_t i = 0; i < from.size(); ++i)
        if (chunked.roles[i] == Role::kDivided) place = place * from[i].constant() + index[i];
      chunks.push_back(chunked.chunks[static_cast<size_t>(place)]);
    });
    Set(result, std::move(roles), std::move(chunks));
  }

  // A slice of one divided dimension.
  bool Slice(Operation* op, const Chunked& chunked) {
    const Shape &from = op->value("x")->type.shape, &to = op->result()->type.shape;
    const Tensor begin = op->constant("begin"), end = op->constant("end");
    if (!begin || !end) return false;
    auto number = [&](std::string_view param, size_t i, int64_t otherwise) {
      const Tensor tensor = op->constant(param);
      return tensor ? tensor.Int(static_cast<int64_t>(i)) : otherwise;
    };
    auto flag = [&](std::string_view param, size_t i) {
      const Tensor tensor = op->constant(param);
      return tensor && tensor.Bool(static_cast<int64_t>(i));
    };
    std::optional<size_t> axis;
    Roles roles;
    for (size_t i = 0, j = 0; i < from.size(); ++i) {
      const bool squeezed = flag("squeeze_mask", i);
      const bool changed = squeezed || !(to[j] == from[i]) || number("stride", i, 1) != 1;
      if (changed && !(from[i] == Dim(1))) {
        if (chunked.roles[i] != Role::kDivided || axis) return false;
        axis = i;
      }
      if (!squeezed) roles.push_back(chunked.roles[i]), ++j;
      if (squeezed && i + 1 == from.size() && to.empty()) return false;
    }
    if (!axis) return false;
    const int64_t size = from[*axis].constant(), step = number("stride", *axis, 1);
    int64_t first = begin.Int(static_cast<int64_t>(*axis));
    if (first < 0) first += size;
    if (flag("begin_mask", *axis)) first = 0;
    if (step < 1) return false;
    int64_t count = 1;
    if (!flag("squeeze_mask", *axis)) {
      size_t j = *axis;
      for (size_t i = 0; i < *axis; ++i) j -= flag("squeeze_mask", i);
      count = to[j].constant();
    }
    Take(chunked, from, *axis, first, step, op->result(), std::move(roles), count);
    return true;
  }

  // An operation that works in any layout, according to its row in lib/ops.
  bool InAnyLayout(Builder& b, Operation* op) {
    const Layout& row = op->def->layout;
    if (row.data[0].empty()) return false;
    size_t rank = 0;
    const Chunked* like = nullptr;
    auto roles_of = [](const Chunked& chunked) {
      return std::ssize(chunked.roles) - std::ranges::count(chunked.roles, Role::kNone);
    };
    auto each_operand = [&](auto&& f) {
      for (std::string_view param : row.data)
        if (!param.empty())
          for (const Operand& operand : op->arg(param)) f(param, operand);
    };
    bool possible = true;
    each_operand([&](std::string_view, const Operand& operand) {
      possible &= operand.type().is_tensor();
      if (possible) rank = std::max(rank, operand.type().shape.size());
    });
    if (!possible) return false;
    Shape widest(rank, 1);  // the shape to which all operands are broadcast
    each_operand([&](std::string_view, const Operand& operand) {
      const Shape& shape = operand.type().shape;
      for (size_t i = 0; i < shape.size(); ++i)
        if (!(shape[i] == Dim(1))) widest[i + rank - shape.size()] = shape[i];
      const Chunked* chunked = ChunkedOf(operand.value);
      if (chunked && chunked->roles.size() == rank &&
          (!like || roles_of(*like) < roles_of(*chunked)))
        like = chunked;
    });
    if (!like) return false;
    Roles roles = like->roles;
    for (size_t i = 0; i < rank; ++i) {
      // Broadcasting and concatenation give a dimension of 1 other sizes.
      const bool grows = op->result()->type.shape.size() == rank &&
                         !(op->result()->type.shape[i] == widest[i]) && widest[i] == Dim(1);
      if (roles[i] != Role::kNone || (widest[i] == Dim(1) && !grows)) continue;
      using enum Role;
      const std::vector<Role> choices = i + 1 == rank      ? std::vector<Role>{kChannel}
                                        : i == 0 && !grows ? std::vector<Role>{kBatch, kWidth}
                                                           : std::vector<Role>{kWidth, kBatch};
      auto free = std::ranges::find_if(choices,
                                       [&](Role role) { return !std::ranges::count(roles, role); });
      if (free == choices.end()) return false;
      roles[i] = *free;
    }
    if (!IsPossible(roles, widest)) return false;
    std::optional<ChunkArguments> others = ArgumentsForChunks(*op, roles);
    if (!others) return false;
    Roles kept;                   // of the results
    std::vector<size_t> sources;  // the dimension of the operands, for each of the results
    for (size_t d = 0; d < rank; ++d)
      if (!others->dropped.contains(static_cast<int64_t>(d))) {
        kept.push_back(roles[d]);
        sources.push_back(d);
      }
    for (const std::unique_ptr<Value>& result : op->results) {
      const Shape& shape = result->type.shape;
      if (shape.size() != kept.size() || !IsPossible(WithoutOnes(kept, shape), shape)) return false;
      for (size_t d = 0; d < kept.size(); ++d)
        if (kept[d] == Role::kDivided && !(shape[d] == widest[sources[d]])) return false;
    }
    // The operands, as chunks.
    std::map<std::string_view, std::vector<std::vector<Operand>>> chunks;
    each_operand([&](std::string_view param, const Operand& operand) {
      std::vector<Operand> own = ChunksOf(b, *op, operand, roles);
      possible &= !own.empty();
      chunks[param].push_back(std::move(own));
    });
    if (!possible) return false;
    std::vector<std::vector<Value*>> results(op->results.size());
    ForEachChunk(roles, widest, [&](const std::vector<int64_t>& index) {
      Builder::Args args = others->args;
      for (auto& [param, operands] : chunks) {
        Operands chosen;
        size_t i = 0;
        for (const Operand& operand : op->arg(param)) {
          const std::vector<Operand>& own = operands[i++];
          chosen.push_back(
              own.size() == 1 ? own[0] : own[IndexOf(index, roles, widest, operand.type().shape)]);
        }
        Builder::Arg arg(param, chosen[0]);
        arg.operands = std::move(chosen);
        args.push_back(std::move(arg));
      }
      std::vector<Value*> made = b.MakeAll(op->def->name, std::move(args));
      if (op->is("split") && made[0]->def) packed_.push_back(made[0]->def);
      for (size_t i = 0; i < made.size(); ++i) results[i].push_back(made[i]);
    });
    for (size_t i = 0; i < results.size(); ++i) {
      Value* result = op->result(static_cast<int>(i));
      Set(result, kept, NamedChunks(std::move(results[i]), result));
    }
    return true;
  }

  // An operand of an operation whose results have `roles`: one for all chunks, or one for each.
  std::vector<Operand> ChunksOf(Builder& b, const Operation& op, const Operand& operand,
                                const Roles& roles) {
    const Shape& shape = operand.type().shape;
    const Tensor constant = operand.constant();
    if (constant && constant.size() == 1 && op.def->elementwise())
      return {shape.size() <= 4 ? operand : Operand(constant.Reshaped({1}))};
    Roles own;
    for (size_t i = 0; i < shape.size(); ++i) own.push_back(roles[i + roles.size() - shape.size()]);
    Value* value = operand.value ? operand.value : b.Const(constant);
    std::vector<Value*> chunks = Divide(b, value, own);
    return {chunks.begin(), chunks.end()};
  }

  Value* Named(Value* made, const Value* after) {
    if (made->def) names_.emplace_back(made, after->name);
    return made;
  }
  std::vector<Value*> NamedChunks(std::vector<Value*> chunks, const Value* after) {
    if (chunks.size() == 1) {
      Named(chunks[0], after);
      return chunks;
    }
    for (size_t i = 0; i < chunks.size(); ++i)
      if (chunks[i]->def) names_.emplace_back(chunks[i], fmt::format("{}_part_{}", after->name, i));
    return chunks;
  }

  // Restores the whole value for users that were not converted, then erases the original
  // operation.
  void Restore(Operation* op) {
    for (const std::unique_ptr<Value>& result : op->results) {
      if (!result->has_uses()) continue;
      Builder b = BuilderBefore(op, context_);
      Value* whole = Whole(b, chunked_.at(result.get()), result->type.shape);
      if (!CanReplace(result.get(), whole)) whole = b.Make("identity", {{"x", whole}});
      if (!result->is_output()) restored_names_.emplace_back(whole, result->name);
      ReplaceAllUses(result.get(), whole);
    }
    op->block->Erase(op);
  }

  // Replaces a convolution followed by a split, such as packed queries, keys and values, by one
  // convolution for each part.
  void SeparateProjections(Operation* split) {
    Operation* conv = DefinedBy(split->value("x"), "conv");
    auto axis = ConstantAxes(*split, "axis", 4);
    if (!conv || !axis || (*axis)[0] != 1 || SoleUser(conv->result()) != split) return;
    const Tensor weight = conv->constant("weight"), bias = conv->constant("bias");
    if (!weight || conv->constant_or_default("groups").Int(0) != 1 || (conv->has("bias") && !bias))
      return;
    Builder b = BuilderBefore(split, context_);
    b.SetLocation(conv->location);
    int64_t first = 0;
    for (const std::unique_ptr<Value>& part : split->results) {
      const int64_t count = part->type.shape[1].constant();
      auto rows = [&](const Tensor& tensor, std::string_view param) {
        return b.Const(tensor.Rows(first, first + count), fmt::format("{}_{}", part->name, param));
      };
      Builder::Args args = ArgsWithout(*conv, {"weight", "bias"});
      args.emplace_back("weight", rows(weight, "weight"));
      if (bias) args.emplace_back("bias", rows(bias, "bias"));
      Value* made = b.Make("conv", std::move(args));
      for (auto& [value, name] : names_)
        if (value == part.get()) value = made;
      ReplaceAllUses(part.get(), made);
      first += count;
    }
    std::erase_if(names_, [&](const auto& named) { return named.first == conv->result(); });
    EraseUnused(split);
  }

  Function& function_;
  PassContext& context_;
  std::unordered_map<const Value*, Chunked> chunked_;
  std::map<std::pair<const Value*, Roles>, std::vector<Value*>> divided_;
  std::unordered_map<const Value*, Value*> swapped_;
  std::vector<Operation*> packed_;  // splits of several projections
  std::vector<std::pair<Value*, std::string>> restored_names_, names_;
  bool has_products_ = false;
};

// Returns a symbol of the function's inputs that may have any size within a range, which the Neural
// Engine does not support (rule open-shape); "" if there is none.
std::string RangeOf(const Function& function) {
  for (const std::string& symbol : analysis::InputSymbols(function)) {
    const Symbol& sizes = function.symbols.at(symbol);
    if (sizes.enumerated.empty() && sizes.low < sizes.high) return symbol;
  }
  return "";
}

bool RunChannelsFirst(Program& program, PassContext& context) {
  if (context.optimize_for != analysis::Unit::kNeuralEngine) return false;
  return OnEachFunction(program, [&](Function& f) {
    if (const std::string symbol = RangeOf(f); !symbol.empty()) {
      context.diagnostics.Warn(
          Error("open-shape",
                "option 'optimize-for' ane: function {} stays as it is: {} is a range of sizes, "
                "and the Neural "
                "Engine needs fixed or listed ones",
                f.name, symbol)
              .Help("fix the size with option 'dim' {}=N, or list sizes: {}=A,B,C", symbol,
                    symbol));
      return false;
    }
    return ChannelsFirst(f, context).Run();
  });
}

}  // namespace

extern const PassDef kChannelsFirst = {
    "channels-first",
    "write linear layers and attention as the Neural Engine prefers them, if the program is for it",
    RunChannelsFirst};

}  // namespace mlc::passes

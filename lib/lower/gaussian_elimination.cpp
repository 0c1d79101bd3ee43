#include "lib/lower/gaussian_elimination.h"

#include "lib/ir/arithmetic.h"
#include "lib/ir/shape_tensors.h"

namespace mlc::lower {

namespace {

constexpr int64_t kMost = 64;  // rows

// The number of rows of square matrices.
int64_t SquareSize(const Value* x) {
  const Shape& shape = x->type.shape;
  int rank = x->type.rank();
  if (rank < 2 || shape[rank - 1] != shape[rank - 2] || !shape[rank - 1].is_constant())
    throw Error("bad-operand", "the input is {}, expected square matrices of static size",
                ToString(shape));
  int64_t n = shape[rank - 1].constant();
  if (n < 1 || n > kMost) throw Error("resource-limit", "unsupported matrix size {0} x {0}", n);
  return n;
}

Value* FirstColumn(Builder& b, Value* m) { return SliceOfSize(b, m, {0, 0, 0}, {-1, -1, 1}); }
Value* OtherColumns(Builder& b, Value* m) { return SliceOfSize(b, m, {0, 0, 1}, {-1, -1, -1}); }

struct Pivot {
  Value* place;  // [b, 1, 1], index of the pivot row
  Value* row;    // [b, 1, .], the pivot row
  Value* rest;   // the other rows, with the first row in place of the pivot row
};

// Selects the pivot of matrices [b, rows, .] with at least two rows, by the first column of the
// first `candidates` rows.
Pivot ChoosePivot(Builder& b, Value* m, int64_t rows, int64_t candidates) {
  Value* column = SliceOfSize(b, m, {0, 0, 0}, {-1, candidates, 1});
  Pivot pivot{};
  pivot.place = b.Make("reduce_argmax",
                       {{"x", b.Make("abs", {{"x", column}})}, {"axis", 1}, {"keep_dims", true}});
  Tensor places = Tensor::Of({1, rows, 1}, Consecutive(0, rows)).Cast(DType::kInt32);
  Value* is_pivot = Binary(b, "equal", pivot.place, b.Const(places));
  Value* chosen = b.Cast(is_pivot, m->type.dtype);
  pivot.row = Reduced(b, "reduce_sum", Binary(b, "mul", m, chosen), {1}, true);
  Value* first = SliceOfSize(b, m, {0, 0, 0}, {-1, 1, -1});
  Value* moved = Binary(b, "add", m, Binary(b, "mul", chosen, Binary(b, "sub", first, pivot.row)));
  pivot.rest = SliceOfSize(b, moved, {0, 1, 0}, {-1, -1, -1});
  return pivot;
}

}  // namespace

Value* Determinant(Builder& b, Value* x) {
  int rank = x->type.rank();
  int64_t n = SquareSize(x);
  Sizes batch(b);
  for (int i = 0; i < rank - 2; ++i) batch.AddDim(x, i);
  Value* m = WithShape(b, x, {-1, n, n});
  Value* det = nullptr;
  for (int64_t left = n; left > 0; --left) {
    Value* factor = m;
    if (left > 1) {
      Pivot pivot = ChoosePivot(b, m, left, left);
      factor = FirstColumn(b, pivot.row);
      Value* zero = Binary(b, "equal", factor, 0.0);
      Value* divisor = Select(b, zero, 1.0, factor);
      Value* times = Binary(b, "real_div", FirstColumn(b, pivot.rest), divisor);
      Value* removed = Binary(b, "mul", times, OtherColumns(b, pivot.row));
      m = Binary(b, "sub", OtherColumns(b, pivot.rest), removed);
      // Exchanging two rows changes the sign.
      Value* first = b.Cast(Binary(b, "equal", pivot.place, 0), x->type.dtype);
      Value* twice = Binary(b, "mul", first, 2.0);
      factor = Binary(b, "mul", factor, Binary(b, "sub", twice, 1.0));
    }
    det = det ? Binary(b, "mul", det, factor) : factor;
  }
  return rank == 2 ? Squeezed(b, det, {0, 1, 2})
                   : b.Make("reshape", {{"x", det}, {"shape", batch.Make()}});
}

// Appends the identity to the matrix. Each step eliminates the first column and moves the pivot row
// to the end, so that the inverse remains.
Value* Inverse(Builder& b, Value* x) {
  int64_t n = SquareSize(x);
  if (n == 1) return b.Make("inverse", {{"x", x}, {"epsilon", 0.0}});
  Sizes sizes(b);
  for (int i = 0; i < x->type.rank(); ++i) sizes.AddDim(x, i);
  Value* m = WithShape(b, x, {-1, n, n});
  std::vector<float> one(static_cast<size_t>(n * n), 0);
  for (int64_t i = 0; i < n; ++i) one[i * n + i] = 1;
  Value* zeros = Binary(b, "mul", m, 0.0);
  Value* identity =
      Binary(b, "add", zeros, b.Const(Tensor::Of<float>({1, n, n}, one).Cast(x->type.dtype)));
  m = Concat(b, {m, identity}, 2);
  for (int64_t left = n; left > 0; --left) {
    Pivot pivot = ChoosePivot(b, m, n, left);
    Value* divisor = FirstColumn(b, pivot.row);
    Value* row = Binary(b, "real_div", OtherColumns(b, pivot.row), divisor);
    Value* times = Binary(b, "mul", FirstColumn(b, pivot.rest), row);
    Value* rest = Binary(b, "sub", OtherColumns(b, pivot.rest), times);
    m = Concat(b, {rest, row}, 1);
  }
  return b.Make("reshape", {{"x", m}, {"shape", sizes.Make()}});
}

}  // namespace mlc::lower

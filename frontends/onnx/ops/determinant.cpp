// Det and Inverse, by elimination with the greatest element of each column as pivot.
#include "frontends/onnx/row.h"
#include "lib/ir/arithmetic.h"
#include "lib/ir/sizes.h"

namespace mlc::onnx {

namespace {

constexpr int64_t kMost = 64;  // rows: every step is some operations

// The rows of the input's matrices, which are square.
int64_t SquareSize(Node& node) {
  const Shape& shape = node.shape();
  int rank = node.rank();
  if (rank < 2 || shape[rank - 1] != shape[rank - 2] || !shape[rank - 1].is_constant())
    node.Fail("bad-operand", fmt::format("the input is {}, expected square matrices of known size",
                                         ToString(shape)));
  int64_t n = shape[rank - 1].constant();
  if (n < 1 || n > kMost) node.Fail("resource-limit", fmt::format("matrices of {0} x {0}", n));
  return n;
}

// Rows and columns of matrices [b, ., .]; a size of -1 is all that follow.
Value* Part(Node& node, Value* m, std::vector<int64_t> begin, std::vector<int64_t> size) {
  return node.Make("slice_by_size", {{"x", m}, {"begin", Ints(begin)}, {"size", Ints(size)}});
}
Value* FirstColumn(Node& node, Value* m) { return Part(node, m, {0, 0, 0}, {-1, -1, 1}); }
Value* OtherColumns(Node& node, Value* m) { return Part(node, m, {0, 0, 1}, {-1, -1, -1}); }

struct Pivot {
  Value* place;  // [b, 1, 1], the row that was chosen
  Value* row;    // [b, 1, .]
  Value* rest;   // the other rows: the first one stands where the chosen one was
};

// Of matrices [b, rows, .] with at least two rows, by the first column of the first `candidates`.
Pivot ChoosePivot(Node& node, Value* m, int64_t rows, int64_t candidates) {
  Value* column = Part(node, m, {0, 0, 0}, {-1, candidates, 1});
  Pivot pivot{};
  pivot.place =
      node.Make("reduce_argmax",
                {{"x", node.Make("abs", {{"x", column}})}, {"axis", 1}, {"keep_dims", true}});
  std::vector<int64_t> places;
  for (int64_t i = 0; i < rows; ++i) places.push_back(i);
  Value* is_pivot = Binary(node, "equal", pivot.place,
                           node.Const(Tensor::Of({1, rows, 1}, places).Cast(DType::kInt32)));
  Value* chosen = node.builder().Cast(is_pivot, m->type.dtype);
  pivot.row =
      node.Make("reduce_sum",
                {{"x", Binary(node, "mul", m, chosen)}, {"axes", Ints({1})}, {"keep_dims", true}});
  Value* first = Part(node, m, {0, 0, 0}, {-1, 1, -1});
  Value* moved =
      Binary(node, "add", m, Binary(node, "mul", chosen, Binary(node, "sub", first, pivot.row)));
  pivot.rest = Part(node, moved, {0, 1, 0}, {-1, -1, -1});
  return pivot;
}

void Det(Node& node) {
  Value* x = node.In(0);
  int rank = node.rank();
  int64_t n = SquareSize(node);
  Sizes batch(node);
  for (int i = 0; i < rank - 2; ++i) batch.AddDim(x, i);
  Value* m = node.Make("reshape", {{"x", x}, {"shape", Ints({-1, n, n})}});
  Value* det = nullptr;
  for (int64_t left = n; left > 0; --left) {
    Value* factor = m;
    if (left > 1) {
      Pivot pivot = ChoosePivot(node, m, left, left);
      factor = FirstColumn(node, pivot.row);
      Value* zero = node.Make("equal", {{"x", factor}, {"y", 0.0}});
      Value* divisor = node.Make("select", {{"cond", zero}, {"a", 1.0}, {"b", factor}});
      Value* times = Binary(node, "real_div", FirstColumn(node, pivot.rest), divisor);
      m = Binary(node, "sub", OtherColumns(node, pivot.rest),
                 Binary(node, "mul", times, OtherColumns(node, pivot.row)));
      // Two rows that change places turn the sign.
      Value* first =
          node.builder().Cast(node.Make("equal", {{"x", pivot.place}, {"y", 0}}), x->type.dtype);
      Value* twice = node.Make("mul", {{"x", first}, {"y", 2.0}});
      factor = Binary(node, "mul", factor, node.Make("sub", {{"x", twice}, {"y", 1.0}}));
    }
    det = det ? Binary(node, "mul", det, factor) : factor;
  }
  node.Set(rank == 2 ? node.Make("squeeze", {{"x", det}, {"axes", Ints({0, 1, 2})}})
                     : node.Make("reshape", {{"x", det}, {"shape", batch.Make()}}),
           node.dtype());
}

// Beside the matrix stands the identity. Each step takes the first column away and puts the row of
// its pivot last, so that the inverse is left.
void Inverse(Node& node) {
  Value* x = node.In(0);
  int64_t n = SquareSize(node);
  if (n == 1) return node.Set(node.Make("inverse", {{"x", x}, {"epsilon", 0.0}}), node.dtype());
  Sizes sizes(node);
  for (int i = 0; i < node.rank(); ++i) sizes.AddDim(x, i);
  Value* m = node.Make("reshape", {{"x", x}, {"shape", Ints({-1, n, n})}});
  std::vector<float> one(static_cast<size_t>(n * n), 0);
  for (int64_t i = 0; i < n; ++i) one[i * n + i] = 1;
  Value* zeros = node.Make("mul", {{"x", m}, {"y", 0.0}});
  Value* identity =
      Binary(node, "add", zeros, node.Const(Tensor::Of<float>({1, n, n}, one).Cast(x->type.dtype)));
  m = node.Make("concat", {{"values", std::vector<Value*>{m, identity}}, {"axis", 2}});
  for (int64_t left = n; left > 0; --left) {
    Pivot pivot = ChoosePivot(node, m, n, left);
    Value* row =
        Binary(node, "real_div", OtherColumns(node, pivot.row), FirstColumn(node, pivot.row));
    Value* times = Binary(node, "mul", FirstColumn(node, pivot.rest), row);
    Value* rest = Binary(node, "sub", OtherColumns(node, pivot.rest), times);
    m = node.Make("concat", {{"values", std::vector<Value*>{rest, row}}, {"axis", 1}});
  }
  node.Set(node.Make("reshape", {{"x", m}, {"shape", sizes.Make()}}), node.dtype());
}

constexpr char kSquare[] = "square matrices of known size, up to 64";

constexpr NodeRow kRows[] = {
    NodeRow("Det", Det, 11).When(kSquare),
    NodeRow("Inverse", Inverse, 1, 0, "com.microsoft").When(kSquare),
};

}  // namespace

std::span<const NodeRow> DeterminantRows() { return kRows; }

}  // namespace mlc::onnx

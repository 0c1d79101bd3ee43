// Compares products in double with plain loops in the order that gemm.h defines: bit for bit, for
// each supported instruction set and several numbers of threads. Products in float are compared
// within rounding.
#include "lib/engine/gemm.h"

#include <random>

#include "test/catch.h"

namespace mlc::test {
using namespace engine;
namespace {

std::vector<float> Normal(int64_t count, uint32_t seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  std::vector<float> values(count);
  for (float& v : values) v = normal(random);
  return values;
}

// volatile: rounds at each step, however the compiler evaluates the expression.
double SumInOrder(double c, const std::vector<float>& a, const std::vector<float>& b, int64_t i,
                  int64_t j, int64_t k, int64_t n) {
  volatile double sum = c;
  for (int64_t p = 0; p < k; ++p) {
    volatile double product = double{a[i * k + p]} * double{b[p * n + j]};
    sum = sum + product;
  }
  return sum;
}

std::vector<float> Transposed(const std::vector<float>& x, int64_t rows, int64_t columns) {
  std::vector<float> y(x.size());
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t j = 0; j < columns; ++j) y[j * rows + i] = x[i * columns + j];
  return y;
}

}  // namespace

TEST_CASE("products in double are ordered sums") {
  struct Case {
    int64_t m, k, n;
  };
  for (auto [m, k, n] : {Case{1, 1, 1},
                         {1, 256, 16},
                         {6, 257, 17},
                         {7, 255, 15},
                         {5, 600, 33},
                         {13, 513, 31},
                         {2, 3, 100},
                         {3, 9, 64},
                         {4, 20, 48},
                         {1, 0, 3},
                         {0, 4, 3},
                         {3, 4, 0},
                         {100, 300, 130},
                         {61, 700, 120}}) {
    INFO(m << " x " << k << " x " << n);
    std::vector<float> a = Normal(m * k, 1), b = Normal(k * n, 2), some = Normal(m * n, 3),
                       a_turned = Transposed(a, m, k), b_turned = Transposed(b, k, n);
    std::vector<double> start(some.begin(), some.end()), expected(m * n);
    for (int64_t i = 0; i < m; ++i)
      for (int64_t j = 0; j < n; ++j)
        expected[i * n + j] = SumInOrder(start[i * n + j], a, b, i, j, k, n);
    for (const MatrixView& left : {MatrixView{a.data(), k, 1}, {a_turned.data(), 1, m}})
      for (const MatrixView& right : {MatrixView{b.data(), n, 1}, {b_turned.data(), 1, k}})
        for (const Columns& columns : {ColumnsOf(right, n), PackColumns(right, k, n)})
          for (const ProductLoops& loops : AvailableLoops())
            for (int threads : {1, 2, 5}) {
              std::vector<double> c = start;
              AddProduct(PackedRows(left, m, k), columns, n, c.data(), n, threads, loops.exact);
              CHECK(c == expected);
            }
  }
}

TEST_CASE("products in float agree within rounding") {
  for (auto [m, k, n] : {std::array<int64_t, 3>{1, 1, 1}, {7, 255, 15}, {13, 513, 31}}) {
    std::vector<float> a = Normal(m * k, 1), b = Normal(k * n, 2);
    for (const ProductLoops& loops : AvailableLoops()) {
      std::vector<float> c(m * n), turned = Transposed(b, k, n);
      AddProduct(PackedRows({a.data(), k}, m, k), ColumnsOf(MatrixView{b.data(), n}, n), n,
                 c.data(), n, 1, loops.tiles);
      for (int64_t i = 0; i < m; ++i)
        for (int64_t j = 0; j < n; ++j) {
          double sum = 0, size = 0;
          for (int64_t p = 0; p < k; ++p) {
            sum += double{a[i * k + p]} * b[p * n + j];
            size += std::fabs(double{a[i * k + p]} * b[p * n + j]);
          }
          CHECK(std::fabs(c[i * n + j] - sum) <= 1e-6 * size);
          CHECK(std::fabs(loops.dot(&a[i * k], &turned[j * k], k) - sum) <= 1e-6 * size);
        }
    }
  }
}

TEST_CASE("dot products in double are ordered sums") {
  for (int64_t count : {0, 1, 3, 4, 11, 64}) {
    constexpr int64_t kRows = 16;
    std::vector<float> a = Normal(kRows * (count + 1), 1), b = Normal(count, 2);
    const std::vector<double> x(b.begin(), b.end());
    for (const ProductLoops& loops : AvailableLoops()) {
      std::vector<double> sums(kRows, 0.5);
      loops.exact_dots(a.data(), count + 1, x.data(), count, sums.data());
      for (int64_t r = 0; r < kRows; ++r) {
        const std::vector<float> row(a.begin() + r * (count + 1), a.end());
        CHECK(sums[r] == SumInOrder(0.5, row, b, 0, 0, count, 1));
      }
    }
  }
}

TEST_CASE("products propagate special values") {
  const float inf = INFINITY, max = std::numeric_limits<float>::max(),
              tiny = std::numeric_limits<float>::denorm_min();
  // Calculated by hand; the second row overflows in the sum, the last one stays subnormal.
  std::vector<float> a = {inf, 1, max, max, tiny, 0}, b = {1, 1};
  for (const ProductLoops& loops : AvailableLoops()) {
    std::vector<float> c(3, 0.0f);
    std::vector<double> exact(3, 0.0);
    const PackedRows rows({a.data(), 2}, 3, 2);
    const Columns columns = ColumnsOf({b.data(), 1}, 1);
    AddProduct(rows, columns, 1, c.data(), 1, 1, loops.tiles);
    CHECK(c == std::vector<float>{inf, inf, tiny});
    AddProduct(rows, columns, 1, exact.data(), 1, 1, loops.exact);
    CHECK(exact == std::vector<double>{inf, 2.0 * max, tiny});
  }
}

}  // namespace mlc::test

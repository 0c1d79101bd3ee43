#include "lib/compress/assignment.h"

#include <random>

#include "lib/compress/quantise.h"
#include "lib/ir/encoding.h"
#include "test/catch.h"

using namespace mlc;
using namespace mlc::compress;

namespace {

std::vector<float> Normal(int64_t count, float scale, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal(0, scale);
  std::vector<float> values(static_cast<size_t>(count));
  for (float& value : values) value = normal(random);
  return values;
}

// Inputs whose columns have a common part, different sizes and a mean.
std::vector<float> Vectors(int64_t count, int64_t columns, unsigned seed) {
  std::vector<float> vectors = Normal(count * columns, 1, seed);
  for (int64_t v = 0; v < count; ++v)
    for (int64_t c = 0; c < columns; ++c) {
      float& x = vectors[v * columns + c];
      x = (x + 2 * vectors[v * columns]) / static_cast<float>(1 + c % 5) + (c % 3 == 0 ? 1.F : 0.F);
    }
  return vectors;
}

InputStatistics StatisticsOf(const std::vector<float>& vectors, int64_t columns, int64_t sets = 1) {
  InputSums sums(sets, columns, true);
  const int64_t part = std::ssize(vectors) / sets;
  for (int64_t set = 0; set < sets; ++set)
    sums.Add(set,
             std::span(vectors).subspan(static_cast<size_t>(set * part), static_cast<size_t>(part)),
             1);
  return sums.Means();
}

// The mean over vectors of the squared error of the outputs, summed over rows, by its definition.
double ErrorByDefinition(const std::vector<float>& numbers, const std::vector<float>& decoded,
                         const std::vector<float>& vectors, int64_t columns) {
  const int64_t rows = std::ssize(numbers) / columns, count = std::ssize(vectors) / columns;
  double sum = 0;
  for (int64_t v = 0; v < count; ++v)
    for (int64_t r = 0; r < rows; ++r) {
      double y = 0;
      for (int64_t c = 0; c < columns; ++c)
        y += static_cast<double>(numbers[r * columns + c] - decoded[r * columns + c]) *
             static_cast<double>(vectors[v * columns + c]);
      sum += y * y;
    }
  return sum / static_cast<double>(count);
}

}  // namespace

TEST_CASE("assignment: as good as trying all levels, or nearly") {
  constexpr int64_t kColumns = 6, kEntries = 4;
  double ours = 0, best = 0, nearest = 0;
  for (unsigned seed = 0; seed < 50; ++seed) {
    const std::vector<float> numbers = Normal(kColumns, 1, seed),
                             vectors = Vectors(40, kColumns, 100 + seed);
    const InputStatistics statistics = StatisticsOf(vectors, kColumns);
    Levels levels{.rows = 1,
                  .columns = kColumns,
                  .entries = kEntries,
                  .tables = {-1.5F, -0.5F, 0.4F, 1.6F},
                  .fixed = true};
    const std::vector<float> table = levels.tables;
    const Assigned made = Assign(numbers, levels, statistics, false, 1);
    double least = 1e300;
    for (int code = 0; code < 1 << (2 * kColumns); ++code) {
      std::vector<float> decoded;
      for (int64_t c = 0; c < kColumns; ++c) decoded.push_back(table[code >> (2 * c) & 3]);
      least = std::min(least, ErrorByDefinition(numbers, decoded, vectors, kColumns));
    }
    std::vector<float> decoded;
    for (const uint8_t code : made.codes) decoded.push_back(table[code]);
    INFO("seed " << seed);
    CHECK(made.error ==
          Approx(ErrorByDefinition(numbers, decoded, vectors, kColumns)).epsilon(1e-3));
    CHECK(made.error >= least * 0.999);
    CHECK(made.error <= made.nearest_error * 1.001);
    ours += made.error, best += least, nearest += made.nearest_error;
  }
  CHECK(ours < 1.4 * best);
  CHECK(nearest > 1.7 * best);
}

TEST_CASE("assignment: lowers the error of outputs in every scheme, with any number of threads") {
  constexpr int64_t kRows = 32, kColumns = 48;
  const Tensor weight = Tensor::Of({kRows, kColumns}, Normal(kRows * kColumns, 0.1F, 1));
  const std::vector<float> vectors = Vectors(300, kColumns, 2), others = Vectors(300, kColumns, 3);
  const InputStatistics statistics = StatisticsOf(vectors, kColumns);
  for (const char* scheme :
       {"int4:block=16", "int4:block=row", "int4:asym", "int4:block=tensor", "int8", "pal2",
        "pal4:group=8", "pal3:lut=int8", "pal3:scale=row", "pal4:vec=2", "pal4:group=16,vec=4",
        "sparse:0.5", "sparse:2:4", "sparse:0.5+pal4", "sparse:2:4+int4:block=16"}) {
    INFO(scheme);
    Request request{
        .scheme = ParseScheme(scheme), .axes = {"weight", 0, 1}, .half = false, .threads = 1};
    auto error_on = [&](const Quantised& made, const std::vector<float>& inputs) {
      const std::vector<double> x = weight.Doubles(), y = Dense(made.tensor).Doubles();
      return ErrorByDefinition({x.begin(), x.end()}, {y.begin(), y.end()}, inputs, kColumns);
    };
    const Quantised plain = Quantise(weight, request);
    request.inputs = &statistics;
    const Quantised made = Quantise(weight, request);
    CHECK(made.output_error == Approx(error_on(made, vectors)).epsilon(1e-3));
    CHECK(made.output_error < 0.8 * error_on(plain, vectors));
    CHECK(error_on(made, others) < 0.9 * error_on(plain, others));
    request.threads = 8;
    CHECK(Dense(Quantise(weight, request).tensor).Doubles() == Dense(made.tensor).Doubles());
  }
}

TEST_CASE("assignment: a bias takes the mean error") {
  constexpr int64_t kRows = 16, kColumns = 32;
  const Tensor weight = Tensor::Of({kRows, kColumns}, Normal(kRows * kColumns, 0.1F, 1));
  const std::vector<float> vectors = Vectors(200, kColumns, 2);
  const InputStatistics statistics = StatisticsOf(vectors, kColumns);
  const Quantised made = Quantise(weight, {.scheme = ParseScheme("pal2"),
                                           .axes = {"weight", 0, 1},
                                           .half = false,
                                           .inputs = &statistics,
                                           .bias = true});
  REQUIRE(made.bias.size() == kRows);
  const std::vector<double> x = weight.Doubles(), y = Dense(made.tensor).Doubles();
  for (int64_t r = 0; r < kRows; ++r) {
    double mean = 0;
    for (int64_t v = 0; v < 200; ++v)
      for (int64_t c = 0; c < kColumns; ++c)
        mean += (x[r * kColumns + c] - y[r * kColumns + c]) *
                static_cast<double>(vectors[v * kColumns + c]) / 200;
    CHECK(static_cast<double>(made.bias[r]) == Approx(mean).margin(1e-4));
  }
}

TEST_CASE("assignment: each set of inputs belongs to its rows") {
  // The second half of the rows is multiplied by inputs that only have the first column.
  constexpr int64_t kColumns = 8;
  std::vector<float> vectors = Vectors(100, kColumns, 5), second(vectors.size());
  for (size_t i = 0; i < second.size(); i += kColumns) second[i] = 1;
  vectors.insert(vectors.end(), second.begin(), second.end());
  const InputStatistics statistics = StatisticsOf(vectors, kColumns, 2);
  const std::vector<float> numbers = Normal(4 * kColumns, 1, 6);
  Levels levels{
      .rows = 4, .columns = kColumns, .rows_per_cell = 4, .entries = 2, .tables = {-1, 1}};
  const Assigned made = Assign(numbers, levels, statistics, false, 1);
  double error = 0;
  for (int64_t r = 2; r < 4; ++r) {
    const float e = numbers[r * kColumns] - levels.tables[made.codes[r * kColumns]];
    error += static_cast<double>(e * e);
  }
  std::vector<float> decoded;
  for (const uint8_t code : made.codes) decoded.push_back(levels.tables[code]);
  const std::vector<float> first(vectors.begin(), vectors.begin() + 100 * kColumns);
  CHECK(made.error ==
        Approx(error + ErrorByDefinition({numbers.begin(), numbers.begin() + 2 * kColumns},
                                         {decoded.begin(), decoded.begin() + 2 * kColumns}, first,
                                         kColumns))
            .epsilon(1e-2));
}

TEST_CASE("input statistics: means, and the sums of parts") {
  constexpr int64_t kColumns = 5;
  const std::vector<float> vectors = Vectors(60, kColumns, 9);
  const InputStatistics whole = StatisticsOf(vectors, kColumns);
  CHECK(whole.count == 60);
  for (int64_t a = 0; a < kColumns; ++a)
    for (int64_t b = 0; b < kColumns; ++b) {
      double product = 0, mean = 0;
      for (int64_t v = 0; v < 60; ++v) {
        mean += static_cast<double>(vectors[v * kColumns + a]) / 60;
        product += static_cast<double>(vectors[v * kColumns + a]) *
                   static_cast<double>(vectors[v * kColumns + b]) / 60;
      }
      CHECK(static_cast<double>(whole.mean[a]) == Approx(mean).margin(1e-5));
      CHECK(static_cast<double>(whole.products[a * kColumns + b]) == Approx(product).margin(1e-5));
    }
  // The order of calls does not matter, to the bit.
  InputSums forth(1, kColumns, true), back(1, kColumns, true), part(1, kColumns, true);
  auto add = [&](InputSums& sums, int64_t call, int threads) {
    sums.Add(0,
             std::span(vectors).subspan(static_cast<size_t>(call * 20 * kColumns), 20 * kColumns),
             threads);
  };
  for (const int64_t call : {0, 1, 2}) add(forth, call, 1);
  add(back, 2, 8);
  for (const int64_t call : {1, 0}) add(part, call, 8);
  back.Add(part);
  const InputStatistics one = forth.Means(), other = back.Means();
  CHECK(other.count == 60);
  CHECK((one.mean == other.mean && one.square == other.square && one.products == other.products));
  for (size_t i = 0; i < one.products.size(); ++i)
    CHECK(static_cast<double>(one.products[i]) ==
          Approx(static_cast<double>(whole.products[i])).margin(1e-5));
}

TEST_CASE("input statistics: numbers of any size") {
  using mlc::compress::FromFixed, mlc::compress::ToFixed;
  for (const double x : {0.0, 1.0, -1.5, 1e-15, -3e18, 123456.789})
    CHECK(FromFixed(ToFixed(x)) == Approx(x).epsilon(1e-4).margin(0x1p-64));
  CHECK(FromFixed(ToFixed(1e30)) == 0x1p62);
  CHECK(FromFixed(ToFixed(-INFINITY)) == -0x1p62);
  CHECK(FromFixed(ToFixed(NAN)) == 0);
}

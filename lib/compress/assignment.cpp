#include "lib/compress/assignment.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>

#include "lib/compress/vectors.h"
#include "lib/support/threads.h"

namespace mlc::compress {

namespace {

// Rows that are processed together, so that each row of H is read from the cache. A multiple of
// every length of vectors.
constexpr int64_t kTile = 8;

void AddScaled(float factor, const float* from, float* to, int64_t count) {
  for (int64_t i = 0; i < count; ++i) to[i] += factor * from[i];
}

double Dot(const float* a, const float* b, int64_t count) {
  double sum = 0;
  for (int64_t i = 0; i < count; ++i) sum += static_cast<double>(a[i]) * static_cast<double>(b[i]);
  return sum;
}

// H of one set; inputs that are always 0 count a little, so that their elements keep their values.
std::vector<float> MatrixOf(const InputStatistics& statistics, int64_t set, bool centered) {
  const int64_t n = statistics.columns;
  const auto begin = statistics.products.begin() + set * n * n;
  std::vector<float> h(begin, begin + n * n);
  if (centered) {
    const float* mean = &statistics.mean[set * n];
    for (int64_t r = 0; r < n; ++r)
      for (int64_t c = 0; c < n; ++c) h[r * n + c] -= mean[r] * mean[c];
  }
  double trace = 0;
  for (int64_t i = 0; i < n; ++i) trace += static_cast<double>(h[i * n + i]);
  const float least = static_cast<float>(std::max(trace / static_cast<double>(n) * 1e-6, 1e-30));
  for (int64_t i = 0; i < n; ++i) h[i * n + i] = std::max(h[i * n + i], least);
  return h;
}

// The upper triangle of the transpose of L, where H + damping = L'L for the columns in this order:
// e H e' is the sum over j of (sum over i <= j of L[j, i] e[i])^2. The errors of the columns before j
// are made up for if column j has the error -sum over i < j of L[j, i] e[i] / L[j, j].
std::vector<float> FactorOf(const std::vector<float>& h, const std::vector<int>& order,
                            int threads) {
  const auto n = static_cast<int64_t>(order.size());
  // The usual damping of GPTQ: one percent of the mean of the diagonal.
  double trace = 0;
  for (int64_t i = 0; i < n; ++i) trace += static_cast<double>(h[i * n + i]);
  const auto damping = static_cast<float>(0.01 * trace / static_cast<double>(n));
  std::vector<float> l(static_cast<size_t>(n * n));
  for (int64_t r = 0; r < n; ++r)
    for (int64_t c = 0; c <= r; ++c)
      l[r * n + c] = h[order[r] * n + order[c]] + (r == c ? damping : 0);
  // From the last row to the first, in panels whose rows are subtracted from the others at once.
  constexpr int64_t kPanel = 64;
  for (int64_t end = n; end > 0; end = std::max<int64_t>(end - kPanel, 0)) {
    const int64_t begin = std::max<int64_t>(end - kPanel, 0);
    for (int64_t j = end - 1; j >= begin; --j) {
      float* row = &l[j * n];
      for (int64_t k = end - 1; k > j; --k) AddScaled(-l[k * n + j], &l[k * n], row, j + 1);
      const float pivot = std::sqrt(std::max(row[j], damping * 1e-3F));
      for (int64_t c = 0; c < j; ++c) row[c] /= pivot;
      row[j] = pivot;
    }
    ParallelFor(begin, threads, [&](int64_t r) {
      for (int64_t k = end - 1; k >= begin; --k)
        AddScaled(-l[k * n + r], &l[k * n], &l[r * n], r + 1);
    });
  }
  for (int64_t r = 0; r < n; ++r)
    for (int64_t c = 0; c < r; ++c) l[c * n + r] = l[r * n + c];
  return l;
}

class Assigner {
 public:
  Assigner(std::span<const float> numbers, Levels& levels, const InputStatistics& statistics,
           bool centered, int threads)
      : numbers_(numbers),
        levels_(levels),
        statistics_(statistics),
        centered_(centered),
        threads_(threads),
        columns_(levels.columns),
        set_rows_(levels.rows / statistics.sets),
        cell_columns_(levels.columns / levels.cells_per_row),
        codes_(numbers.size()) {}

  Assigned Run() {
    Assigned assigned;
    for (int64_t set = 0; set < statistics_.sets; ++set)
      matrices_.push_back(MatrixOf(statistics_, set, centered_));
    Decode();
    assigned.energy = ForRows([&](int64_t first, int64_t rows, const std::vector<float>& h) {
      return EnergyOf(&numbers_[first * columns_], rows, h);
    });
    assigned.nearest_error = NearestAll();
    nearest_ = codes_;
    assigned.error = RoundAll();
    if (assigned.error > assigned.nearest_error) {
      codes_ = nearest_;
      assigned.error = DescendAll();
    }
    constexpr int kFits = 3;
    for (int fit = 0; fit < kFits && !levels_.fixed; ++fit) {
      const Levels before = levels_;
      const std::vector<uint8_t> codes = codes_;
      Fit();
      const double error = DescendAll();
      if (!(error < assigned.error)) {
        levels_ = before;
        codes_ = codes;
        break;
      }
      const bool small = error > 0.999 * assigned.error;
      assigned.error = error;
      if (small) break;
    }
    assigned.codes = levels_.vector > 1 ? CodesOfVectors() : std::move(codes_);
    return assigned;
  }

 private:
  int64_t CellOf(int64_t row, int64_t c) const {
    return row / levels_.rows_per_cell * levels_.cells_per_row + c / cell_columns_;
  }

  // ---- levels

  // Middles between the entries of tables, for finding the nearest one.
  void Decode() {
    if (levels_.entries == 0 || levels_.vector > 1) return;
    middles_.resize(levels_.tables.size());
    for (size_t i = 0; i + 1 < levels_.tables.size(); ++i)
      middles_[i] = (levels_.tables[i] + levels_.tables[i + 1]) / 2;
  }

  // Returns the code of the levels nearest to the numbers of the rows that share it, from `row` on.
  uint8_t Code(int64_t row, int64_t c, const float* numbers) const {
    if (levels_.vector == 1) return Code(row, c, *numbers);
    const int64_t size = levels_.entries * levels_.vector;
    const std::span table(&levels_.tables[CellOf(row, c) * size], static_cast<size_t>(size));
    return static_cast<uint8_t>(NearestVector(table, numbers, levels_.vector));
  }

  uint8_t Code(int64_t row, int64_t c, float x) const {
    const int64_t cell = CellOf(row, c);
    if (levels_.entries == 0) {
      const float zero = levels_.zeros.empty() ? 0 : levels_.zeros[cell];
      const float scale = levels_.scales[cell];
      const float q = std::nearbyint(x / scale + zero);
      return static_cast<uint8_t>(
          static_cast<int>(std::clamp(q, levels_.integers.low(), levels_.integers.high())));
    }
    if (!levels_.row_scales.empty()) x /= levels_.row_scales[row];
    const float* middles = &middles_[cell * levels_.entries];
    return static_cast<uint8_t>(std::lower_bound(middles, middles + levels_.entries - 1, x) -
                                middles);
  }

  float Step(uint8_t code, int64_t cell) const {
    const float zero = levels_.zeros.empty() ? 0 : levels_.zeros[cell];
    return static_cast<float>(levels_.integers.asymmetric ? static_cast<int>(code)
                                                          : static_cast<int8_t>(code)) -
           zero;
  }

  float ValueOf(int64_t row, int64_t c, uint8_t code) const {
    const int64_t cell = CellOf(row, c);
    if (levels_.entries == 0) return levels_.scales[cell] * Step(code, cell);
    const float entry =
        levels_.tables[(cell * levels_.entries + code) * levels_.vector + row % levels_.vector];
    return levels_.row_scales.empty() ? entry : entry * levels_.row_scales[row];
  }

  bool Kept(int64_t row, int64_t c) const {
    return levels_.kept.empty() || levels_.kept[row * columns_ + c];
  }

  float Current(int64_t row, int64_t c) const {
    return Kept(row, c) ? ValueOf(row, c, codes_[row * columns_ + c]) : 0;
  }

  // ---- sums over rows

  // Calls f for tiles of rows with the same inputs, in parallel, and adds what it returns.
  template <class F>
  double ForRows(F f) const {
    const int64_t tiles = (set_rows_ + kTile - 1) / kTile;
    std::vector<double> sums(static_cast<size_t>(tiles * statistics_.sets));
    ParallelFor(std::ssize(sums), threads_, [&](int64_t i) {
      const int64_t set = i / tiles, first = i % tiles * kTile;
      sums[i] = f(set * set_rows_ + first, std::min(kTile, set_rows_ - first), matrices_[set]);
    });
    return std::accumulate(sums.begin(), sums.end(), 0.0);
  }

  // Returns e H of rows.
  std::vector<float> Products(const float* e, int64_t rows, const std::vector<float>& h) const {
    std::vector<float> products(static_cast<size_t>(rows * columns_));
    for (int64_t j = 0; j < columns_; ++j)
      for (int64_t r = 0; r < rows; ++r)
        if (const float x = e[r * columns_ + j]; x != 0)
          AddScaled(x, &h[j * columns_], &products[r * columns_], columns_);
    return products;
  }

  double EnergyOf(const float* e, int64_t rows, const std::vector<float>& h) const {
    const std::vector<float> products = Products(e, rows, h);
    return Dot(e, products.data(), rows * columns_);
  }

  std::vector<float> ErrorsOf(int64_t first, int64_t rows) const {
    std::vector<float> e(static_cast<size_t>(rows * columns_));
    for (int64_t r = 0; r < rows; ++r)
      for (int64_t c = 0; c < columns_; ++c)
        e[r * columns_ + c] = numbers_[(first + r) * columns_ + c] - Current(first + r, c);
    return e;
  }

  double NearestAll() {
    return ForRows([&](int64_t first, int64_t rows, const std::vector<float>& h) {
      for (int64_t r = first; r < first + rows; r += levels_.vector)
        for (int64_t c = 0; c < columns_; ++c) {
          std::array<float, kTile> wanted;
          for (int64_t d = 0; d < levels_.vector; ++d) wanted[d] = numbers_[(r + d) * columns_ + c];
          SetCode(r, c, Code(r, c, wanted.data()));
        }
      return EnergyOf(ErrorsOf(first, rows).data(), rows, h);
    });
  }

  // The codes of vectors stand in each of their rows.
  void SetCode(int64_t row, int64_t c, uint8_t code) {
    for (int64_t d = 0; d < levels_.vector; ++d) codes_[(row + d) * columns_ + c] = code;
  }

  std::vector<uint8_t> CodesOfVectors() const {
    std::vector<uint8_t> codes;
    for (int64_t r = 0; r < levels_.rows; r += levels_.vector)
      codes.insert(codes.end(), codes_.begin() + r * columns_, codes_.begin() + (r + 1) * columns_);
    return codes;
  }

  // ---- assignment

  // Rounds column after column, those with the largest inputs first, and then descends.
  double RoundAll() {
    std::vector<std::vector<int>> orders;
    std::vector<std::vector<float>> factors;
    for (const std::vector<float>& h : matrices_) {
      std::vector<int> order(static_cast<size_t>(columns_));
      std::iota(order.begin(), order.end(), 0);
      std::ranges::stable_sort(order, {}, [&](int c) { return -h[c * columns_ + c]; });
      factors.push_back(FactorOf(h, order, threads_));
      orders.push_back(std::move(order));
    }
    return ForRows([&](int64_t first, int64_t rows, const std::vector<float>& h) {
      const int64_t set = first / set_rows_;
      const std::vector<int>& order = orders[set];
      // The sums over the columns so far, by row.
      std::vector<float> sums(static_cast<size_t>(rows * columns_));
      for (int64_t j = 0; j < columns_; ++j) {
        const float* factor = &factors[set][j * columns_];
        const int64_t c = order[j];
        for (int64_t r = 0; r < rows; r += levels_.vector) {
          const int64_t row = first + r;
          std::array<float, kTile> wanted;
          for (int64_t d = 0; d < levels_.vector; ++d)
            wanted[d] =
                numbers_[(row + d) * columns_ + c] + sums[(r + d) * columns_ + j] / factor[j];
          if (Kept(row, c)) SetCode(row, c, Code(row, c, wanted.data()));
          for (int64_t d = 0; d < levels_.vector; ++d) {
            const float error = numbers_[(row + d) * columns_ + c] - Current(row + d, c);
            AddScaled(error, factor + j + 1, &sums[(r + d) * columns_ + j + 1], columns_ - j - 1);
          }
        }
      }
      return Descend(first, rows, h);
    });
  }

  double DescendAll() {
    return ForRows([&](int64_t first, int64_t rows, const std::vector<float>& h) {
      return Descend(first, rows, h);
    });
  }

  // Moves elements to the levels that lower the error most while the others stay; returns the error.
  double Descend(int64_t first, int64_t rows, const std::vector<float>& h) {
    constexpr int kSweeps = 12;
    std::vector<float> errors = ErrorsOf(first, rows);
    std::vector<float> slopes = Products(errors.data(), rows, h);
    for (int64_t r = 0; r < rows; r += levels_.vector) {
      const int64_t row = first + r;
      bool changed = true;
      for (int sweep = 0; sweep < kSweeps && changed; ++sweep) {
        changed = false;
        for (int64_t c = 0; c < columns_; ++c) {
          if (!Kept(row, c)) continue;
          const float diagonal = h[c * columns_ + c];
          std::array<float, kTile> wanted, changes;
          for (int64_t d = 0; d < levels_.vector; ++d) {
            const int64_t at = (r + d) * columns_ + c;
            // With this error the sum would be least.
            const float best = errors[at] - slopes[at] / diagonal;
            wanted[d] = numbers_[(row + d) * columns_ + c] - best;
          }
          const uint8_t code = Code(row, c, wanted.data());
          if (code == codes_[row * columns_ + c]) continue;
          // The change of the sum. Rounding may make a level look nearer than it is.
          float gain = 0;
          for (int64_t d = 0; d < levels_.vector; ++d) {
            const int64_t at = (r + d) * columns_ + c;
            changes[d] =
                numbers_[(row + d) * columns_ + c] - ValueOf(row + d, c, code) - errors[at];
            gain += changes[d] * (2 * slopes[at] + changes[d] * diagonal);
          }
          if (!(gain < 0)) continue;
          SetCode(row, c, code);
          for (int64_t d = 0; d < levels_.vector; ++d) {
            errors[(r + d) * columns_ + c] += changes[d];
            AddScaled(changes[d], &h[c * columns_], &slopes[(r + d) * columns_], columns_);
          }
          changed = true;
        }
      }
    }
    return EnergyOf(errors.data(), rows, h);
  }

  // ---- scales and tables

  // Fits the scales and tables to the integers: they minimise the error of the rows that share them.
  // Sums are over chunks of rows, whose number does not depend on that of the threads.
  void Fit() {
    // Rows with the same unknowns: those of a cell, and of vectors only every so many.
    const int64_t stride = levels_.vector, sharing = levels_.rows_per_cell / stride;
    const int64_t unknowns = levels_.entries > 0 ? levels_.entries : levels_.cells_per_row;
    constexpr int64_t kMostUnknowns = 256, kChunks = 16;
    if (unknowns > kMostUnknowns) return;
    const int64_t parts = levels_.rows / sharing,
                  chunk = std::max<int64_t>((sharing + kChunks - 1) / kChunks, 1),
                  chunks = (sharing + chunk - 1) / chunk;
    // A few parts at a time, because equations are large.
    constexpr int64_t kMostNumbers = int64_t{1} << 23;
    const int64_t batch = std::max<int64_t>(kMostNumbers / (chunks * unknowns * unknowns), 1);
    for (int64_t begin = 0; begin < parts; begin += batch) {
      const int64_t count = std::min(batch, parts - begin);
      std::vector<Equations> all(static_cast<size_t>(count * chunks), Equations(unknowns));
      ParallelFor(std::ssize(all), threads_, [&](int64_t i) {
        const int64_t part = begin + i / chunks, first = i % chunks * chunk,
                      top = part / stride * levels_.rows_per_cell + part % stride;
        for (int64_t k = first; k < std::min(first + chunk, sharing); ++k) {
          const int64_t row = top + k * stride;
          AddRow(row, matrices_[row / set_rows_], all[i]);
        }
      });
      ParallelFor(count, threads_, [&](int64_t i) {
        for (int64_t c = 1; c < chunks; ++c) all[i * chunks].Add(all[i * chunks + c]);
        const int64_t part = begin + i;
        Take(all[i * chunks],
             levels_.entries > 0
                 ? &levels_.tables[part / stride * unknowns * stride + part % stride]
                 : &levels_.scales[part * unknowns]);
      });
    }
    // Codes of a table are found by order, so that entries ascend.
    if (levels_.entries > 0)
      ParallelFor(levels_.rows / levels_.rows_per_cell, threads_,
                  [&](int64_t cell) { Sort(cell); });
    Decode();
  }

  // Normal equations of least squares.
  class Equations {
   public:
    explicit Equations(int64_t n)
        : n_(n), matrix_(static_cast<size_t>(n * n)), right_(static_cast<size_t>(n)) {}
    double* row(int64_t u) { return &matrix_[u * n_]; }
    double& right(int64_t u) { return right_[u]; }
    void Add(const Equations& other) {
      for (size_t i = 0; i < matrix_.size(); ++i) matrix_[i] += other.matrix_[i];
      for (size_t i = 0; i < right_.size(); ++i) right_[i] += other.right_[i];
    }
    bool unused(int64_t u) const { return matrix_[u * n_ + u] == 0; }

    // Cholesky; empty if the matrix is singular.
    std::vector<double> Solve() const {
      std::vector<double> m = matrix_, x = right_;
      double trace = 0;
      for (int64_t u = 0; u < n_; ++u) trace += m[u * n_ + u];
      for (int64_t u = 0; u < n_; ++u) {
        if (unused(u)) m[u * n_ + u] = 1, x[u] = 0;
        m[u * n_ + u] += trace / static_cast<double>(n_) * 1e-9;
      }
      for (int64_t j = 0; j < n_; ++j) {
        for (int64_t k = 0; k < j; ++k) m[j * n_ + j] -= m[j * n_ + k] * m[j * n_ + k];
        if (!(m[j * n_ + j] > 0)) return {};
        m[j * n_ + j] = std::sqrt(m[j * n_ + j]);
        for (int64_t i = j + 1; i < n_; ++i) {
          for (int64_t k = 0; k < j; ++k) m[i * n_ + j] -= m[i * n_ + k] * m[j * n_ + k];
          m[i * n_ + j] /= m[j * n_ + j];
        }
      }
      for (int64_t i = 0; i < n_; ++i) {
        for (int64_t k = 0; k < i; ++k) x[i] -= m[i * n_ + k] * x[k];
        x[i] /= m[i * n_ + i];
      }
      for (int64_t i = n_ - 1; i >= 0; --i) {
        for (int64_t k = i + 1; k < n_; ++k) x[i] -= m[k * n_ + i] * x[k];
        x[i] /= m[i * n_ + i];
      }
      return x;
    }

   private:
    int64_t n_;
    std::vector<double> matrix_, right_;
  };

  // Stores the solution of equations in scales or in entries of a table, which are `vector` apart.
  void Take(const Equations& equations, float* values) const {
    const std::vector<double> solution = equations.Solve();
    for (int64_t u = 0; u < std::ssize(solution); ++u) {
      if (equations.unused(u)) continue;
      const auto exact = static_cast<float>(solution[u]);
      const float value = levels_.entries > 0 ? RoundedTo(levels_.stored, exact)
                                              : RoundedScale(levels_.stored, exact);
      // A scale keeps its sign, because the range of integers is not symmetric.
      float& old = values[u * levels_.vector];
      const bool usable =
          std::isfinite(value) && (levels_.entries > 0 || (value != 0 && (value > 0) == (old > 0)));
      if (usable) old = value;
    }
  }

  // The unknown that an element depends on, relative to those of its row, and its factor.
  std::pair<int64_t, float> TermOf(int64_t row, int64_t c) const {
    const uint8_t code = codes_[row * columns_ + c];
    if (levels_.entries == 0) return {c / cell_columns_, Step(code, CellOf(row, c))};
    return {code, levels_.row_scales.empty() ? 1 : levels_.row_scales[row]};
  }

  void AddRow(int64_t row, const std::vector<float>& h, Equations& equations) const {
    const int64_t unknowns = levels_.entries > 0 ? levels_.entries : levels_.cells_per_row;
    // Row u: the sum of the rows of H that belong to the unknown u, with their factors.
    std::vector<float> sums(static_cast<size_t>(unknowns * columns_));
    std::vector<std::pair<int64_t, float>> terms(static_cast<size_t>(columns_));
    std::vector<uint8_t> used(static_cast<size_t>(unknowns));
    for (int64_t c = 0; c < columns_; ++c) {
      if (!Kept(row, c)) continue;
      terms[c] = TermOf(row, c);
      used[terms[c].first] = 1;
      AddScaled(terms[c].second, &h[c * columns_], &sums[terms[c].first * columns_], columns_);
    }
    for (int64_t u = 0; u < unknowns; ++u) {
      if (!used[u]) continue;
      const float* sum = &sums[u * columns_];
      double* to = equations.row(u);
      for (int64_t c = 0; c < columns_; ++c)
        to[terms[c].first] += static_cast<double>(terms[c].second) * static_cast<double>(sum[c]);
      equations.right(u) += Dot(sum, &numbers_[row * columns_], columns_);
    }
  }

  void Sort(int64_t cell) {
    const int64_t n = levels_.entries, length = levels_.vector;
    float* values = &levels_.tables[cell * n * length];
    std::vector<int> order(static_cast<size_t>(n));
    std::iota(order.begin(), order.end(), 0);
    std::ranges::stable_sort(order, {}, [&](int i) { return values[i * length]; });
    if (std::ranges::is_sorted(order)) return;
    std::vector<float> sorted;
    std::vector<uint8_t> place(static_cast<size_t>(n));
    for (int64_t i = 0; i < n; ++i) {
      const float* entry = values + order[i] * length;
      sorted.insert(sorted.end(), entry, entry + length);
      place[order[i]] = static_cast<uint8_t>(i);
    }
    std::ranges::copy(sorted, values);
    const int64_t begin = cell * levels_.rows_per_cell * columns_;
    for (int64_t i = begin; i < begin + levels_.rows_per_cell * columns_; ++i)
      codes_[i] = place[codes_[i]];
  }

  const std::span<const float> numbers_;
  Levels& levels_;
  const InputStatistics& statistics_;
  const bool centered_;
  const int threads_;
  const int64_t columns_, set_rows_, cell_columns_;
  std::vector<std::vector<float>> matrices_;  // by set
  std::vector<float> middles_;
  std::vector<uint8_t> codes_, nearest_;
};

}  // namespace

Assigned Assign(std::span<const float> numbers, Levels& levels, const InputStatistics& statistics,
                bool centered, int threads) {
  return Assigner(numbers, levels, statistics, centered, threads).Run();
}

std::vector<float> Compensated(std::span<const float> numbers, std::span<const uint8_t> kept,
                               int64_t rows, const InputStatistics& statistics, bool centered,
                               int threads) {
  constexpr int kSweeps = 20;
  const int64_t n = statistics.columns, set_rows = rows / statistics.sets;
  std::vector<float> made(numbers.begin(), numbers.end());
  for (int64_t set = 0; set < statistics.sets; ++set) {
    std::vector<float> h = MatrixOf(statistics, set, centered);
    // Damping as for integers: directions that the samples do not show stay as they are.
    double trace = 0;
    for (int64_t c = 0; c < n; ++c) trace += static_cast<double>(h[c * n + c]);
    for (int64_t c = 0; c < n; ++c)
      h[c * n + c] += static_cast<float>(0.01 * trace / static_cast<double>(n));
    ParallelFor(set_rows, threads, [&](int64_t i) {
      const int64_t first = (set * set_rows + i) * n;
      std::vector<float> slope(static_cast<size_t>(n));
      for (int64_t c = 0; c < n; ++c)
        if (!kept[first + c]) {
          made[first + c] = 0;
          AddScaled(numbers[first + c], &h[c * n], slope.data(), n);
        }
      for (int sweep = 0; sweep < kSweeps; ++sweep)
        for (int64_t c = 0; c < n; ++c) {
          if (!kept[first + c]) continue;
          const float change = slope[c] / h[c * n + c];  // of the element; its error falls
          if (change == 0) continue;
          made[first + c] += change;
          AddScaled(-change, &h[c * n], slope.data(), n);
        }
    });
  }
  return made;
}

OutputError OutputErrorOf(std::span<const float> numbers, std::span<const float> decoded,
                          int64_t rows, const InputStatistics& statistics, bool centered,
                          int threads) {
  const int64_t n = statistics.columns, set_rows = rows / statistics.sets;
  std::vector<OutputError> sums(static_cast<size_t>(rows));
  for (int64_t set = 0; set < statistics.sets; ++set) {
    std::vector<float> h,
        diagonal(statistics.square.begin() + set * n, statistics.square.begin() + (set + 1) * n);
    const float* mean = &statistics.mean[set * n];
    if (!statistics.products.empty()) h = MatrixOf(statistics, set, centered);
    if (centered)
      for (int64_t c = 0; c < n; ++c) diagonal[c] = std::max(diagonal[c] - mean[c] * mean[c], 0.F);
    auto energy = [&](const float* x) {
      double sum = 0;
      if (h.empty()) {
        for (int64_t c = 0; c < n; ++c)
          sum += static_cast<double>(x[c]) * static_cast<double>(x[c]) *
                 static_cast<double>(diagonal[c]);
        return sum;
      }
      std::vector<float> product(static_cast<size_t>(n));
      for (int64_t c = 0; c < n; ++c)
        if (x[c] != 0) AddScaled(x[c], &h[c * n], product.data(), n);
      return Dot(x, product.data(), n);
    };
    ParallelFor(set_rows, threads, [&](int64_t i) {
      const int64_t row = set * set_rows + i;
      const float* x = &numbers[row * n];
      std::vector<float> e(static_cast<size_t>(n));
      for (int64_t c = 0; c < n; ++c) e[c] = x[c] - decoded[row * n + c];
      sums[row] = {.error = energy(e.data()), .energy = energy(x)};
    });
  }
  OutputError total;
  for (const OutputError& one : sums) total.error += one.error, total.energy += one.energy;
  return total;
}

}  // namespace mlc::compress

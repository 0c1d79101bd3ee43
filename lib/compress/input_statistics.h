// lib/compress/input_statistics.h - the inputs of a weight: what its columns are multiplied by.
//
// The output error of a compressed weight is the sum over its rows of e H e', where e is the error
// of the row and H the mean of x x' over the vectors x that the weight is multiplied by.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace mlc::compress {

// Columns are those of the view [outputs, inputs, kernel ...] of a weight. The groups of a
// convolution and the matrices of a batch have different inputs: set s belongs to the s-th part of
// the rows.
struct InputStatistics {
  int64_t sets = 1, columns = 0;
  int64_t count = 0;                // vectors of each set
  std::vector<float> mean, square;  // [sets, columns]; the means of x and of x^2
  // [sets, columns, columns], the means of x x'; empty if there are too many columns.
  std::vector<float> products;

  explicit operator bool() const { return count > 0; }
};

// Shrinks the covariances of different columns towards 0, the more the fewer vectors they are estimated
// from; means and variances stay. Weights would otherwise be fitted to the samples where a layer has
// few vectors, such as the last one of a classifier, with one for each picture.
void ShrinkCovariances(InputStatistics& inputs);

// More columns, or sets with as many products, have no products: their matrices and the equations
// with them would be too large.
inline constexpr int64_t kMostColumnsWithProducts = 4608;

// A number in units of 2^-64, so that sums are exact: they do not depend on their order, and those
// of parts add up to that of the whole.
__extension__ using Fixed = __int128;
Fixed ToFixed(double x);  // NaN becomes 0, and large magnitudes 2^62
double FromFixed(Fixed x);

// Sums over vectors. The result does not depend on the order of the calls of Add, nor on the number
// of threads; it does depend on which vectors are added in one call.
class InputSums {
 public:
  InputSums() = default;
  InputSums(int64_t sets, int64_t columns, bool products);

  int64_t sets() const { return sets_; }
  int64_t columns() const { return columns_; }
  bool has_products() const { return !products_.empty(); }
  // Adds vectors [count, columns] of one set.
  void Add(int64_t set, std::span<const float> vectors, int threads);
  // Adds the sums of other vectors of as many sets and columns.
  void Add(const InputSums& other);
  InputStatistics Means() const;

  // The parts of the sums, for files.
  std::span<int64_t> counts() { return counts_; }          // by set
  std::span<Fixed> sums() { return sums_; }                // [sets, columns]
  std::span<Fixed> square_sums() { return square_sums_; }  // [sets, columns]
  std::span<Fixed> products() { return products_; }        // [sets, the upper triangle by rows]

 private:
  int64_t triangle() const { return columns_ * (columns_ + 1) / 2; }

  int64_t sets_ = 0, columns_ = 0;
  std::vector<int64_t> counts_;
  std::vector<Fixed> sums_, square_sums_, products_;
};

}  // namespace mlc::compress

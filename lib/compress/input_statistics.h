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

// More columns, or sets with as many products, have no products: their matrices and the equations
// with them would be too large.
inline constexpr int64_t kMostColumnsWithProducts = 4608;

// Sums over vectors. The order of additions, and so the result, does not depend on the number of
// threads.
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

 private:
  int64_t sets_ = 0, columns_ = 0;
  std::vector<int64_t> counts_;             // by set
  std::vector<double> sums_, square_sums_;  // [sets, columns]
  std::vector<float> products_;             // [sets, columns, columns]; the upper triangle
};

}  // namespace mlc::compress

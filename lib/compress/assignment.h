// lib/compress/assignment.h - integers and indices that minimise the output error of a weight.
//
// The nearest level of each element minimises the error of the weight. The error of the output is
// smaller if the errors of the elements of a row compensate each other for the inputs that occur:
//   1. columns are rounded one after the other, and each takes the errors of those before it into
//      account (GPTQ, which is Babai's nearest plane algorithm with the Cholesky factor of H);
//   2. elements change to other levels as long as that lowers the error (coordinate descent);
//   3. scales and tables are fitted to the integers by least squares, and elements changed again.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "lib/compress/input_statistics.h"
#include "lib/compress/rounding.h"
#include "lib/compress/scales.h"

namespace mlc::compress {

// The values that the elements of a weight [rows, columns] may have. A cell is a part of one row, or
// a number of whole rows, that shares a scale or a table.
struct Levels {
  int64_t rows = 0, columns = 0;
  int64_t cells_per_row = 1, rows_per_cell = 1;  // one of them is 1

  // Integers: scale * (q - zero), by cell; no zeros: 0.
  Integers integers;
  std::vector<float> scales, zeros;
  // Palettes: tables of `entries` ascending values, by cell, times a scale by row, if there are any.
  int64_t entries = 0;  // 0: integers
  // Rows that share their codes, one after the other: an entry has a value for each of them.
  int64_t vector = 1;
  std::vector<float> tables, row_scales;
  bool fixed = false;  // tables are not fitted, as those of int8 entries

  // 0: the element is 0, and has no level. Empty: all elements have levels.
  std::vector<uint8_t> kept;
  Stored stored = Stored::kFp32;  // the precision of scales and tables
};

struct Assigned {
  std::vector<uint8_t> codes;  // [rows / vector, columns]; signed integers as two's complement
  // Sums over rows of e H e' and w H w'.
  double error = 0, energy = 0;
  double nearest_error = 0;  // with the nearest levels, before scales and tables were fitted
};

// `numbers` are the elements of the weight, [rows, columns]; `statistics` must have products. With
// `centered`, the mean of the inputs is subtracted: a bias corrects its error. Changes the scales
// and tables of `levels`.
Assigned Assign(std::span<const float> numbers, Levels& levels, const InputStatistics& statistics,
                bool centered, int threads);

// The elements that are kept (not 0 in `kept`) of a weight whose others become 0, changed so that
// they make up for the others as far as the inputs allow; a few steps of Gauss-Seidel.
std::vector<float> Compensated(std::span<const float> numbers, std::span<const uint8_t> kept,
                               int64_t rows, const InputStatistics& statistics, bool centered,
                               int threads);

// The error and energy of the output for a weight and what stands for it, both [rows, columns]. If
// the statistics have no products, the columns count as independent.
struct OutputError {
  double error = 0, energy = 0;
};
OutputError OutputErrorOf(std::span<const float> numbers, std::span<const float> decoded,
                          int64_t rows, const InputStatistics& statistics, bool centered,
                          int threads);

}  // namespace mlc::compress

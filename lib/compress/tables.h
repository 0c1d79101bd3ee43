// lib/compress/tables.h - the table of values that represents a set of numbers best.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "lib/compress/points.h"
#include "lib/compress/rounding.h"

namespace mlc::compress {

// Entries as they are stored, in ascending order, the last repeated if there are fewer values. With
// int8 entries, the table is scale * entry.
struct Table {
  std::vector<float> entries;    // decoded
  std::vector<int8_t> integers;  // of an int8 table
  float scale = 0;               // of an int8 table
  double error = 0;              // weighted squared error
  double rounding = 0;           // what the entries lose of it against the means of their numbers
};

// The table of `size` entries with the smallest error for finite points (clusters.h), rounded to
// its storage; numbers are assigned to the rounded entries, and these are fitted once more. Few
// points are divided so that the rounded entries are best.
Table BestTable(const Points& points, int size, bool int8_entries, Stored stored);

// The middles between the entries: one fewer.
std::vector<float> MiddlesOf(std::span<const float> entries);
// Writes the index of the nearest entry for each number, in bytes; the lower one of two.
void AssignNearest(std::span<const float> middles, std::span<const float> numbers, std::byte* out);

}  // namespace mlc::compress

// lib/analysis/cost.h - what running a function takes, counted.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "lib/ir/program.h"

namespace mlc {

// Sizes of open dimensions by symbol.
using SymbolSizes = std::map<std::string, int64_t>;

// The type with numbers for its dimensions; a symbol without a size counts 1.
Type Sized(Type type, const SymbolSizes& sizes);

// Multiply-adds that take as long as writing an element does, about.
inline constexpr double kWorkOfElement = 8;

struct Cost {
  double multiply_adds = 0;
  double elements = 0;  // that operations write
  double inputs = 0;    // elements of a function's inputs
};
// At these sizes; a symbol without one counts 1. A loop's body counts as often as it runs where its
// test says so, else eight times; of two branches the dearer counts.
Cost CostOf(const Function& function, const SymbolSizes& sizes);
// How often a loop runs that counts up from 0 to what its condition compares with; of others a guess.
double Trips(const Operation& loop, const SymbolSizes& sizes);
// Of an operation that is run once, without what is in its blocks.
Cost CostOf(const Operation& op, const SymbolSizes& sizes);

}  // namespace mlc

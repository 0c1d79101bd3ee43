// lib/analysis/cost.h - estimates the work of running a function.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "lib/ir/program.h"

namespace mlc::analysis {

// Sizes of dynamic dimensions by symbol.
using SymbolSizes = std::map<std::string, int64_t>;

// Returns the symbols of the inputs' sizes, each once; all other sizes depend on data.
std::vector<std::string> InputSymbols(const Function& function);

// Returns the type with numbers for its symbols; a symbol without a size counts as 1.
Type Sized(Type type, const SymbolSizes& sizes);

// The approximate number of multiply-adds in the time that writing one element takes.
inline constexpr double kWorkOfElement = 8;

struct Cost {
  double multiply_adds = 0;
  double elements = 0;  // elements that operations write
  double inputs = 0;    // elements of the function's inputs
};
// Returns the cost at these sizes; a symbol without a size counts as 1. A loop body counts once per
// iteration if the trip count follows from the loop's condition, else eight times. Of two branches
// the more expensive one counts.
Cost CostOf(const Function& function, const SymbolSizes& sizes);
// Returns the trip count of a loop that counts up from 0 to the operand of its comparison, or an
// estimate for other loops.
double Trips(const Operation& loop, const SymbolSizes& sizes);
// Returns the cost of one execution of the operation, without its nested blocks.
Cost CostOf(const Operation& op, const SymbolSizes& sizes);
// Calls visit(op, number of executions) for each operation in program order; those in nested blocks
// come before the operation that contains them. Of two branches both are visited.
void ForEachExecution(const Function& function, const SymbolSizes& sizes,
                      const std::function<void(const Operation&, double)>& visit);

}  // namespace mlc::analysis

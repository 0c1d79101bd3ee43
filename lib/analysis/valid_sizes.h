// lib/analysis/valid_sizes.h - finds the sizes of dynamic input dimensions for which a function is
// valid.
//
// Type inference with symbols does not prove that every size is valid: an input that is
// downsampled, upsampled and added to the original requires even sizes. Type inference with numbers
// decides this as far as sizes determine it; errors that depend on data are not found.
#pragma once

#include <map>
#include <optional>
#include <string>

#include "lib/ir/program.h"

namespace mlc::analysis {

// Returns the error of type inference for these sizes (one per symbol of the inputs), or nothing if
// they are valid. An output without elements is an error, too.
std::optional<Error> SizeError(const Function& function,
                               const std::map<std::string, int64_t>& sizes);

// Returns the smallest sizes that were found to be valid together, or the lower bounds if they are
// valid or no valid sizes were found.
std::map<std::string, int64_t> SmallestSizes(const Function& function);

// If the lower bounds of the inputs' symbols are not valid, raises them to the smallest valid
// sizes. Adds a note about each change, and about invalid sizes within the bounds. If several
// symbols are valid only in certain combinations, changes nothing and adds a warning with examples.
// Throws Error "input-shape" if there is one symbol and no valid size was found, or if an
// enumerated size is not valid; its help gives the --dim option that fixes it.
void NarrowOpenSizes(Function& function, Diagnostics& diagnostics);

}  // namespace mlc::analysis

// lib/analysis/open_sizes.h - which sizes of its inputs' open dimensions a function can compute.
//
// That a program could be inferred for a symbol does not mean that it computes each of its sizes: what
// is halved and doubled again meets the original at even sizes only. Inference for given numbers
// tells, as far as sizes alone do; what hangs on data passes.
#pragma once

#include <map>
#include <optional>
#include <string>

#include "lib/ir/program.h"

namespace mlc {

// What inference says against these sizes, one for each symbol of the inputs; nothing when it is
// content. An output without elements is wrong, too.
std::optional<Error> SizeError(const Function& function,
                               const std::map<std::string, int64_t>& sizes);

// The smallest that are found to be computed together: the lower bounds, where those can be, or where
// none are found.
std::map<std::string, int64_t> SmallestSizes(const Function& function);

// Raises the lower bounds of the inputs' symbols to the smallest sizes that can be computed, where
// those that they have cannot. Notes say so, and where sizes between the bounds cannot. Where several
// symbols have sizes only together, none is raised, and a warning names some. Error "input-shape"
// where no size of an only symbol is found, or a listed one cannot be computed; the --dim to give
// stands in its help.
void NarrowOpenSizes(Function& function, Diagnostics& diagnostics);

}  // namespace mlc

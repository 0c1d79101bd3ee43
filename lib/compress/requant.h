// lib/compress/requant.h - the weights of language models quantised anew (`--requant`).
#pragma once

#include <functional>
#include <string>

#include "lib/ir/import_options.h"
#include "lib/ir/tensor.h"
#include "lib/support/error.h"

namespace mlc {

// What becomes of a weight of that name, as ImportOptions::requant asks for it: a matrix of floats of 2048
// elements at least is quantised, and a decision says how far it is off; others stay. Empty: nothing is
// asked for. `diagnostics` must outlive it. Errors "usage" for a name that is no quantiser's,
// "target-too-old" where the target that is asked for has no operation for it.
std::function<Tensor(const Tensor& weights, const std::string& name)> Requantising(
    const ImportOptions& options, Diagnostics& diagnostics);

}  // namespace mlc

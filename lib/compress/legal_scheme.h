// lib/compress/legal_scheme.h - the scheme nearest to one that was asked for, which is legal for a
// weight.
#pragma once

#include <string>

#include "lib/compress/scheme.h"
#include "lib/ir/tensor.h"

namespace mlc::compress {

// Returns the scheme with the largest blocks and groups that are legal for a weight and at most as
// large as those of `scheme`, if they are at least half (of blocks: a quarter) as large; otherwise
// the next larger ones, up to a row or one table. `stepped` receives an explanation.
Scheme LegalScheme(const Scheme& scheme, const Dims& dims, const WeightOperand& axes,
                   std::string* stepped = nullptr);
// Before iOS18, scales may differ along one axis only: the matrices of a batch then share those of
// their rows. Returns the axes with which a weight is quantised.
WeightOperand LegalAxes(const Scheme& scheme, const Dims& dims, const WeightOperand& axes,
                        Opset target, std::string* stepped = nullptr);

}  // namespace mlc::compress

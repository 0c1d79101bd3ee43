// lib/networks/check_weights.h - checks a source's tensors for a network.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "lib/ir/tensor.h"

namespace mlc::networks {

// Returns the tensor in fp32 with these dims; it keeps its encoding. The number of leading
// dimensions of 1 may differ: ggml does not distinguish [1, n] from [n]. So may that of the dimensions
// of 1 behind a matrix: some store a linear layer [out, in] as a convolution [out, in, 1, 1]. `name`
// is its name in the source. Errors: "missing-tensor" if it is empty, "bad-tensor" for other dims or
// types other than floats.
Tensor CheckedWeight(const Tensor& tensor, const std::string& name, const Dims& dims);

// Throws the error "unused-tensor" if some of the names were not used: they belong to a part of the
// model that the network does not have. `model` is the owner of the tensors.
void CheckAllUsed(const std::string& model, const std::vector<std::string>& names,
                  const std::set<std::string>& used);

}  // namespace mlc::networks

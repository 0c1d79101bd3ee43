// lib/networks/weights.h - what every network asks of the tensors that a source has for it.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "lib/ir/tensor.h"

namespace mlc {

// The tensor in fp32 with these dims, which keeps its encoding. It may have more or fewer dimensions of 1
// in front: ggml does not tell [1, n] from [n]. `name` is what the source calls it, or would. Errors
// "missing-tensor" where it is empty, "bad-tensor" for other dims or elements that are no floats.
Tensor CheckedWeight(const Tensor& tensor, const std::string& name, const Dims& dims);

// What nobody read is a part of the model that the network does not have: Error "unused-tensor".
// `model` is whose tensors these are.
void CheckAllUsed(const std::string& model, const std::vector<std::string>& names,
                  const std::set<std::string>& used);

}  // namespace mlc

// tools/driver/lora.h - pairs of low rank beside the weights of layers (Hu et al. 2021, "LoRA: Low-rank
// adaptation of large language models").
//
//   y = linear(x, weight, bias)   ->   y = linear(x, weight + scale * up * down, bias)
//
// `down` is [rank, inputs], of a convolution [rank, inputs, kernel ...]; `up` is [outputs, rank].
#pragma once

#include <string>

#include "lib/ir/program.h"

namespace mlc::driver {

// Adds scale * up * down to a weight of linear or conv operations, in all functions; computes in
// double and rounds once. Error "bad-name", "bad-input" for other shapes, for other weights and for
// compressed ones.
void MergeLora(Program& program, const std::string& weight, const Tensor& down, const Tensor& up,
               double scale);

// Whether the weight is the tensor `source` of the source, in its order, and only linear and conv operations
// without groups multiply by it.
bool TakesLora(Program& program, const std::string& source);

// Adds operations that add scale * up * (down * x) to what each layer with this weight computes, with
// constants of the pair; the weight stays as it is. Replaces operations. Errors as of AddLoraInputs.
void AddLora(Program& program, const std::string& weight, const Tensor& down, const Tensor& up,
             double scale, Diagnostics& diagnostics);

// Adds the inputs "WEIGHT_lora_down" and "WEIGHT_lora_up" to each function with this weight, in its
// type, and the operations that add scale * up * (down * x) to what each layer computes. Replaces
// operations. Error "bad-name", "bad-input" as above; convolutions must not have groups.
void AddLoraInputs(Program& program, const std::string& weight, int64_t rank, double scale,
                   Diagnostics& diagnostics);

}  // namespace mlc::driver

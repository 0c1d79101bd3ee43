// lib/passes/quantise_activations.h - 8-bit activations of layers with the scheme w8a8.
//
//   y = conv(x, w)   ->   q = quantize(x, scale, output_dtype); d = dequantize(q, scale); y = conv(d, w)
//
// Pairs of quantize and dequantize surround convolutions and linear layers, as well as poolings and
// sums whose inputs come from such layers; an activation function belongs to the layer before it. A
// value that both follows one layer and precedes another has one pair. Outputs of the model are not
// quantised.
#pragma once

#include <set>

#include "lib/compress/compression.h"
#include "lib/passes/pass.h"

namespace mlc::passes {

// The values that have a pair if `weights` have the scheme w8a8.
std::set<const Value*> ActivationValues(const Program& program,
                                        const std::set<const Value*>& weights);

// Inserts the pairs. Ranges come from compression.observe, which must be set: of minima and maxima,
// percentiles and least squared errors, those whose largest errors are least by compression.evaluate,
// or the last ones if it is not measured on the same inputs. If the error is large nevertheless, the
// values that cause most of it stay as they are, at most a quarter. Appends to
// compression.activations and activations_left. Returns whether there are any.
bool QuantiseActivations(Program& program, const std::set<const Value*>& weights,
                         compress::Compression& compression, PassContext& context);

}  // namespace mlc::passes

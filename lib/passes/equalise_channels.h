// lib/passes/equalise_channels.h - moves factors between a layer and the weights that follow it.
//
//   y = relu(conv(x, v, b)); z = conv(y, w)    ->   z = conv(relu(conv(x, v / s, b / s)), w * s)
//   y = layer_norm(x, gamma, beta); z = linear(y, w)
//                                              ->   z = linear(layer_norm(x, gamma / s, beta / s), w * s)
//
// Each channel of y has a factor s, which changes no output, but what quantising v and w costs.
// Several operations may use y if all of them multiply it by a weight. Factors are powers of two, so
// that nothing is rounded; those of a layer are kept only if they lower the error of the outputs of
// its weights, relative to the outputs and added up (Nagel et al. 2019, "Data-free quantization through
// weight equalization and bias correction"; Lin et al. 2023, "AWQ: Activation-aware weight
// quantization").
//
// Must not fire on weights without measured inputs, with 8-bit activations or that are encoded, on
// constants with several uses, or where the largest channel of y would become larger.
#pragma once

#include <vector>

#include "lib/passes/choose_schemes.h"

namespace mlc::passes {

// Changes the constants of the program and, of the candidates that it concerns, tensor, inputs and
// `equalised` of the report. `candidates` are all weights that are compressed, whose schemes have been
// chosen; only those whose inputs are known are considered.
void EqualiseChannels(const std::vector<Candidate*>& candidates, const QuantiseFn& quantise);

}  // namespace mlc::passes

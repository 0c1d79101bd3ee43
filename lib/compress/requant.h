// lib/compress/requant.h - requantisation of language model weights (`--requant`).
#pragma once

#include <functional>
#include <string>

#include "lib/ir/tensor.h"
#include "lib/support/error.h"

namespace mlc {
struct ImportOptions;
}  // namespace mlc

namespace mlc::compress {

// Returns a function that requantises a weight according to ImportOptions::requant: float matrices
// of at least 2048 elements are quantised, and a decision records the error; other weights are
// returned unchanged. Empty if no quantiser is requested. `diagnostics` must outlive the result.
// Errors "usage" for an unknown quantiser, "target-too-old" if the requested target lacks the
// operation.
std::function<Tensor(const Tensor& weights, const std::string& name)> Requantising(
    const ImportOptions& options, Diagnostics& diagnostics);

}  // namespace mlc::compress

// lib/passes/choose_schemes.h - the scheme of each weight for a goal that all of them share (auto).
//
// Each weight is quantised in every scheme of the target. The loss of the program is taken to be the
// sum of what the weights lose by themselves: their relative error, of the output if inputs were
// measured, times how much the program reacts to it, which is measured by compressing one weight
// alone. The result, its neighbours and the best uniform schemes are then run, and of those that
// reach the goal the one with the smallest loss is chosen. Correcting and equalising layer after layer
// may change which one that is, so that a uniform scheme with nearly as small a loss is an
// alternative to it.
#pragma once

#include <functional>
#include <vector>

#include "lib/compress/quantise.h"
#include "lib/passes/weight_candidates.h"

namespace mlc::passes {

using QuantiseFn =
    std::function<compress::Quantised(Candidate&, const compress::Scheme& scheme, int threads)>;

// Other schemes of the same candidates.
struct Alternative {
  std::vector<Candidate*> candidates;
  std::vector<compress::Scheme> schemes;
  size_t chosen = 0, point = 0;  // of the curve: what was chosen, and what these schemes are
};

// Sets `scheme` of the candidates, whose values must be constants; kKept if nothing is saved. Points
// of the curve are appended to `compression`. Returns an alternative if there is one.
std::optional<Alternative> ChooseSchemes(Program& program, const compress::Scheme& goal,
                                         const std::vector<Candidate*>& candidates, DType plain,
                                         Opset target, compress::Compression& compression,
                                         const QuantiseFn& quantise);

}  // namespace mlc::passes

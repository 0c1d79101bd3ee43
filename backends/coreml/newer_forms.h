// backends/coreml/newer_forms.h - operations that newer systems lost, written with what they have.
//
//   crop_resize with roi                 boxes and box_indices, from iOS17
//   non_maximum_suppression with a       without one; what scores too little is masked after it,
//     score_threshold                    from iOS17
//   constexpr_lut_to_dense and           elements of few bits, from iOS18
//     _sparse_to_dense with packed bytes and a shape
#pragma once

#include "lib/ir/program.h"

namespace mlc {

// Whether the operation has an operand that the target lost, and UseNewerForms knows another way.
// Error "unsupported-attribute" when there is none, which says why.
bool HasNewerForm(const Operation& op, Opset target);
// Rewrites every such operation; the results are the same.
void UseNewerForms(Program& program, Opset target, Diagnostics& diagnostics);

}  // namespace mlc

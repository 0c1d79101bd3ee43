// backends/coreml/lower.h - what an operation looks like in the operator form that a target has.
//
// A Program holds canonical operations with defaults left out. Lowering picks the newest form that
// the target knows, drops parameters that the form lacks and that say nothing, and adds the
// defaults that Core ML wants spelled out.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "lib/coreml/forms.h"
#include "lib/ir/program.h"
#include "lib/passes/pass.h"

namespace mlc {

struct LoweredArg {
  std::string_view param;
  const Operands* operands = nullptr;  // of the operation; null: left out there
  Tensor value;                        // the default, when operands is null
};

struct LoweredOp {
  ParamPlacement placement = ParamPlacement::kInputs;
  std::vector<LoweredArg> args;
  // Results that the form has and the operation does not (topk without indices, before iOS16).
  std::vector<Type> extra_results;
};

// Error "target-too-old" when the target's form cannot express the operation, "unsupported-dtype"
// when no form can; both name the operation and its location.
LoweredOp Lower(const Operation& op, Opset target);

// Everything that stops the program from being written for this target: operations, input and
// output types, states.
std::vector<Error> TargetErrors(const Program& program, Opset target);
// Whether nothing but operations can, of which emission finds the first by itself.
bool InterfaceFits(const Program& program, Opset target);

// The lowest target that has everything in the program, from the specification of the file on that
// it was read from, or from iOS16 and the functions' own opsets on. A note says what needs more than
// that. Of the passes that are to come, encoded-constants wants what constants need in the form in
// which they came, and fp16-precision makes numbers beside fp16 values fit. What no target has is
// left to TargetErrors: passes may yet change it.
Opset LowestTarget(const Program& program, const std::vector<const PassDef*>& passes,
                   PassContext::Precision precision, Diagnostics& diagnostics);

// The operator set of a function in a file for `target`: that, or its own where it was read from a
// file whose specification is newer and everything in it still fits.
Opset FunctionOpset(Function& function, Opset target);

}  // namespace mlc

// backends/coreml/lower.h - converts operations to the form that a target supports.
//
// A Program holds canonical operations without defaults. Lowering selects the newest form available
// on the target, drops parameters that the form lacks if they have no effect, and adds the defaults
// that Core ML requires explicitly.
#pragma once

#include <string_view>
#include <vector>

#include "lib/coreml/form_encoding.h"
#include "lib/ir/program.h"
#include "lib/passes/pass.h"

namespace mlc::coreml {

struct LoweredArg {
  std::string_view param;
  const Operands* operands = nullptr;  // the operation's operands; null if omitted there
  Tensor value;                        // the default, if operands is null
};

struct LoweredOp {
  ParamPlacement placement = ParamPlacement::kInputs;
  std::vector<LoweredArg> args;
  // Results that the form has and the operation lacks (topk without indices, before iOS16).
  std::vector<Type> extra_results;
};

// Error "target-too-old" if the target's form cannot express the operation, "unsupported-dtype" if
// no form can; both name the operation and its location.
LoweredOp Lower(const Operation& op, Opset target);

// Returns everything that prevents the program from being written for this target: operations,
// input and output types, states.
std::vector<Error> TargetErrors(const Program& program, Opset target);
// Returns whether inputs, outputs and states fit the target; emission itself reports operations.
bool InterfaceFits(const Program& program, Opset target);

// Returns the lowest target that supports the program, but at least the specification version of
// the file that it was read from (iOS16 for other sources) and the opsets of its functions. If the
// program requires a newer target than these, adds a note that says why. Anticipates the effect of
// passes that have not run: encoded-constants may need the target of the original encoding, and
// fp16-precision converts fp32 constants beside fp16 operands. Constructs that no target supports
// are ignored; TargetErrors reports those that are left after the passes.
Opset LowestTarget(const Program& program, const std::vector<const passes::PassDef*>& passes,
                   passes::PassContext::Precision precision, Diagnostics& diagnostics);

// Returns the opset of a function in a file for `target`: the target's, or the function's own if it
// was read from a file with a newer specification and everything in it still fits.
Opset FunctionOpset(Function& function, Opset target);

}  // namespace mlc::coreml

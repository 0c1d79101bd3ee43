// lib/coreml/form_encoding.h - the encoding of operator forms in a file: parameters as inputs,
// attributes or literals, and their element types.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lib/ir/program.h"

namespace mlc::coreml {

// How an operation of a form stores its parameters.
enum class ParamPlacement {
  kInputs,      // bound to names
  kAttributes,  // constexpr operators before iOS18: values in the attribute map
  kLiterals,    // constexpr operators since iOS18: literal inputs, or the name of another constexpr
};
ParamPlacement PlacementOf(const OpDef& def, const Form& form);

// Parameters of operators other than constexpr that Core ML accepts only as literals.
bool IsLiteralParam(std::string_view op, std::string_view param);

// The element type of an operand as emitted: constants are narrowed (EmittedType).
DType OperandType(const Operand& operand);
// The operands of a parameter of the form.
const Operands& OperandsOf(const Operation& op, const Form& form, const Param& param);
// The element type of each domain of a form, determined by the operands.
class Domains {
 public:
  // `narrowed` as for OperandComplaint.
  Domains(const Operation& op, const Form& form, bool narrowed = false);
  DType of(char domain) const;  // kNone: no operand determines it

 private:
  std::vector<std::pair<char, DType>> types_;
};
// The violation of the form's type constraints, e.g. `operand "x" of type int8`; empty if there is
// none. `narrowed`: treat fp32 constants of one element as fp16.
std::string OperandComplaint(const Operation& op, const Form& form, bool narrowed = false);

}  // namespace mlc::coreml

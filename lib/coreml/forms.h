// lib/coreml/forms.h - how operator forms stand in a file: their parameters as inputs, attributes or
// literals, and the element types that they take.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lib/ir/program.h"

namespace mlc {

// Where an operation of this form keeps its parameters.
enum class ParamPlacement {
  kInputs,      // bound to names
  kAttributes,  // constexpr operators before iOS18: values among the attributes
  kLiterals,  // constexpr operators from iOS18: values as inputs, or the name of another constexpr
};
ParamPlacement PlacementOf(const OpDef& def, const Form& form);

// Parameters outside constexpr that Core ML takes as literals only.
bool IsLiteralParam(std::string_view op, std::string_view param);

// The element type of an operand where it is emitted: constants are narrowed (EmittedType).
DType OperandType(const Operand& operand);
// The operands of one of the form's parameters.
const Operands& OperandsOf(const Operation& op, const Form& form, const Param& param);
// Element types of the form's domains as the operands have them.
class Domains {
 public:
  // `narrowed`: as OperandComplaint has it.
  Domains(const Operation& op, const Form& form, bool narrowed = false);
  DType of(char domain) const;  // kNone: no operand says

 private:
  std::vector<std::pair<char, DType>> types_;
};
// What the form does not allow about the operands' types, e.g. `operand "x" of type int8`; empty
// when all is well. `narrowed`: as if fp32 numbers (constants of one element) were fp16.
std::string OperandComplaint(const Operation& op, const Form& form, bool narrowed = false);

}  // namespace mlc

// lib/coreml/forms.h - how operator forms stand in a file, where a form's signature does not say
// it.
//
// The canonical form of a row names every parameter that any form has; these functions tell which
// of them a form really has and whether it keeps them as inputs, as attributes or as literals.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "lib/ir/program.h"

namespace mlc {

// Where an operation of this form keeps its parameters.
enum class Placement {
  kInputs,      // bound to names
  kAttributes,  // constexpr operators before iOS18: values among the attributes
  kLiterals,  // constexpr operators from iOS18: values as inputs, or the name of another constexpr
};
Placement PlacementOf(const OpDef& def, const Form& form);

// Parameters outside constexpr that Core ML takes as literals only.
bool IsLiteralParam(std::string_view op, std::string_view param);

// Whether the form has the parameter, by canonical name.
bool HasParam(const OpDef& def, const Form& form, std::string_view param);
// The first target whose form has the parameter; kIos26 when none does.
Opset ParamSince(const OpDef& def, std::string_view param);

// The element type of an operand where it is emitted: constants are narrowed (EmittedType).
DType OperandType(const Operand& operand);
// Element types of the form's domains as the operands have them.
std::map<char, DType> Domains(const Operation& op, const Form& form);
// What the form does not allow about the operands' types, e.g. `operand "x" of type int8`; empty
// when all is well.
std::string OperandComplaint(const Operation& op, const Form& form);

}  // namespace mlc

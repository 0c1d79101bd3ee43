#include "lib/coreml/form_encoding.h"

#include <cmath>

#include "lib/coreml/dtypes.h"
#include "lib/ops/form_params.h"

namespace mlc::coreml {

ParamPlacement PlacementOf(const OpDef& def, const Form& form) {
  if (!def.is_constexpr()) return ParamPlacement::kInputs;
  return form.since >= Opset::kIos18 ? ParamPlacement::kLiterals : ParamPlacement::kAttributes;
}

bool IsLiteralParam(std::string_view op, std::string_view param) {
  if (op == "classify") return param == "classes";
  return op == "reshape_like" && (param == "begins" || param == "ends" || param == "end_masks");
}

DType OperandType(const Operand& operand) {
  const Type& given = operand.type();
  bool state = given.kind == Type::Kind::kState && !given.elements.empty();
  const Type& type = state ? given.elements[0] : given;
  if (!type.is_tensor()) return DType::kNone;
  return operand.constant() ? EmittedType(type.dtype) : type.dtype;
}

namespace {

DType TypeOf(const Operand& operand, bool narrowed) {
  DType dtype = OperandType(operand);
  bool number = narrowed && dtype == DType::kFp32 && operand.constant() &&
                operand.constant().size() == 1 && std::fabs(operand.constant().Double(0)) < 65520;
  return number ? DType::kFp16 : dtype;
}

}  // namespace

const Operands& OperandsOf(const Operation& op, const Form& form, const Param& param) {
  bool canonical = &form == &op.def->canonical();
  return op.args()[canonical ? &param - form.params.data() : op.def->Find(param.name)];
}

Domains::Domains(const Operation& op, const Form& form, bool narrowed) {
  for (const Param& param : form.params) {
    if (!param.domain || of(param.domain) != DType::kNone) continue;
    const Operands& operands = OperandsOf(op, form, param);
    if (!operands.empty()) types_.emplace_back(param.domain, TypeOf(operands[0], narrowed));
  }
}

DType Domains::of(char domain) const {
  for (const auto& [known, type] : types_)
    if (known == domain) return type;
  return DType::kNone;
}

std::string OperandComplaint(const Operation& op, const Form& form, bool narrowed) {
  Domains domains(op, form, narrowed);
  for (const Param& param : form.params) {
    const Operands& operands = OperandsOf(op, form, param);
    if (operands.empty() || !HasParam(*op.def, form, param.name)) continue;
    for (const Operand& operand : operands) {
      Type::Kind kind = operand.type().kind;
      // A list of constants is stored as a vector.
      bool fits =
          param.kind == Param::Kind::kState ? kind == Type::Kind::kState
          : param.kind == Param::Kind::kList
              ? kind == Type::Kind::kList || (operand.constant() && operand.type().rank() == 1)
          : param.kind == Param::Kind::kAny
              ? kind == Type::Kind::kTensor || kind == Type::Kind::kList
              : kind == Type::Kind::kTensor;
      if (!fits)
        return fmt::format("operand \"{}\" of type {}", param.name, operand.type().ToString());
      if (param.kind != Param::Kind::kTensor) continue;
      DType dtype = TypeOf(operand, narrowed);
      if (param.types && !Contains(param.types, dtype))
        return fmt::format("operand \"{}\" of type {}", param.name, Name(dtype));
      if (param.domain && domains.of(param.domain) != dtype)
        return fmt::format("operand \"{}\" of type {} beside {}", param.name, Name(dtype),
                           Name(domains.of(param.domain)));
      if (param.is_const && operand.value && !operand.constant() &&
          !(operand.value->def && operand.value->def->def->is_constexpr()))
        return fmt::format("operand \"{}\" that is not constant", param.name);
    }
  }
  return {};
}

}  // namespace mlc::coreml

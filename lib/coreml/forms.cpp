#include "lib/coreml/forms.h"

#include <array>

#include "lib/coreml/dtypes.h"

namespace mlc {

namespace {
// Parameters that a newer form lost and the canonical form names all the same.
struct Dropped {
  std::string_view op, param;
  Opset from;
};
constexpr std::array kDropped = {
    Dropped{"constexpr_lut_to_dense", "shape", Opset::kIos18},
    Dropped{"constexpr_sparse_to_dense", "shape", Opset::kIos18},
    Dropped{"crop_resize", "roi", Opset::kIos17},
    Dropped{"non_maximum_suppression", "score_threshold", Opset::kIos17},
};
}  // namespace

Placement PlacementOf(const OpDef& def, const Form& form) {
  if (!def.is_constexpr()) return Placement::kInputs;
  return form.since >= Opset::kIos18 ? Placement::kLiterals : Placement::kAttributes;
}

bool IsLiteralParam(std::string_view op, std::string_view param) {
  if (op == "classify") return param == "classes";
  return op == "reshape_like" && (param == "begins" || param == "ends" || param == "end_masks");
}

bool HasParam(const OpDef& def, const Form& form, std::string_view param) {
  for (const Dropped& dropped : kDropped)
    if (dropped.op == def.name && dropped.param == param && form.since >= dropped.from)
      return false;
  return form.Find(param) >= 0;
}

Opset ParamSince(const OpDef& def, std::string_view param) {
  for (const Form& form : def.forms)
    if (HasParam(def, form, param)) return form.since;
  return Opset::kIos26;
}

DType OperandType(const Operand& operand) {
  const Type& given = operand.type();
  bool state = given.kind == Type::Kind::kState && !given.elements.empty();
  const Type& type = state ? given.elements[0] : given;
  if (!type.is_tensor()) return DType::kNone;
  return operand.constant() ? EmittedType(type.dtype) : type.dtype;
}

std::map<char, DType> Domains(const Operation& op, const Form& form) {
  std::map<char, DType> domains;
  for (const Param& param : form.params) {
    if (!param.domain) continue;
    for (const Operand& operand : op.args()[op.def->Find(param.name)])
      domains.emplace(param.domain, OperandType(operand));
  }
  return domains;
}

std::string OperandComplaint(const Operation& op, const Form& form) {
  std::map<char, DType> domains = Domains(op, form);
  for (const Param& param : form.params) {
    if (!HasParam(*op.def, form, param.name)) continue;
    for (const Operand& operand : op.args()[op.def->Find(param.name)]) {
      Type::Kind kind = operand.type().kind;
      // A list of constants is held as a vector.
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
      DType dtype = OperandType(operand);
      if (param.types && !Contains(param.types, dtype))
        return fmt::format("operand \"{}\" of type {}", param.name, Name(dtype));
      if (param.domain && domains[param.domain] != dtype)
        return fmt::format("operand \"{}\" of type {} beside {}", param.name, Name(dtype),
                           Name(domains[param.domain]));
      if (param.is_const && operand.value && !operand.constant() &&
          !(operand.value->def && operand.value->def->def->is_constexpr()))
        return fmt::format("operand \"{}\" that is not constant", param.name);
    }
  }
  return {};
}

}  // namespace mlc

#include "lib/coreml/forms.h"

#include <array>

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

bool IsConstexpr(const OpDef& def) { return def.name.starts_with("constexpr_"); }

Placement PlacementOf(const OpDef& def, const Form& form) {
  if (!IsConstexpr(def)) return Placement::kInputs;
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

}  // namespace mlc

#include "lib/ops/form_params.h"

#include <array>

namespace mlc {

namespace {
constexpr std::array kLost = {
    LostParam{"constexpr_lut_to_dense", "shape", Opset::kIos18, ""},
    LostParam{"constexpr_sparse_to_dense", "shape", Opset::kIos18, ""},
    LostParam{"crop_resize", "roi", Opset::kIos17,
              "its replacement, box_indices, requires static numbers of boxes and images"},
    LostParam{"non_maximum_suppression", "score_threshold", Opset::kIos17, ""},
};
}  // namespace

const LostParam* FindLost(const OpDef& def, std::string_view param) {
  for (const LostParam& lost : kLost)
    if (lost.op == def.name && lost.param == param) return &lost;
  return nullptr;
}

bool HasParam(const OpDef& def, const Form& form, std::string_view param) {
  if (form.Find(param) < 0) return false;
  const LostParam* lost = FindLost(def, param);
  return !lost || form.since < lost->from;
}

Opset ParamSince(const OpDef& def, std::string_view param) {
  for (const Form& form : def.forms)
    if (HasParam(def, form, param)) return form.since;
  return Opset::kIos26;
}

}  // namespace mlc

// lib/ops/forms.h - which parameters a form has, where its signature does not say it: the canonical
// form of a row names every parameter that any form has, also those that newer systems lost.
#pragma once

#include "lib/ir/program.h"

namespace mlc {

struct LostParam {
  std::string_view op, param;
  Opset from;
  std::string_view otherwise;  // why an operation may be impossible without it; for an error's text
};
// Null: no form lost it.
const LostParam* FindLost(const OpDef& def, std::string_view param);

// Whether the form has the parameter, by canonical name.
bool HasParam(const OpDef& def, const Form& form, std::string_view param);
// The first target whose form has the parameter; kIos26 when none does.
Opset ParamSince(const OpDef& def, std::string_view param);

}  // namespace mlc

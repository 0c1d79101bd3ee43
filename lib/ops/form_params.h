// lib/ops/form_params.h - the parameters of a form, including those that newer forms dropped. The
// canonical form of a row names every parameter of every form, so signatures alone cannot tell.
#pragma once

#include "lib/ir/program.h"

namespace mlc {

struct LostParam {
  std::string_view op, param;
  Opset from;
  std::string_view
      otherwise;  // why the operation may be impossible without it; part of the error message
};
// Null if no form dropped the parameter.
const LostParam* FindLost(const OpDef& def, std::string_view param);

// Returns whether the form has the parameter with this canonical name.
bool HasParam(const OpDef& def, const Form& form, std::string_view param);
// The first target with a form that has the parameter; kIos26 if there is none.
Opset ParamSince(const OpDef& def, std::string_view param);

}  // namespace mlc

#include <algorithm>

#include "lib/ops/row.h"

namespace mlc {

namespace {

DTypeSet ParseTypes(std::string_view text) {
  DTypeSet set = 0;
  while (!text.empty()) {
    size_t slash = std::min(text.find('/'), text.size());
    std::optional<DType> dtype = ParseDType(text.substr(0, slash));
    MLC_CHECK(dtype, "unknown dtype in signature: {}", text);
    set |= SetOf(*dtype);
    text.remove_prefix(std::min(slash + 1, text.size()));
  }
  return set;
}

std::string_view NextWord(std::string_view& text) {
  size_t begin = std::min(text.find_first_not_of(' '), text.size());
  size_t end = std::min(text.find(' ', begin), text.size());
  std::string_view word = text.substr(begin, end - begin);
  text.remove_prefix(end);
  return word;
}

Param ParseParam(std::string_view word) {
  Param param;
  size_t colon = word.find(':');
  MLC_CHECK(colon != word.npos, "signature word without type: {}", word);
  param.name = word.substr(0, colon);
  word.remove_prefix(colon + 1);
  size_t end = std::min(word.find_first_of("!?=."), word.size());
  std::string_view type = word.substr(0, end);
  word.remove_prefix(end);
  if (type == "list") {
    param.kind = Param::Kind::kList;
  } else if (type == "state") {
    param.kind = Param::Kind::kState;
  } else if (type == "any") {
    param.kind = Param::Kind::kAny;
  } else if (type.size() == 1 && type[0] >= 'A' && type[0] <= 'Z') {
    param.domain = type[0];
  } else {
    param.types = ParseTypes(type);
  }
  for (; !word.empty(); word.remove_prefix(1)) {
    if (word[0] == '!') {
      param.is_const = true;
    } else if (word[0] == '?') {
      param.default_kind = Param::Default::kOptional;
    } else if (word.starts_with("...")) {
      param.variadic = true;
      word.remove_prefix(2);
    } else if (word == "=*") {
      param.default_kind = Param::Default::kComputed;
      break;
    } else {
      MLC_CHECK(word[0] == '=', "bad signature flag: {}", word);
      param.default_kind = Param::Default::kLiteral;
      param.default_text = word.substr(1);
      break;
    }
  }
  return param;
}

}  // namespace

Form ParseForm(const FormRow& row) {
  Form form{row.since, {}};
  size_t bar = std::min(row.signature.find('|'), row.signature.size());
  std::string_view params = row.signature.substr(0, bar);
  std::string_view domains = row.signature.substr(std::min(bar + 1, row.signature.size()));
  if (!row.domains.empty()) domains = row.domains;
  for (std::string_view word = NextWord(params); !word.empty(); word = NextWord(params))
    form.params.push_back(ParseParam(word));
  for (std::string_view word = NextWord(domains); !word.empty(); word = NextWord(domains)) {
    MLC_CHECK(word.size() > 2 && word[1] == '=', "bad type domain: {}", word);
    DTypeSet types = ParseTypes(word.substr(2));
    for (Param& param : form.params)
      if (param.domain == word[0]) param.types = types;
  }
  for (const Param& param : form.params)
    MLC_CHECK(param.types || param.kind != Param::Kind::kTensor, "no types for {}", param.name);
  return form;
}

const OpSet& Ops() {
  static const OpSet set = [] {
    std::vector<OpDef> defs;
    for (std::span<const OpRow> rows : {ActivationRows(),
                                        ConstexprRows(),
                                        ControlRows(),
                                        ConvRows(),
                                        ElementwiseBinaryRows(),
                                        ElementwiseUnaryRows(),
                                        ImageRows(),
                                        LinearRows(),
                                        ListRows(),
                                        NormalizationRows(),
                                        PoolRows(),
                                        QuantizationRows(),
                                        RandomRows(),
                                        RecurrentRows(),
                                        ReductionRows(),
                                        ScatterGatherRows(),
                                        SelectionRows(),
                                        ShapeRows(),
                                        SliceRows(),
                                        SpaceRows(),
                                        TensorRows()}) {
      for (const OpRow& row : rows) {
        std::vector<Form> forms;
        for (const FormRow& form : row.signatures)
          if (!form.signature.empty() || forms.empty()) forms.push_back(ParseForm(form));
        defs.emplace_back(row, std::move(forms));
      }
    }
    return OpSet(std::move(defs));
  }();
  return set;
}

}  // namespace mlc

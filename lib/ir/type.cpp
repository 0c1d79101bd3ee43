#include "lib/ir/type.h"

#include <algorithm>

namespace mlc {

Type Type::Tensor(DType dtype, Shape shape) { return {.dtype = dtype, .shape = std::move(shape)}; }

Type Type::List(Type element, Dim length) {
  return {.kind = Kind::kList, .elements = {std::move(element)}, .length = std::move(length)};
}

Type Type::State(Type tensor) { return {.kind = Kind::kState, .elements = {std::move(tensor)}}; }

std::string Type::ToString() const {
  std::string members;
  for (const Type& element : elements)
    members += (members.empty() ? "" : ", ") + element.ToString();
  switch (kind) {
    case Kind::kTensor:
      return std::string(Name(dtype)) + " " + mlc::ToString(shape);
    case Kind::kList:
      return "list of " + length.ToString() + " x " + members;
    case Kind::kState:
      return "state of " + members;
    case Kind::kTuple:
      return "tuple (" + members + ")";
    case Kind::kDict:
      return "dictionary (" + members + ")";
  }
  return "";
}

bool MayAgree(const Type& a, const Type& b) {
  auto dims = [](const Dim& x, const Dim& y) {
    return !x.is_constant() || !y.is_constant() || x == y;
  };
  return a.kind == b.kind && a.dtype == b.dtype && dims(a.length, b.length) &&
         std::equal(a.shape.begin(), a.shape.end(), b.shape.begin(), b.shape.end(), dims) &&
         std::equal(a.elements.begin(), a.elements.end(), b.elements.begin(), b.elements.end(),
                    MayAgree);
}

}  // namespace mlc

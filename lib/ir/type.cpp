#include "lib/ir/type.h"

#include <algorithm>

namespace mlc {

Type Type::Tensor(DType dtype, Shape shape) {
  Type type;
  type.dtype = dtype;
  type.shape = std::move(shape);
  return type;
}

Type Type::List(Type element, Dim length) {
  Type type;
  type.kind = Kind::kList;
  type.elements.push_back(std::move(element));
  type.length = std::move(length);
  return type;
}

Type Type::State(Type tensor) {
  Type type;
  type.kind = Kind::kState;
  type.elements.push_back(std::move(tensor));
  return type;
}

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

#include "lib/ir/type.h"

namespace mlc {

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

}  // namespace mlc

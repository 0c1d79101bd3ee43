// lib/ir/type.h - the type of a Value: a tensor, or a MIL list, state, tuple or dictionary of
// types.
#pragma once

#include <string>
#include <vector>

#include "lib/ir/dim.h"
#include "lib/ir/dtype.h"

namespace mlc {

struct Type {
  enum class Kind : uint8_t { kTensor, kList, kState, kTuple, kDict };
  Kind kind = Kind::kTensor;
  DType dtype = DType::kNone;  // tensors only
  Shape shape;                 // tensors only; rank 0 is a scalar
  std::vector<Type>
      elements;  // list: the element; state: the wrapped tensor; tuple: members; dict: key, value
  Dim length;    // list only

  static Type Tensor(DType dtype, Shape shape = {});
  static Type List(Type element, Dim length);
  static Type State(Type tensor);

  bool is_tensor() const { return kind == Kind::kTensor; }
  int rank() const { return static_cast<int>(shape.size()); }
  // Calls f(Dim&) for every dimension in the type, including the lengths of lists.
  template <class F>
  void ForEachDim(F&& f) {
    for (Dim& dim : shape) f(dim);
    if (kind == Kind::kList) f(length);
    for (Type& element : elements) element.ForEachDim(f);
  }
  // The form used in error messages: "fp32 [1, 3, h, w]".
  std::string ToString() const;
  friend bool operator==(const Type&, const Type&) = default;
};

// Returns whether a value can have both types: they are equal except for symbolic dimensions.
bool MayAgree(const Type& a, const Type& b);

}  // namespace mlc

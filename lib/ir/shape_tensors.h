// lib/ir/shape_tensors.h - sizes that may be known only at run time: the known elements of integer
// vectors, and vectors composed of numbers and dimensions.
#pragma once

#include <optional>
#include <vector>

#include "lib/ir/builder.h"

namespace mlc {

// The elements of an integer value of rank 0 or 1, if it is constant or shape arithmetic knows
// them.
std::optional<std::vector<Dim>> ElementsOf(const Value* value);
// Element `index` of an integer vector, if that element is known.
std::optional<Dim> ElementOf(const Value* vector, int index);

// Reshapes an integer value of one element to a vector.
Value* AsVector(Builder& b, Value* value);
// Reshapes a value of one element to a scalar.
Value* AsScalar(Builder& b, Value* value);
// A vector of `length` zeros except for element `index`, which is that of a vector of one element.
Value* AmongZeros(Builder& b, Value* element, int index, int length);
// The shape of x as a vector, constant if it is static.
Value* ShapeOf(Builder& b, Value* x);
// A dimension as an int32 scalar.
Value* DimOf(Builder& b, Value* x, int axis);
// The indices 0, 1, ... below `count`, an int32 scalar: int32 [count].
Value* Counting(Builder& b, Value* count);
// The indices of a dimension.
Value* IndicesOf(Builder& b, Value* x, int axis);
// The indices of the nonzero elements of x: [n, rank of x], with n at most the size of x.
Value* Places(Builder& b, Value* x);

// The upper bound of a dimension.
int64_t Greatest(Builder& b, const Dim& dim);
// Records an upper bound for an unknown size, which must be a symbol from inference.
void Bounded(Builder& b, const Dim& open, const Dim& most);

// Composes an integer vector from numbers, elements of run-time vectors and dimensions.
class Sizes {
 public:
  explicit Sizes(Builder& b) : builder_(b) {}
  void Add(int64_t number) { entries_.push_back({nullptr, 0, number, false}); }
  void Add(const std::vector<int64_t>& numbers) {
    for (int64_t number : numbers) Add(number);
  }
  // Appends element `index` of a vector, as a number if it is known.
  void Add(Value* vector, int index);
  void AddDim(Value* x, int axis);
  void Set(int i, int64_t number) { entries_[i] = {nullptr, 0, number, false}; }

  size_t size() const { return entries_.size(); }
  bool known() const;                    // all parts are numbers
  std::vector<int64_t> numbers() const;  // requires known()
  // The composed vector; int32 if any part is computed at run time.
  Value* Make();

 private:
  struct Entry {
    Value* vector;  // null: a number
    int index;
    int64_t number;
    bool is_dim;  // dimension `index` of `vector`, not its element
  };
  Value* Whole() const;  // the vector whose elements these are, in order; null: none
  Builder& builder_;
  std::vector<Entry> entries_;
};

// One dimension of a reshape: a number, or a dimension of a value.
struct Size {
  int64_t number;
  Value* of = nullptr;
  int axis = 0;
  Size(int64_t n) : number(n) {}  // NOLINT
  Size(Value* value, int i);      // NOLINT
};
// Reshapes x: Reshaped(b, x, {{x, 0}, {x, 1}, 8, 64}). The number -1 stands for the remaining size,
// as in MIL's reshape.
Value* Reshaped(Builder& b, Value* x, const std::vector<Size>& sizes);

}  // namespace mlc

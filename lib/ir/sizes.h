// lib/ir/sizes.h - sizes that only the run time may know: what is known of integer vectors, and
// vectors put together from numbers and dimensions.
#pragma once

#include <optional>
#include <vector>

#include "lib/ir/builder.h"

namespace mlc {

// Elements of an integer value of rank 0 or 1 where shape arithmetic knows them, constants
// included.
std::optional<std::vector<Dim>> ElementsOf(const Value* value);
// Element `index` of an integer vector where it is known, though others may not be.
std::optional<Dim> ElementOf(const Value* vector, int index);

// An integer value of one element as a vector.
Value* AsVector(Builder& b, Value* value);
// A value of one element as a scalar.
Value* AsScalar(Builder& b, Value* value);
// The dimensions of x: a constant where they are known.
Value* ShapeOf(Builder& b, Value* x);
// A dimension as an int32 scalar.
Value* DimOf(Builder& b, Value* x, int axis);
// 0, 1, ..., below the size of a dimension: int32 [size].
Value* IndicesOf(Builder& b, Value* x, int axis);
// Where x is not zero: [n, rank of x], with n at most the size of x.
Value* Places(Builder& b, Value* x);

// The greatest value that a dimension can have.
int64_t Greatest(Builder& b, const Dim& dim);
// Tells the symbol of a size that inference left open that the size is at most another.
void Bounded(Builder& b, const Dim& open, const Dim& most);

// An integer vector put together from numbers, elements of run-time vectors and dimensions.
class Sizes {
 public:
  explicit Sizes(Builder& b) : builder_(b) {}
  void Add(int64_t number) { entries_.push_back({nullptr, 0, number, false}); }
  void Add(const std::vector<int64_t>& numbers) {
    for (int64_t number : numbers) Add(number);
  }
  // Element `index` of a vector; a number where that is known.
  void Add(Value* vector, int index);
  void AddDim(Value* x, int axis);
  void Set(int i, int64_t number) { entries_[i] = {nullptr, 0, number, false}; }

  size_t size() const { return entries_.size(); }
  bool known() const;                    // all are numbers
  std::vector<int64_t> numbers() const;  // when known
  // The vector, int32 where a part is computed at run time.
  Value* Make();

 private:
  struct Entry {
    Value* vector;  // null: number
    int index;
    int64_t number;
    bool is_dim;  // dimension `index` of `vector` rather than its element
  };
  Value* Whole() const;  // the vector of which these are all elements; null: none
  Builder& builder_;
  std::vector<Entry> entries_;
};

// A dimension of a reshape: a number, or that of a value.
struct Size {
  int64_t number;
  Value* of = nullptr;
  int axis = 0;
  Size(int64_t n) : number(n) {}  // NOLINT
  Size(Value* value, int i);      // NOLINT
};
// x in another shape: Reshaped(b, x, {{x, 0}, {x, 1}, 8, 64}). A number of -1 is what the others
// leave, as in MIL's reshape.
Value* Reshaped(Builder& b, Value* x, const std::vector<Size>& sizes);

}  // namespace mlc

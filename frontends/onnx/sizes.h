// frontends/onnx/sizes.h - integers of shape arithmetic that only the run time may know.
#pragma once

#include <optional>
#include <vector>

#include "frontends/onnx/node.h"

namespace mlc::onnx {

// Elements of an integer value of rank 0 or 1 where shape arithmetic knows them, constants
// included.
std::optional<std::vector<Dim>> ElementsOf(const Value* value);
// Element `index` of an integer vector where it is known, though others may not be.
std::optional<Dim> ElementOf(const Value* vector, int index);
// The length of an integer vector; Error "needs-constant" when only the run time knows it.
int64_t VectorLength(Node& node, const Value* vector, std::string_view operand);
// An integer value of one element as a vector.
Value* AsVector(Node& node, Value* value);
// The dimensions of x: a constant where they are known.
Value* ShapeOf(Node& node, Value* x);
// The greatest value that a dimension can have.
int64_t Greatest(Node& node, const Dim& dim);
// Tells the symbol of a size that inference left open that the size is at most another.
void Bounded(Builder& builder, const Dim& open, const Dim& most);
// Where x is not zero: [n, rank of x], with n at most the size of x.
Value* Places(Node& node, Value* x);
// Whether no element can be negative, as far as it is easy to see.
bool IsNatural(const Value* value);

// A constant narrowed to the type that its ONNX type has at run time; others as they are. For
// constants that give a run-time result its type.
Value* AtRunTime(Builder& builder, Value* value, DType dtype);
inline Value* AtRunTime(Node& node, Value* value, DType dtype) {
  return AtRunTime(node.builder(), value, dtype);
}

// An integer vector put together from numbers, elements of run-time vectors and dimensions.
class Sizes {
 public:
  explicit Sizes(Node& node) : node_(node) {}
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
  Node& node_;
  std::vector<Entry> entries_;
};

}  // namespace mlc::onnx

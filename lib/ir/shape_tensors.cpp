#include "lib/ir/shape_tensors.h"

#include <algorithm>
#include <map>

#include "lib/ir/arithmetic.h"

namespace mlc {

std::optional<std::vector<Dim>> ElementsOf(const Value* value) {
  if (value->elements) return value->elements;
  if (!value->is_constant() || value->type.rank() > 1 || !IsInteger(value->type.dtype))
    return std::nullopt;
  std::vector<int64_t> ints = value->constant().Ints();
  return std::vector<Dim>(ints.begin(), ints.end());
}

std::optional<Dim> ElementOf(const Value* vector, int index) {
  if (auto elements = ElementsOf(vector)) return (*elements)[index];
  if (!vector->def || !vector->def->is("concat") || vector->type.rank() != 1) return std::nullopt;
  for (const Operand& part : vector->def->arg("values")) {
    if (!part.value || !part.value->type.shape[0].is_constant()) return std::nullopt;
    int64_t length = part.value->type.shape[0].constant();
    if (index < length) return ElementOf(part.value, index);
    index -= static_cast<int>(length);
  }
  return std::nullopt;
}

Value* AsVector(Builder& b, Value* value) {
  if (value->type.rank() == 1) return value;
  if (value->type.rank() == 0) return Expanded(b, value, {0});
  return WithShape(b, value, {-1});
}

Value* AsScalar(Builder& b, Value* value) {
  if (value->type.rank() == 0) return value;
  return Squeezed(b, value, Consecutive(0, value->type.rank()));
}

Value* AmongZeros(Builder& b, Value* element, int index, int length) {
  std::vector<Value*> parts;
  if (index > 0) parts.push_back(b.Const(Ints(std::vector<int64_t>(index))));
  parts.push_back(element);
  if (index + 1 < length) parts.push_back(b.Const(Ints(std::vector<int64_t>(length - index - 1))));
  return parts.size() == 1 ? element : Concat(b, parts, 0);
}

Value* ShapeOf(Builder& b, Value* x) { return b.Make("shape", {{"x", x}}); }

Value* DimOf(Builder& b, Value* x, int axis) {
  const Dim& dim = x->type.shape[axis];
  if (dim.is_constant())
    return b.Const(Tensor::Scalar<int32_t>(static_cast<int32_t>(dim.constant())));
  return Element(b, ShapeOf(b, x), axis, 0);
}

Value* Counting(Builder& b, Value* count) {
  return b.Make("range_1d", {{"end", count},
                             {"start", Tensor::Scalar<int32_t>(0)},
                             {"step", Tensor::Scalar<int32_t>(1)}});
}

Value* IndicesOf(Builder& b, Value* x, int axis) { return Counting(b, DimOf(b, x, axis)); }

int64_t Greatest(Builder& b, const Dim& dim) {
  int64_t high = dim.Bounds(b.symbols()).high;
  return std::min<int64_t>(high, INT32_MAX);
}

void Bounded(Builder& b, const Dim& open, const Dim& most) {
  std::optional<std::string> symbol = (open + 1).symbol();
  if (!symbol) return;
  int64_t high = std::min<int64_t>(most.Bounds(b.symbols()).high, INT32_MAX - 1) + 1;
  Symbol bounds = b.symbols().at(*symbol);
  bounds.high = std::min(bounds.high, std::max(high, bounds.low));
  b.block().Narrow(*symbol, std::move(bounds));
}

Value* Places(Builder& b, Value* x) {
  Value* places = b.Make("non_zero", {{"x", x}});
  Bounded(b, places->type.shape[0], Product(x->type.shape));
  return places;
}

void Sizes::Add(Value* vector, int index) {
  std::optional<Dim> element = ElementOf(vector, index);
  if (element && element->is_constant()) return Add(element->constant());
  entries_.push_back({vector, index, 0, false});
}

void Sizes::AddDim(Value* x, int axis) {
  if (const Dim& dim = x->type.shape[axis]; dim.is_constant()) return Add(dim.constant());
  entries_.push_back({x, axis, 0, true});
}

bool Sizes::known() const {
  return std::ranges::all_of(entries_, [](const Entry& e) { return !e.vector; });
}

std::vector<int64_t> Sizes::numbers() const {
  std::vector<int64_t> numbers;
  for (const Entry& entry : entries_) numbers.push_back(entry.number);
  return numbers;
}

Value* Sizes::Whole() const {
  auto computed = std::ranges::find_if(entries_, [](const Entry& entry) { return entry.vector; });
  Value* vector = computed->vector;
  if (vector->type.shape[0] != Dim(static_cast<int64_t>(entries_.size()))) return nullptr;
  auto elements = ElementsOf(vector);
  for (size_t i = 0; i < entries_.size(); ++i) {
    const Entry& entry = entries_[i];
    bool same = entry.vector ? entry.vector == vector && entry.index == static_cast<int>(i)
                             : elements && (*elements)[i] == Dim(entry.number);
    if (!same) return nullptr;
  }
  return vector;
}

Value* Sizes::Make() {
  if (known()) return builder_.Const(Tensor::Vector(numbers()));
  std::map<Value*, Value*> shapes;
  for (Entry& entry : entries_) {
    if (!entry.is_dim) continue;
    Value*& shape = shapes[entry.vector];
    if (!shape) shape = ShapeOf(builder_, entry.vector);
    entry = {shape, entry.index, 0, false};
  }
  if (Value* whole = Whole()) return whole;
  const DType dtype = std::ranges::find_if(entries_, [](const Entry& entry) {
                        return entry.vector;
                      })->vector->type.dtype;
  std::vector<Value*> parts;
  for (size_t i = 0, end = 0; i < entries_.size(); i = end) {
    const Entry& first = entries_[i];
    std::vector<int64_t> run;
    for (end = i; end < entries_.size(); ++end) {
      const Entry& entry = entries_[end];
      bool same = entry.vector == first.vector &&
                  (!first.vector || entry.index == first.index + static_cast<int>(end - i));
      if (!same) break;
      run.push_back(entry.number);
    }
    if (!first.vector) {
      // Cast to the dtype of the computed parts: if all parts turn out to be constant, nothing else
      // unifies them.
      parts.push_back(builder_.Const(Tensor::Vector(run).Cast(dtype)));
      continue;
    }
    int64_t begin = first.index, count = static_cast<int64_t>(end - i);
    parts.push_back(first.vector->type.shape[0] == Dim(count)
                        ? first.vector
                        : SliceBetween(builder_, first.vector, {begin}, {begin + count}));
  }
  return parts.size() == 1 ? parts[0] : Concat(builder_, parts, 0);
}

Size::Size(Value* value, int i) : number(-1), of(value), axis(i) {
  const Dim& dim = value->type.shape[i];
  if (dim.is_constant()) *this = Size(dim.constant());
}

Value* Reshaped(Builder& b, Value* x, const std::vector<Size>& sizes) {
  auto unknown = std::ranges::count_if(sizes, [](const Size& s) { return s.of; });
  Sizes shape(b);
  for (const Size& size : sizes) {
    if (size.of && unknown > 1)
      shape.AddDim(size.of, size.axis);
    else
      shape.Add(size.number);
  }
  return b.Make("reshape", {{"x", x}, {"shape", shape.Make()}});
}

}  // namespace mlc

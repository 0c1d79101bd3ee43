#include "frontends/onnx/sizes.h"

#include <algorithm>
#include <map>

#include "frontends/onnx/row.h"

namespace mlc::onnx {

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

int64_t VectorLength(Node& node, const Value* vector, std::string_view operand) {
  const Shape& shape = vector->type.shape;
  if (shape.size() != 1)
    node.Fail("bad-operand",
              fmt::format("{} is {}, expected a vector", operand, vector->type.ToString()));
  if (!shape[0].is_constant())
    node.FailUnknown(vector,
                     fmt::format("the length of input \"{}\" is computed at run time", operand));
  return shape[0].constant();
}

Value* AsVector(Node& node, Value* value) {
  if (value->type.rank() == 1) return value;
  if (value->type.rank() == 0) return node.Make("expand_dims", {{"x", value}, {"axes", Ints({0})}});
  return node.Make("reshape", {{"x", value}, {"shape", Ints({-1})}});
}

Value* ShapeOf(Node& node, Value* x) { return node.Make("shape", {{"x", x}}); }

int64_t Greatest(Node& node, const Dim& dim) {
  int64_t high = dim.Bounds(node.builder().symbols()).high;
  return std::min<int64_t>(high, INT32_MAX);
}

void Bounded(Builder& builder, const Dim& open, const Dim& most) {
  std::optional<std::string> symbol = (open + 1).symbol();
  if (!symbol) return;
  int64_t high = std::min<int64_t>(most.Bounds(builder.symbols()).high, INT32_MAX - 1) + 1;
  Symbol& bounds = builder.symbols().at(*symbol);
  bounds.high = std::min(bounds.high, std::max(high, bounds.low));
}

Value* Places(Node& node, Value* x) {
  Value* places = node.Make("non_zero", {{"x", x}});
  Bounded(node.builder(), places->type.shape[0], Product(x->type.shape));
  return places;
}

bool IsNatural(const Value* value) {
  constexpr int kDepth = 8;
  for (int depth = 0; depth < kDepth; ++depth) {
    const Operation* def = value->def;
    if (!def) return false;
    if (const auto& elements = value->elements)
      return std::all_of(elements->begin(), elements->end(), [&](const Dim& dim) {
        return dim.Bounds(def->block->function->symbols).low >= 0;
      });
    if (value->is_constant()) {
      std::vector<int64_t> ints = value->constant().Ints();
      return std::all_of(ints.begin(), ints.end(), [](int64_t i) { return i >= 0; });
    }
    for (std::string_view op : {"argsort", "non_zero", "reduce_argmax", "reduce_argmin", "shape"})
      if (def->is(op)) return true;
    if (def->is("topk")) return value->index == 1;
    bool moves = def->def->view && def->def->Find("x") >= 0;
    if (!moves || !def->value("x")) return false;
    value = def->value("x");
  }
  return false;
}

Value* AtRunTime(Builder& builder, Value* value, DType dtype) {
  DType want = RuntimeType(dtype);
  if (!value->is_constant() || want == DType::kNone || value->type.dtype == want) return value;
  return builder.Const(NarrowForMil(value->constant(), want));
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
  return std::all_of(entries_.begin(), entries_.end(), [](const Entry& e) { return !e.vector; });
}

std::vector<int64_t> Sizes::numbers() const {
  std::vector<int64_t> numbers;
  for (const Entry& entry : entries_) numbers.push_back(entry.number);
  return numbers;
}

Value* Sizes::Whole() const {
  auto computed = std::find_if(entries_.begin(), entries_.end(),
                               [](const Entry& entry) { return entry.vector; });
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
  if (known()) return node_.Const(Tensor::Vector(numbers()));
  std::map<Value*, Value*> shapes;
  for (Entry& entry : entries_) {
    if (!entry.is_dim) continue;
    Value*& shape = shapes[entry.vector];
    if (!shape) shape = ShapeOf(node_, entry.vector);
    entry = {shape, entry.index, 0, false};
  }
  if (Value* whole = Whole()) return whole;
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
      parts.push_back(node_.Const(Tensor::Vector(run)));
      continue;
    }
    int64_t begin = first.index, count = static_cast<int64_t>(end - i);
    parts.push_back(first.vector->type.shape[0] == Dim(count)
                        ? first.vector
                        : node_.Make("slice_by_index", {{"x", first.vector},
                                                        {"begin", Ints({begin})},
                                                        {"end", Ints({begin + count})}}));
  }
  return parts.size() == 1 ? parts[0] : node_.Make("concat", {{"values", parts}, {"axis", 0}});
}

}  // namespace mlc::onnx

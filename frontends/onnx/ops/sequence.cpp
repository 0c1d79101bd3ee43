// Sequences and optionals, which do not exist at run time: a sequence is represented by its
// elements and an optional by its contents. A position that is computed at run time selects among
// elements of one type.
#include <algorithm>

#include "frontends/onnx/row.h"
#include "frontends/onnx/shape_guard.h"
#include "lib/ir/arithmetic.h"
#include "lib/ir/shape_tensors.h"
#include "lib/lower/convert.h"
#include "lib/lower/indices.h"

namespace mlc::onnx {

namespace {

constexpr int64_t kMostElements = 4096;

Sequence Elements(Node& node, int input) {
  if (!node.HasInput(input)) node.Fail("bad-graph", "input {} is missing", input);
  Bound bound = node.Input(input);
  if (!bound.sequence)
    node.Fail("bad-graph", "input {} is {}, expected a sequence", input, bound.kind());
  return bound.sequence;
}

// Normalizes a constant position in a sequence of `count` elements.
int64_t Position(Node& node, const Tensor& position, size_t count) {
  int64_t at = position.Int(0), length = static_cast<int64_t>(count);
  if (at < -length || at >= length)
    node.Fail("bad-operand", "position {} is out of range for a sequence of {} elements", at,
              count);
  return at < 0 ? at + length : at;
}

// Returns all elements as run-time tensors of one type, so that a position computed at run time can
// select among them.
std::vector<Value*> Alike(Node& node, const std::vector<Bound>& elements, const Value* position) {
  std::vector<Value*> values;
  for (const Bound& element : elements) {
    bool fits = element.value && lower::RuntimeType(element.dtype) != DType::kNone &&
                element.dtype == elements[0].dtype;
    if (fits) values.push_back(lower::AtRunTime(node, element.value, element.dtype));
    if (!fits || !(values.back()->type == values[0]->type))
      node.FailUnknown(position,
                       "the shape depends on data: the position is computed at run time, and the "
                       "elements have different types");
  }
  if (values.empty()) node.Fail("bad-operand", "the sequence is empty");
  return values;
}

void SequenceEmpty(Node& node) {
  node.Ignore({"dtype"});
  node.SetSequence(std::vector<Bound>());
}

void SequenceConstruct(Node& node) {
  std::vector<Bound> elements;
  for (int i = 0; i < node.inputs(); ++i) {
    node.In(i);  // throws if it is not a tensor
    elements.push_back(node.Input(i));
  }
  node.SetSequence(std::move(elements));
}

void SequenceAt(Node& node) {
  const Sequence elements = Elements(node, 0);
  node.In(1);
  if (Tensor known = node.Known(1))
    return node.Set(0, elements[Position(node, known, elements.size())]);
  std::vector<Value*> values = Alike(node, elements.All(), node.In(1));
  Value* all = values.size() == 1 ? Expanded(node, values[0], {0})
                                  : node.Make("stack", {{"values", values}, {"axis", 0}});
  Value* chosen = lower::CountingFromEnd(
      node.Make("gather", {{"x", all}, {"indices", AsVector(node, node.In(1))}, {"axis", 0}}));
  node.Set(Squeezed(node, chosen, {0}), elements[0].dtype);
}

// Returns a position that is computed at run time as a scalar; negative positions count from the
// end of `length`.
Value* RuntimePosition(Node& node, int input, int64_t length) {
  Value* at = WithShape(node, node.In(input), {1});
  Value* from_end = Binary(node, "add", at, length);
  Value* negative = Binary(node, "less", at, 0);
  return Select(node, negative, from_end, at);
}

Value* Chosen(Node& node, Value* condition, Value* a, Value* b) {
  condition = Squeezed(node, condition, {0});
  return Select(node, condition, a, b);
}

void SequenceInsert(Node& node) {
  const Sequence sequence = Elements(node, 0);
  node.In(1);  // throws if it is not a tensor
  Bound added = node.Input(1);
  int64_t count = static_cast<int64_t>(sequence.size());
  Tensor known = node.HasInput(2) ? node.Known(2) : Tensor::Scalar(count);
  if (known) {
    int64_t at = known.Int(0);
    if (at < -count || at > count)
      node.Fail("bad-operand", "position {} is out of range for a sequence of {} elements", at,
                count);
    if (at == count) return node.SetSequence(sequence.With(added));
    std::vector<Bound> elements = sequence.All();
    elements.insert(elements.begin() + (at < 0 ? at + count : at), added);
    return node.SetSequence(std::move(elements));
  }
  std::vector<Bound> elements = sequence.All();
  elements.insert(elements.begin(), added);
  std::vector<Value*> values =
      Alike(node, elements, node.In(2));  // the new element, then the old ones
  Value* at = RuntimePosition(node, 2, count);
  std::vector<Bound> result;
  for (int64_t i = 0; i <= count; ++i) {
    Value* value = values[0];
    if (i < count)  // before the new element
      value = Chosen(node, Binary(node, "greater", at, i), values[i + 1], value);
    if (i > 0)  // after the new element
      value = Chosen(node, Binary(node, "less", at, i), values[i], value);
    result.push_back({value, added.dtype});
  }
  node.SetSequence(std::move(result));
}

void SequenceErase(Node& node) {
  std::vector<Bound> elements = Elements(node, 0).All();
  if (elements.empty()) node.Fail("bad-operand", "the sequence is empty");
  int64_t count = static_cast<int64_t>(elements.size());
  Tensor known = node.HasInput(1) ? node.Known(1) : Tensor::Scalar(count - 1);
  if (known) {
    elements.erase(elements.begin() + Position(node, known, elements.size()));
    return node.SetSequence(std::move(elements));
  }
  std::vector<Value*> values = Alike(node, elements, node.In(1));
  Value* at = RuntimePosition(node, 1, count);
  std::vector<Bound> result;
  for (int64_t i = 0; i + 1 < count; ++i)
    result.push_back({Chosen(node, Binary(node, "greater", at, i), values[i], values[i + 1]),
                      elements[i].dtype});
  node.SetSequence(std::move(result));
}

void SequenceLength(Node& node) {
  int64_t length = static_cast<int64_t>(Elements(node, 0).size());
  node.Set(node.Const(Tensor::Scalar(length)), DType::kInt64);
}

// Returns x[begin, begin + size) along dimension `axis`; the bounds are constants or vectors of one
// element.
Value* Part(Node& node, Value* x, int axis, Value* begin, Value* size) {
  int rank = x->type.rank();
  Value* end = Binary(node, "add", begin, size);
  std::vector<bool> whole(rank, true);
  whole[axis] = false;
  return node.Make("slice_by_index", {{"x", x},
                                      {"begin", AmongZeros(node, begin, axis, rank)},
                                      {"end", AmongZeros(node, end, axis, rank)},
                                      {"end_mask", Tensor::Vector(whole)}});
}

void SplitToSequence(Node& node) {
  Value* x = node.In(0);
  int axis = node.Axis(node.Int("axis", 0), node.rank(0));
  bool keep = node.Int("keepdims", 1) != 0 || node.HasInput(1);
  const Dim length = x->type.shape[axis];
  std::vector<int64_t> sizes;
  Value* computed = nullptr;  // sizes that are computed at run time
  Tensor split = node.HasInput(1) ? node.Known(1) : Tensor::Scalar<int64_t>(1);
  bool several = node.HasInput(1) && node.rank(1) == 1;
  if (split && several) {
    sizes = split.Ints();
  } else if (several) {
    computed = AllParts(node, x, axis, node.In(1));
    sizes.resize(VectorLength(node, computed, "split"));
  } else {
    if (!split) split = node.Constant(1, "split");
    if (!length.is_constant())
      throw Error("dynamic-shape", "SplitToSequence: the number of parts must be constant")
          .Help("fix the size of the input with option 'shape' or option 'dim'");
    int64_t size = split.Int(0);
    if (size < 1) node.Fail("bad-operand", "split is {}, expected a positive number", size);
    for (int64_t at = 0; at < length.constant() && sizes.size() <= kMostElements; at += size)
      sizes.push_back(std::min(size, length.constant() - at));
  }
  if (static_cast<int64_t>(sizes.size()) > kMostElements)
    node.Fail("resource-limit", "more than {} output tensors are not supported", kMostElements);
  int64_t sum = 0;
  for (int64_t size : sizes) {
    if (size < 0) node.Fail("bad-operand", "invalid size {} in split", size);
    sum += size;
  }
  if (!computed)
    x = Sized(node, x, axis, sum,
              fmt::format("the sum of the sizes, {}, must equal the dimension, {}", sum,
                          length.ToString()));
  std::vector<Bound> elements;
  Value* begin = node.Const(Ints({0}));
  for (size_t i = 0; i < sizes.size(); ++i) {
    Value* size = node.Const(Ints({sizes[i]}));
    int64_t at = static_cast<int64_t>(i);
    if (computed) size = SliceBetween(node, computed, {at}, {at + 1});
    Value* part = sizes.size() == 1 && !computed ? x : Part(node, x, axis, begin, size);
    if (!keep) part = Squeezed(node, part, {axis});
    elements.push_back({part, node.dtype(0)});
    begin = Binary(node, "add", begin, size);
  }
  node.SetSequence(std::move(elements));
}

void ConcatFromSequence(Node& node) {
  std::vector<Bound> elements = Elements(node, 0).All();
  bool fresh = node.Int("new_axis", 0) != 0;
  int64_t axis = node.Int("axis");
  if (elements.empty()) node.Fail("bad-operand", "the sequence is empty");
  if (!elements[0].value) node.Fail("bad-graph", "an element of the sequence is not a tensor");
  int at = node.Axis(axis, elements[0].value->type.rank() + fresh);
  if (fresh)
    for (Bound& element : elements) element.value = Expanded(node, element.value, {at});
  Attribute attribute{.name = "axis", .kind = Attribute::Kind::kInt, .ints = {at}};
  node.Set(node.Apply("Concat", 13, elements, {}, {attribute}), elements[0].dtype);
}

void SequenceMap(Node& node) {
  const Graph& body = node.Subgraph("body");
  const Sequence first = Elements(node, 0);
  std::vector<std::vector<Bound>> results(node.outputs());
  for (size_t i = 0; i < first.size(); ++i) {
    std::vector<Bound> inputs;
    for (int k = 0; k < node.inputs(); ++k) {
      Bound input = node.Input(k);
      if (input.sequence && input.sequence.size() != first.size())
        node.Fail("bad-operand", "the input sequences have different lengths, {} and {}",
                  first.size(), input.sequence.size());
      inputs.push_back(input.sequence ? input.sequence[i] : input);
    }
    std::vector<Bound> made = node.Inline(body, inputs);
    if (made.size() < results.size()) node.Fail("bad-graph", "the body has too few outputs");
    for (size_t k = 0; k < results.size(); ++k) results[k].push_back(made[k]);
  }
  for (size_t k = 0; k < results.size(); ++k)
    node.Set(static_cast<int>(k), Bound{.sequence = Sequence(std::move(results[k]))});
}

void Optional(Node& node) {
  node.Ignore({"type"});
  node.Set(0, node.HasInput(0) ? node.Input(0) : Bound{.nothing = true});
}

void OptionalGetElement(Node& node) {
  if (!node.HasInput(0)) node.Fail("bad-graph", "input 0 is missing");
  Bound bound = node.Input(0);
  if (bound.nothing) node.Fail("bad-operand", "the optional is empty");
  node.Set(0, bound);
}

void OptionalHasElement(Node& node) {
  bool has = node.HasInput(0) && !node.Input(0).nothing;
  node.Set(node.Const(Tensor::Scalar<bool>(has)), DType::kBool);
}

constexpr std::string_view kPosition =
    "the position is constant, or all elements have the same shape";

constexpr NodeRow kSequenceRows[] = {
    NodeRow("ConcatFromSequence", ConcatFromSequence, 11),
    NodeRow("Optional", Optional, 15).Folded(),
    NodeRow("OptionalGetElement", OptionalGetElement, 15).Folded(),
    NodeRow("OptionalHasElement", OptionalHasElement, 15).Folded(),
    NodeRow("SequenceAt", SequenceAt, 11).When(kPosition),
    NodeRow("SequenceConstruct", SequenceConstruct, 11).Folded(),
    NodeRow("SequenceEmpty", SequenceEmpty, 11).Folded(),
    NodeRow("SequenceErase", SequenceErase, 11).When(kPosition),
    NodeRow("SequenceInsert", SequenceInsert, 11).When(kPosition),
    NodeRow("SequenceLength", SequenceLength, 11).Folded(),
    NodeRow("SequenceMap", SequenceMap, 17),
    NodeRow("SplitToSequence", SplitToSequence, 11).When("the number of parts is constant"),
};

}  // namespace

std::span<const NodeRow> SequenceRows() { return kSequenceRows; }

}  // namespace mlc::onnx

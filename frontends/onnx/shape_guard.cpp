#include "frontends/onnx/shape_guard.h"

#include <fmt/ranges.h>

#include <algorithm>

#include "frontends/onnx/scope.h"
#include "lib/ir/arithmetic.h"
#include "lib/ir/shape_tensors.h"
#include "lib/lower/convert.h"

namespace mlc::onnx {

namespace {

constexpr int64_t kMostSizes = 1 << 16;

std::string RangeText(const Symbol& symbol) {
  if (!symbol.enumerated.empty()) return fmt::format("{}", fmt::join(symbol.enumerated, ", "));
  if (symbol.low == symbol.high) return fmt::format("{}", symbol.low);
  return fmt::format("{} to {}", symbol.low, symbol.high);
}

// The sizes of `name`, within `symbol`, for which `dim` fits, in ascending order. Nothing if there
// are too many sizes to try.
std::optional<std::vector<int64_t>> Fitting(const Dim& dim, const std::string& name,
                                            const Symbol& symbol,
                                            const std::function<bool(int64_t)>& fits) {
  std::vector<int64_t> sizes = symbol.enumerated, fit;
  if (sizes.empty()) {
    if (symbol.high - symbol.low >= kMostSizes) return std::nullopt;
    sizes = Consecutive(symbol.low, symbol.high + 1);
  }
  for (int64_t size : sizes)
    if (std::optional<int64_t> value = dim.Evaluate({{name, size}}); value && fits(*value))
      fit.push_back(size);
  return fit;
}

// The name of the flexible input size on which alone `dim` depends.
std::optional<std::string> OpenSymbol(Node& node, const Dim& dim) {
  std::vector<std::string> names;
  dim.CollectSymbols(names);
  if (names.size() != 1 || !node.scope().import().open.contains(names[0])) return std::nullopt;
  return names[0];
}

// Returns whether the node runs unconditionally.
bool Certain(Node& node) {
  const Block& block = node.builder().block();
  return &block == &block.function->body && !node.scope().import().trial;
}

[[noreturn]] void FailNeed(Node& node, const Dim& dim, const std::string& text,
                           const std::function<bool(int64_t)>& fits) {
  std::optional<std::string> symbol = OpenSymbol(node, dim);
  if (!symbol) node.Fail("bad-operand", text);
  const std::string& name = node.scope().import().open.at(*symbol);
  Error error("bad-operand", "{}: {}", node.op(), text);
  error.Note("{} is {}", name, RangeText(node.builder().symbols().at(*symbol)));
  if (auto fit = Fitting(dim, *symbol, Symbol(), fits); fit && !fit->empty())
    error.Help("pass option 'dim' {}={}", name, fit->front());
  throw error;
}

// Returns x reshaped to its own dimensions with `size` at `axis`; 0 in the shape operand keeps the
// dimension of x.
Value* Reshaped(Node& node, Value* x, int axis, int64_t size) {
  std::vector<int64_t> numbers;
  for (const Dim& dim : x->type.shape) numbers.push_back(dim.is_constant() ? dim.constant() : 0);
  numbers[axis] = size;
  return WithShape(node, x, numbers);
}

// Makes two flexible input sizes equal if `difference` is their difference.
bool Unify(Node& node, const Dim& difference, const std::string& text) {
  ImportState& import = node.scope().import();
  std::vector<std::string> names;
  difference.CollectSymbols(names);
  if (names.size() != 2 || !Certain(node)) return false;
  const Dim apart = Dim::Symbol(names[0]) - Dim::Symbol(names[1]);
  if (difference != apart && difference != Dim(0) - apart) return false;
  auto one = import.open.find(names[0]), other = import.open.find(names[1]);
  if (one == import.open.end() || other == import.open.end()) return false;
  Symbol& first = node.builder().symbols().at(names[0]);
  Symbol& second = node.builder().symbols().at(names[1]);
  Symbol both = first, more = second;
  if (both.enumerated.empty()) std::swap(both, more);
  auto lacks = [&](int64_t size) {
    return size < more.low || size > more.high ||
           (!more.enumerated.empty() && !std::ranges::binary_search(more.enumerated, size));
  };
  bool listed = !both.enumerated.empty();
  std::erase_if(both.enumerated, lacks);
  both.low =
      listed && !both.enumerated.empty() ? both.enumerated.front() : std::max(both.low, more.low);
  both.high =
      listed && !both.enumerated.empty() ? both.enumerated.back() : std::min(both.high, more.high);
  if (both.low > both.high || (listed && both.enumerated.empty()))
    node.Fail("bad-operand", "{}, but no size is valid for both", text);
  auto [kept, same] = std::minmax(one->second, other->second);
  import.narrowed.sizes[kept] = first = second = both;
  import.narrowed.same[same] = kept;
  import.narrowed.notes.push_back(
      {fmt::format("{} equal to {}", same, kept), fmt::format("{}: {}", node.op(), text)});
  return import.narrowed.again = true;
}

}  // namespace

std::optional<Narrowed> Narrow(Node& node, const Dim& dim, const std::function<bool(int64_t)>& fits,
                               const std::string& why) {
  std::optional<std::string> name = OpenSymbol(node, dim);
  if (!name) return std::nullopt;
  ImportState& import = node.scope().import();
  Symbol& symbol = node.builder().symbols().at(*name);
  std::optional<std::vector<int64_t>> fit = Fitting(dim, *name, symbol, fits);
  if (!fit || fit->empty()) return std::nullopt;
  Narrowed narrowed{import.open.at(*name), symbol, false};
  narrowed.left.low = fit->front();
  narrowed.left.high = fit->back();
  if (!symbol.enumerated.empty()) narrowed.left.enumerated = *fit;
  narrowed.all = !symbol.enumerated.empty() || fit->back() - fit->front() + 1 == std::ssize(*fit);
  bool less = symbol.low < narrowed.left.low || symbol.high > narrowed.left.high ||
              symbol.enumerated.size() > narrowed.left.enumerated.size();
  if (!less) return narrowed;
  std::string what =
      fmt::format("{} from {} to {}", narrowed.name, narrowed.left.low, narrowed.left.high);
  import.narrowed.sizes[narrowed.name] = symbol = narrowed.left;
  import.narrowed.notes.push_back({what, fmt::format("{}: {}", node.op(), why)});
  import.narrowed.again |= symbol.low == symbol.high;
  return narrowed;
}

bool RequireSize(Node& node, const Dim& dim, int64_t low, int64_t high, const std::string& text) {
  auto fits = [&](int64_t value) { return low <= value && value <= high; };
  const Symbols& symbols = node.builder().symbols();
  Dim::Range range = dim.Bounds(symbols);
  // Interval bounds ignore the correlation between a size and an expression of it, such as n -
  // max(n - 300, 0).
  auto at_most = [&](const Dim& a, const Dim& b) {
    return Max(a, b).Within(symbols) == b.Within(symbols);
  };
  if ((low <= range.low || at_most(low, dim)) && (range.high <= high || at_most(dim, high)))
    return true;
  if (range.high < low || high < range.low) FailNeed(node, dim, text, fits);
  if (low == 0 && high == 0 && Unify(node, dim, text)) return true;
  std::optional<std::string> name = OpenSymbol(node, dim);
  if (!name || !Certain(node)) return false;
  // If both ends of the range fit, narrowing cannot remove a size at either end.
  const Symbol& symbol = node.builder().symbols().at(*name);
  auto fits_at = [&](int64_t size) {
    std::optional<int64_t> value = dim.Evaluate({{*name, size}});
    return value && fits(*value);
  };
  if (symbol.enumerated.empty() && fits_at(symbol.low) && fits_at(symbol.high)) return false;
  std::optional<Narrowed> narrowed = Narrow(node, dim, fits, text);
  if (!narrowed && symbol.high - symbol.low < kMostSizes) FailNeed(node, dim, text, fits);
  return narrowed && narrowed->all;
}

Value* Sized(Node& node, Value* x, int axis, int64_t size, const std::string& text) {
  if (RequireSize(node, x->type.shape[axis], size, size, text)) return x;
  return Reshaped(node, x, axis, size);
}

void RequireEqualSize(Node& node, Value*& a, int i, Value*& b, int j, const std::string& what) {
  const Dim x = a->type.shape[i], y = b->type.shape[j];
  std::string text = fmt::format("{}: {} and {} must be equal", what, x.ToString(), y.ToString());
  if (RequireSize(node, x - y, 0, 0, text)) return;
  if (x.is_constant()) {
    b = Reshaped(node, b, j, x.constant());
  } else if (y.is_constant()) {
    a = Reshaped(node, a, i, y.constant());
  } else {
    Sizes one(node), other(node);
    one.AddDim(a, i);
    other.AddDim(b, j);
    b = Guarded(node, b, node.Make("equal", {{"x", one.Make()}, {"y", other.Make()}}));
  }
}

Value* OfShape(Node& node, Value* y, Value* x, const std::string& what) {
  const Shape from = y->type.shape, to = x->type.shape;
  std::string text = fmt::format("{} must keep the shape {}, but broadcasting changes it to {}",
                                 what, ToString(to), ToString(from));
  if (from.size() != to.size()) node.Fail("bad-operand", text);
  bool known = true;
  for (size_t d = 0; d < to.size(); ++d)
    known = RequireSize(node, from[d] - to[d], 0, 0, text) && known;
  if (known) return y;
  return Guarded(node, y, node.Make("equal", {{"x", ShapeOf(node, y)}, {"y", ShapeOf(node, x)}}));
}

void RequireSameShape(Node& node, Value*& a, Value*& b, const std::string& what, int but) {
  if (a->type.rank() != b->type.rank())
    node.Fail("bad-operand", "{}: {} and {} must be equal", what, ToString(a->type.shape),
              ToString(b->type.shape));
  for (int d = 0; d < a->type.rank(); ++d)
    if (d != but) RequireEqualSize(node, a, d, b, d, what);
}

Value* PlusLast(Node& node, Value* x, Value* bias) {
  if (bias->type.rank() == 1 && x->type.rank() > 0)
    RequireEqualSize(node, x, x->type.rank() - 1, bias, 0, "last dimension and length of the bias");
  return Binary(node, "add", x, bias);
}

int64_t VectorLength(Node& node, const Value* vector, std::string_view operand) {
  const Shape& shape = vector->type.shape;
  if (shape.size() != 1)
    node.Fail("bad-operand", "{} is {}, expected a vector", operand, vector->type.ToString());
  if (!shape[0].is_constant())
    node.FailUnknown(vector,
                     fmt::format("the length of input \"{}\" is computed at run time", operand));
  return shape[0].constant();
}

Value* AllParts(Node& node, Value* x, int axis, Value* sizes) {
  if (std::optional<std::vector<Dim>> parts = ElementsOf(sizes)) {
    const Dim size = x->type.shape[axis];
    Dim sum = 0;
    bool natural = true;
    for (const Dim& part : *parts) {
      sum = sum + part;
      natural = RequireSize(node, part, 0, INT32_MAX, "the size of a part must not be negative") &&
                natural;
    }
    if (natural && RequireSize(node, sum - size, 0, 0,
                               fmt::format("the sum of the sizes, {}, must equal the dimension, {}",
                                           sum.ToString(), size.ToString())))
      return sizes;
  }
  Sizes whole(node);
  whole.AddDim(x, axis);
  Value* sum = Reduced(node, "reduce_sum", sizes, {0}, true);
  Value* all = Binary(node, "equal", sum, lower::AtRunTime(node, whole.Make(), DType::kInt64));
  Value* natural = Binary(node, "greater_equal", sizes, 0);
  return Guarded(node, sizes, Binary(node, "logical_and", natural, all));
}

Value* Single(Node& node, Value* value, const std::string& what) {
  if (value->type.rank() == 0) return value;
  bool known = RequireSize(
      node, Product(value->type.shape), 1, 1,
      fmt::format("{} has shape {}, expected a single element", what, ToString(value->type.shape)));
  if (!known || !IsStatic(value->type.shape)) value = WithShape(node, value, {1});
  return AsScalar(node.builder(), value);
}

Value* Guarded(Node& node, Value* value, Value* ok) {
  // The gather below has a single slice, so index 1 fails at run time.
  Value* wrong = node.builder().Cast(node.Make("logical_not", {{"x", ok}}), DType::kInt32);
  if (wrong->type.rank() > 0) {
    bool empty = std::ranges::any_of(wrong->type.shape, [&](const Dim& dim) {
      return dim.Bounds(node.builder().symbols()).low < 1;
    });
    wrong = node.Make("reduce_max", {{"x", wrong}, {"keep_dims", false}});
    // The maximum of an empty tensor is the lowest integer; an empty tensor must pass.
    if (empty) wrong = Binary(node, "maximum", wrong, 0);
  }
  Value* only = Expanded(node, value, {0});
  return node.Make("gather", {{"x", only}, {"indices", wrong}, {"axis", 0}});
}

Value* Within(Node& node, Value* value, Value* low, Value* high) {
  Value* ok = nullptr;
  if (low) ok = Binary(node, "greater_equal", value, low);
  if (high) {
    Value* below = Binary(node, "less_equal", value, high);
    ok = ok ? Binary(node, "logical_and", ok, below) : below;
  }
  return ok ? Guarded(node, value, ok) : value;
}

}  // namespace mlc::onnx

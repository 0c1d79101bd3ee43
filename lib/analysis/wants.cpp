#include "lib/analysis/wants.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <span>

#include "lib/support/error.h"

namespace mlc {

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr int64_t kLargestRead = 4096;  // elements of a constant that are looked at
constexpr double kMasked = -1000;       // what masks add or choose is below
constexpr int64_t kTrips = 4;           // of a loop, at most

using Bounds = std::pair<double, double>;

Want Bounded(double low, double high, std::string why) {
  Want want;
  want.low = low;
  want.high = std::max(low, high);
  want.why = std::move(why);
  return want;
}

Want Soft(double low, double high, std::string why) {
  Want want;
  want.soft_low = low;
  want.soft_high = high;
  want.why = std::move(why);
  return want;
}

Want Opaque() {
  Want want;
  want.opaque = true;
  return want;
}

// Both users' wishes; two sides of one select are asked for where that side is taken.
Want Meet(Want a, const Want& b) {
  bool either = a.branch && a.branch == b.branch;
  double low = either ? std::min(a.low, b.low) : std::max(a.low, b.low);
  double high = either ? std::max(a.high, b.high) : std::min(a.high, b.high);
  if (b.bounded() && (!a.bounded() || low != a.low || high != a.high)) a.why = b.why;
  if (low <= high) {
    a.low = low;
    a.high = high;
  }
  a.soft_low = std::min(a.soft_low, b.soft_low);
  a.soft_high = std::max(a.soft_high, b.soft_high);
  if (a.parts.empty()) a.parts = b.parts;
  if (a.scale == 0) {
    a.center = b.center;
    a.scale = b.scale;
  }
  a.mask = a.mask || b.mask;
  a.opaque = a.opaque || b.opaque;
  if (a.valid < 0) a.valid = b.valid;
  if (a.branch != b.branch) a.branch = nullptr;
  if (a.why.empty()) a.why = b.why;
  return a;
}

// The wish for x where its user asks this of factor * x + offset.
Want Through(Want want, double factor, double offset) {
  if (factor == 0) return {};
  auto map = [&](double& low, double& high) {
    low = (low - offset) / factor + 0.0;  // not -0
    high = (high - offset) / factor + 0.0;
    if (factor < 0) std::swap(low, high);
  };
  map(want.low, want.high);
  for (Bounds& part : want.parts) map(part.first, part.second);
  if (want.soft_low <= want.soft_high) map(want.soft_low, want.soft_high);
  // A small factor, or an offset, tells the size of what is meant: 1/255, or the mean of an image.
  double center = (want.center - offset) / factor,
         scale = std::max(want.scale, 1.0) / std::fabs(factor);
  bool says = want.scale > 0 || scale >= 16 || std::fabs(center) >= 16;
  want.center = says ? center : 0;
  want.scale = says ? scale : 0;
  return want;
}

std::string Quoted(const Operation& op) {
  bool named = !op.name.empty() || op.results.empty();
  return fmt::format("{} \"{}\"", op.def->name, named ? op.name : op.result()->name);
}

class Analysis {
 public:
  Analysis(const Function& function, const SymbolSizes& sizes) : sizes_(sizes) {
    Visit(function.body);
  }

  std::unordered_map<const Value*, Want> Take() && { return std::move(wants_); }

 private:
  // What the users of a value ask.
  const Want& Of(const Value* value) const {
    static const Want nothing;
    auto it = wants_.find(value);
    return it == wants_.end() ? nothing : it->second;
  }

  // What operation `op` asks of `value`, its i-th operand of `param`.
  using Rule = Want (Analysis::*)(const Operation& op, std::string_view param, size_t i,
                                  const Value& value) const;
  struct RuleRow {
    std::string_view op, params;  // params: names with a space around each; empty: all
    Rule rule;
  };
  static std::span<const RuleRow> Rules();

  void Ask(const Value* value, Want want) {
    auto [it, first] = wants_.try_emplace(value);
    it->second = first ? std::move(want) : Meet(std::move(it->second), want);
  }

  // From the last operation to the first: when one is reached, all users of its results have asked.
  void Visit(const Block& block) {
    for (auto it = block.operations().rbegin(); it != block.operations().rend(); ++it) {
      const Operation& op = **it;
      for (const auto& nested : op.blocks) {
        for (size_t i = 0; i < nested->inputs.size(); ++i)
          loop_inputs_[nested->inputs[i].get()] = {&op, i};
        const std::vector<Value*>& outputs = nested->outputs();
        bool test = op.is("while_loop") && nested == op.blocks[0];
        for (size_t i = 0; !test && i < std::min(outputs.size(), op.results.size()); ++i)
          Ask(outputs[i], Of(op.results[i].get()));
        Visit(*nested);
      }
      for (size_t p = 0; p < op.args().size(); ++p)
        for (size_t i = 0; i < op.args()[p].size(); ++i)
          if (const Value* value = op.args()[p][i].value; value && !value->is_constant())
            Ask(value, Asked(op, op.def->canonical().params[p].name, i, *value));
    }
  }

  double Size(const Dim& dim) const {
    return static_cast<double>(std::max<int64_t>(dim.Evaluate(sizes_).value_or(1), 0));
  }

  Want Asked(const Operation& op, std::string_view param, size_t i, const Value& value) const {
    for (const RuleRow& row : Rules())
      if (row.op == op.def->name &&
          (row.params.empty() || row.params.find(fmt::format(" {} ", param)) != std::string::npos))
        return (this->*row.rule)(op, param, i, value);
    if (op.def->view && param == "x") return Same(op, param, i, value);
    Want want;
    want.opaque = !IsFloat(value.type.dtype);
    return want;
  }

  Want Results(const Operation& op) const {
    Want want = Of(op.result());
    for (size_t r = 1; r < op.results.size(); ++r)
      want = Meet(std::move(want), Of(op.results[r].get()));
    return want;
  }

  // Bounds by place stay where the last dimension does; elsewhere what suits every place is left.
  static Want Moved(Want want, const Value& from, const Value& to) {
    if (want.parts.empty()) return want;
    const Shape &before = from.type.shape, &after = to.type.shape;
    if (!before.empty() && !after.empty() && before.back() == after.back()) return want;
    if (before.empty() && want.parts.size() == 1) {
      want.low = want.parts[0].first;
      want.high = want.parts[0].second;
    }
    want.parts.clear();
    return want;
  }

  Want Same(const Operation& op, std::string_view, size_t, const Value& value) const {
    return Moved(Results(op), value, *op.result());
  }

  Want Concat(const Operation& op, std::string_view, size_t i, const Value& value) const {
    Want want = Of(op.result());
    if (want.parts.empty()) return want;
    Tensor axis = op.constant("axis");
    int rank = value.type.rank();
    bool last = axis && rank > 0 && OpContext::Axis(axis.Int(0), rank) == rank - 1;
    size_t begin = 0;
    for (size_t k = 0; last && k < i; ++k)
      begin += static_cast<size_t>(Size(op.arg("values")[k].type().shape.back()));
    size_t count = last ? static_cast<size_t>(Size(value.type.shape.back())) : 0;
    if (!last || begin + count > want.parts.size()) {
      if (last) want.parts.clear();
      return want;
    }
    want.parts = {want.parts.begin() + static_cast<std::ptrdiff_t>(begin),
                  want.parts.begin() + static_cast<std::ptrdiff_t>(begin + count)};
    want.low = -kInfinity;
    want.high = kInfinity;
    for (const Bounds& part : want.parts) {
      want.low = std::max(want.low, part.first);
      want.high = std::min(want.high, part.second);
    }
    return want;
  }

  Want Cast(const Operation& op, std::string_view, size_t, const Value& value) const {
    Want want = Moved(Of(op.result()), value, *op.result());
    if (op.result()->type.dtype == DType::kBool && value.type.dtype != DType::kBool) {
      want.soft_low = std::min(want.soft_low, 0.0);
      want.soft_high = std::max(want.soft_high, 1.0);
      want.mask = true;
    }
    return want;
  }

  // The interval of what does not depend on inputs but through their sizes.
  std::optional<Bounds> Known(const Operand& operand, int depth = 0) const {
    if (Tensor constant = operand.constant()) {
      int64_t most = IsFloat(constant.dtype()) ? kLargestRead : 16 * kLargestRead;
      if (constant.size() == 0 || constant.size() > most || constant.dtype() == DType::kString)
        return {};
      Bounds bounds{kInfinity, -kInfinity};
      for (int64_t i = 0; i < constant.size(); ++i) {
        bounds.first = std::min(bounds.first, constant.Double(i));
        bounds.second = std::max(bounds.second, constant.Double(i));
      }
      return bounds;
    }
    const Value* value = operand.value;
    if (!value || depth > 16) return {};
    if (value->elements && !value->elements->empty()) {
      Bounds bounds{kInfinity, -kInfinity};
      for (const Dim& element : *value->elements) {
        std::optional<int64_t> known = element.Evaluate(sizes_);
        if (!known) return {};
        bounds.first = std::min(bounds.first, static_cast<double>(*known));
        bounds.second = std::max(bounds.second, static_cast<double>(*known));
      }
      return bounds;
    }
    const Operation* op = value->def;
    if (!op) return LoopIndex(*value, depth);
    auto of = [&](std::string_view param) { return Known(op->arg(param).at(0), depth + 1); };
    if (op->is("range_1d")) {
      std::optional<Bounds> start = of("start"), end = of("end"), step = of("step");
      if (!start || !end || !step || step->first <= 0) return {};
      return Bounds{start->first, std::max(start->first, end->second - step->first)};
    }
    if (op->is("fill")) return op->has("value") ? of("value") : Bounds{0, 0};
    if (op->is("cumsum") || op->is("cast") || (op->def->view && op->def->Find("x") >= 0)) {
      std::optional<Bounds> x = of("x");
      if (x && op->is("cumsum") && value->type.rank() > 0) {
        double n = 1;
        for (const Dim& dim : value->type.shape) n = std::max(n, Size(dim));
        x = Bounds{std::min(x->first, x->first * n), std::max(x->second, x->second * n)};
      }
      return x;
    }
    if (op->is("add") || op->is("sub")) {
      std::optional<Bounds> x = of("x"), y = of("y");
      if (!x || !y) return {};
      return op->is("add") ? Bounds{x->first + y->first, x->second + y->second}
                           : Bounds{x->first - y->second, x->second - y->first};
    }
    return {};
  }

  // A loop's counter lies below what the condition compares it with.
  std::optional<Bounds> LoopIndex(const Value& value, int depth) const {
    auto it = loop_inputs_.find(&value);
    const Operation* loop = it == loop_inputs_.end() ? nullptr : it->second.first;
    if (!loop) return {};
    const Value* counter = loop->blocks[0]->inputs.at(it->second.second).get();
    for (const Operation* user : counter->users)
      if (user->is("less") && user->value("x") == counter)
        if (std::optional<Bounds> limit = Known(user->arg("y")[0], depth + 1))
          return Bounds{0, std::max(0.0, limit->second - 1)};
    return {};
  }

  const Operand& Other(const Operation& op, std::string_view param) const {
    return op.arg(param == "x" ? "y" : "x")[0];
  }

  Want Add(const Operation& op, std::string_view param, size_t, const Value& value) const {
    Want want = Moved(Of(op.result()), value, *op.result());
    std::optional<Bounds> other = Known(Other(op, param));
    if (other) {
      bool masks = want.mask;
      double middle = (other->first + other->second) / 2;
      Want moved = Through(want, 1, std::isfinite(middle) ? middle : 0);
      // Whatever the other is, the sum lies inside.
      if (moved.low > -kInfinity) moved.low += middle - other->first;
      if (moved.high < kInfinity) moved.high -= other->second - middle;
      moved.mask = masks;
      return moved;
    }
    return Shared(std::move(want), 2);
  }

  // Of n unknown parts that make up what is wanted together.
  static Want Shared(Want want, double n) {
    Want part;
    part.opaque = want.opaque || want.bounded();
    part.branch = want.branch;
    part.why = want.why;
    if (want.high < kInfinity) part.high = want.high >= 0 ? std::floor(want.high / n) : want.high;
    if (want.low > -kInfinity)
      part.low = want.low <= 0 ? want.low / n : std::min(want.low, part.high);
    return part;
  }

  Want Sub(const Operation& op, std::string_view param, size_t, const Value& value) const {
    Want want = Moved(Of(op.result()), value, *op.result());
    std::optional<Bounds> other = Known(Other(op, param));
    if (!other) {
      Want part;
      part.opaque = want.bounded() || want.opaque;
      return part;
    }
    double middle = (other->first + other->second) / 2;
    if (!std::isfinite(middle)) return {};
    if (param == "x") {
      Want moved = Through(want, 1, -middle);
      if (moved.low > -kInfinity) moved.low += other->second - middle;
      if (moved.high < kInfinity) moved.high -= middle - other->first;
      return moved;
    }
    Want moved = Through(want, -1, middle);
    if (want.mask && want.valid >= 0) moved.valid = 1 - want.valid;  // 1 - mask
    return moved;
  }

  Want Mul(const Operation& op, std::string_view param, size_t, const Value& value) const {
    Want want = Moved(Of(op.result()), value, *op.result());
    std::optional<Bounds> other = Known(Other(op, param));
    if (!other) {
      if (!want.bounded()) return want.opaque ? Opaque() : Want();
      Want part = Shared(want, 1);
      if (part.high < kInfinity) part.high = std::floor(std::sqrt(std::max(0.0, part.high)));
      part.low = std::max(part.low, 0.0);
      return part;
    }
    if (other->second <= kMasked || (other->first >= -kMasked && IsMinusOne(value))) {
      Want mask;
      mask.mask = true;
      mask.valid = other->second <= kMasked ? 0 : 1;
      mask.why = fmt::format("mask of {}", Quoted(op));
      return mask;
    }
    double factor = (other->first + other->second) / 2;
    if (!std::isfinite(factor)) return {};
    if (want.mask && other->first >= 0 && other->second <= 1) return want;
    return Through(want, factor, 0);
  }

  // Whether a value is a mask minus 1.
  bool IsMinusOne(const Value& value) const {
    if (!value.def || !value.def->is("sub")) return false;
    std::optional<Bounds> one = Known(value.def->arg("y")[0]);
    return one && *one == Bounds{1, 1};
  }

  Want Divide(const Operation& op, std::string_view param, size_t, const Value& value) const {
    bool integers = !IsFloat(value.type.dtype);
    if (param == "y")
      return integers ? Bounded(1, 9, fmt::format("divisor of {}", Quoted(op))) : Want();
    if (op.is("mod")) return {};
    std::optional<Bounds> other = Known(op.arg("y")[0]);
    double factor = other ? (other->first + other->second) / 2 : 1;
    if (factor == 0 || !std::isfinite(factor)) return {};
    Want want = Through(Moved(Of(op.result()), value, *op.result()), 1 / factor, 0);
    if (integers && want.high < kInfinity) want.high += factor - 1;
    return want;
  }

  Want Extremum(const Operation& op, std::string_view param, size_t, const Value& value) const {
    Want want = Moved(Of(op.result()), value, *op.result());
    std::optional<Bounds> other = Known(Other(op, param));
    if (!other) return want;
    return Clamped(op, std::move(want), op.is("maximum") ? other->first : -kInfinity,
                   op.is("minimum") ? other->second : kInfinity);
  }

  Want Clip(const Operation& op, std::string_view, size_t, const Value&) const {
    auto bound = [&](std::string_view param, double fallback) {
      std::optional<Bounds> known = op.has(param) ? Known(op.arg(param)[0]) : std::nullopt;
      return known ? known->first : fallback;
    };
    return Clamped(op, Of(op.result()), bound("alpha", -kInfinity), bound("beta", kInfinity));
  }

  // What a clamp brings inside need not lie inside; values on both sides of it are worth a try.
  static Want Clamped(const Operation& op, Want want, double low, double high) {
    constexpr double kHuge = 1e9;
    bool integers = !IsFloat(op.result()->type.dtype);
    bool has_low = low > -kHuge, has_high = high < kHuge;
    double margin = integers ? 1 : has_low && has_high ? (high - low) / 16 : 1;
    if (has_low && want.low <= low) want.low = -kInfinity;
    if (has_high && want.high >= high) want.high = kInfinity;
    if (has_low) want.soft_low = std::min(want.soft_low, low - margin);
    if (has_high) want.soft_high = std::max(want.soft_high, high + margin);
    if (has_low && !has_high) want.soft_high = std::max(want.soft_high, low + margin);
    if (has_high && !has_low) want.soft_low = std::min(want.soft_low, high - margin);
    if (want.why.empty() && (has_low || has_high))
      want.why = fmt::format("bounds of {}", Quoted(op));
    return want;
  }

  Want Compare(const Operation& op, std::string_view param, size_t, const Value& value) const {
    const Block* block = op.block;
    bool integers = !IsFloat(value.type.dtype);
    if (integers && block->parent && block->parent->is("while_loop") &&
        block->parent->blocks[0].get() == block)
      return Bounded(0, kTrips, fmt::format("trips of {}", Quoted(*block->parent)));
    std::optional<Bounds> other = Known(Other(op, param));
    if (!other) return {};
    auto [low, high] = *other;
    bool below = op.def->name.starts_with("less") == (param == "x");  // is tested for being so
    bool or_equal = op.is("less_equal") || op.is("greater_equal");
    const Operand& what = Other(op, param);
    bool steps = integers && low >= 0 && low <= 1 && high > low && high - low + 1 <= 1e6 &&
                 what.type().rank() > 0;
    if (steps && (op.is("equal") || op.is("not_equal")))
      return Bounded(low, high, fmt::format("places that {} tells apart", Quoted(op)));
    // n > step, or not n <= step: n may be one more than the last step, and is at least 1.
    if (steps) {
      double more = below == or_equal ? 1 : 0;
      return Bounded(low + more, high + more, fmt::format("lengths that {} looks at", Quoted(op)));
    }
    Want result = Of(op.result());
    Want want;
    if (integers) {
      // Both answers: c - 1 and c, or c and c + 1.
      bool after = op.is("equal") || op.is("not_equal") || below == or_equal;
      want = after ? Soft(low, high + 1, "") : Soft(low - 1, high, "");
    } else {
      want = Soft(low - 1, high + 1, "");
    }
    want.why = fmt::format("threshold of {}", Quoted(op));
    // A test that tells 0 from 1 passes a mask on.
    if (low == high && low >= 0 && low <= 1) {
      bool one = low == 1;
      bool keeps = op.is("equal") ? one : op.is("not_equal") ? !one : !below;
      want.mask = true;
      if (result.mask && result.valid >= 0) want.valid = keeps ? result.valid : 1 - result.valid;
      if (!integers) {
        want.soft_low = 0;
        want.soft_high = 1;
      }
    }
    return want;
  }

  Want Not(const Operation& op, std::string_view, size_t, const Value&) const {
    Want want = Of(op.result());
    if (want.valid >= 0) want.valid = 1 - want.valid;
    return want;
  }

  Want Logic(const Operation& op, std::string_view, size_t, const Value&) const {
    return Of(op.result());
  }

  Want Select(const Operation& op, std::string_view param, size_t, const Value& value) const {
    if (param != "cond") {
      Want want = Moved(Of(op.result()), value, *op.result());
      want.branch = &op;
      return want;
    }
    Want want;
    want.mask = true;
    std::optional<Bounds> a = Known(op.arg("a")[0]), b = Known(op.arg("b")[0]);
    if (a && a->second <= kMasked) want.valid = 0;
    if (b && b->second <= kMasked) want.valid = 1;
    want.why = fmt::format("condition of {}", Quoted(op));
    return want;
  }

  Want AttentionMask(const Operation& op, std::string_view, size_t, const Value& value) const {
    Want want;
    want.mask = value.type.dtype == DType::kBool;
    want.valid = want.mask ? 1 : -1;
    want.why = fmt::format("mask of {}", Quoted(op));
    return want;
  }

  int Axis(const Operation& op, std::string_view data) const {
    Tensor axis = op.constant_or_default("axis");
    int rank = op.arg(data)[0].type().rank();
    return axis && rank > 0 ? OpContext::Axis(axis.Int(0), rank) : 0;
  }

  Want Index(const Operation& op, std::string_view, size_t, const Value&) const {
    std::string_view data = op.def->Find("data") >= 0 ? "data" : "x";
    const Shape& shape = op.arg(data)[0].type().shape;
    if (shape.empty()) return {};
    return Bounded(0, Size(shape[static_cast<size_t>(Axis(op, data))]) - 1,
                   fmt::format("rows that {} picks", Quoted(op)));
  }

  Want IndexVectors(const Operation& op, std::string_view, size_t, const Value& value) const {
    std::string_view data = op.def->Find("data") >= 0 ? "data" : "x";
    const Shape shape = op.arg(data)[0].type().shape;
    Tensor batch =
        op.def->Find("batch_dims") >= 0 ? op.constant_or_default("batch_dims") : Tensor();
    size_t first = batch ? static_cast<size_t>(std::max<int64_t>(batch.Int(0), 0)) : 0;
    if (value.type.shape.empty()) return {};
    Want want = Bounded(0, kInfinity, fmt::format("places that {} picks", Quoted(op)));
    auto depth = static_cast<size_t>(Size(value.type.shape.back()));
    for (size_t d = first; d < std::min(shape.size(), first + depth); ++d) {
      want.parts.emplace_back(0, std::max(0.0, Size(shape[d]) - 1));
      want.high = std::min(want.high, want.parts.back().second);
    }
    return want;
  }

  Want OneHot(const Operation& op, std::string_view, size_t, const Value&) const {
    std::optional<Bounds> depth = Known(op.arg("one_hot_vector_size")[0]);
    return depth ? Bounded(0, depth->first - 1, fmt::format("classes of {}", Quoted(op))) : Want();
  }

  // One element of a constant vector; nothing where it is not known.
  static std::optional<double> Element(const Operation& op, std::string_view param, size_t d) {
    Tensor vector = op.def->Find(param) >= 0 ? op.constant(param) : Tensor();
    auto at = static_cast<int64_t>(d);
    return vector && at < vector.size() ? std::optional(vector.Double(at)) : std::nullopt;
  }

  // No slice is empty: where both ends are open, it begins in the first half and ends behind it.
  Want SliceBound(const Operation& op, std::string_view param, size_t, const Value&) const {
    const Shape shape = op.arg("x")[0].type().shape;
    Want want = Bounded(-kInfinity, kInfinity, fmt::format("{} of {}", param, Quoted(op)));
    bool begins = param == "begin";
    for (size_t d = 0; d < shape.size(); ++d) {
      double size = Size(shape[d]);
      auto from_front = [&](std::optional<double> place) {
        return place && *place < 0 ? *place + size : place;
      };
      std::optional<double> begin = from_front(Element(op, "begin", d)),
                            end = from_front(Element(op, "end", d)),
                            length = Element(op, "size", d);
      if (Element(op, "begin_mask", d).value_or(0) != 0) begin = 0;
      if (Element(op, "end_mask", d).value_or(0) != 0 || length == -1.0) end = size;
      if (length && *length > 0) end = size - *length + 1;  // the last begin is one less
      Bounds part{0, begins ? end.value_or(std::floor((size + 1) / 2)) - 1 : size};
      if (!begins) part.first = begin.value_or(std::floor(size / 2)) + 1;
      if (param == "size") part = {1, size - begin.value_or(std::floor((size - 1) / 2))};
      if (op.is("slice_update")) {
        const Shape update = op.arg("update")[0].type().shape;
        double taken = d < update.size() ? Size(update[d]) : 1;
        part = begins ? Bounds{0, size - taken} : Bounds{taken, size};
      }
      part.second = std::max(part.first, part.second);
      want.parts.push_back(part);
      // What a mask leaves out may be anything.
      if (param != "size" && Element(op, begins ? "begin_mask" : "end_mask", d).value_or(0) != 0)
        continue;
      want.low = std::max(want.low, part.first);
      want.high = std::max(want.low, std::min(want.high, part.second));
    }
    return want;
  }

  // Sizes and counts: some, not many.
  Want SmallSize(const Operation& op, std::string_view param, size_t, const Value&) const {
    bool start = param == "start";
    return Bounded(start ? 0 : 1, start ? 0 : kTrips, fmt::format("{} of {}", param, Quoted(op)));
  }

  Want Accumulated(const Operation& op, std::string_view, size_t, const Value& value) const {
    Want want = Of(op.result());
    if (!want.bounded()) return want.opaque ? Opaque() : Want();
    double n = 1;
    for (const Dim& dim : value.type.shape) n = std::max(n, Size(dim));
    Want part =
        Bounded(std::min(want.low, 0.0) / n, std::max(1.0, std::floor(want.high / n)), want.why);
    part.low = std::max(part.low, 0.0);
    return part;
  }

  Want Enter(const Operation& op, std::string_view, size_t i, const Value&) const {
    Want want;
    for (const auto& block : op.blocks)
      if (i < block->inputs.size()) want = Meet(std::move(want), Of(block->inputs[i].get()));
    return want;
  }

  Want BatchNorm(const Operation& op, std::string_view, size_t, const Value&) const {
    std::optional<Bounds> mean = Known(op.arg("mean")[0]), variance = Known(op.arg("variance")[0]);
    if (!mean || !variance || variance->second <= 0) return {};
    double deviation = std::sqrt(variance->second);
    Want want;
    want.center = (mean->first + mean->second) / 2;
    want.scale = deviation + (mean->second - mean->first) / 2;
    if (want.scale < 4 && std::fabs(want.center) < 4) return {};
    want.why = fmt::format("mean and variance of {}", Quoted(op));
    return want;
  }

  // What a float function is defined for.
  Want Domain(const Operation& op, std::string_view, size_t, const Value& value) const {
    auto epsilon = [&] { return op.has("epsilon") ? op.constant("epsilon").Double(0) : 0.0; };
    std::string why = fmt::format("domain of {}", Quoted(op));
    if (op.is("sqrt")) return Bounded(0, kInfinity, why);
    if (op.is("log") || op.is("rsqrt")) return Bounded(1e-3 - epsilon(), kInfinity, why);
    if (op.is("pow")) {
      std::optional<Bounds> exponent = Known(op.arg("y")[0]);
      bool whole = exponent && exponent->first == exponent->second &&
                   exponent->first == std::floor(exponent->first);
      return whole || !IsFloat(value.type.dtype) ? Want() : Bounded(0, kInfinity, why);
    }
    return Bounded(op.is("atanh") ? -0.99 : -1, op.is("atanh") ? 0.99 : 1, why);
  }

  Want Exponent(const Operation& op, std::string_view, size_t, const Value& value) const {
    if (IsFloat(value.type.dtype)) return {};
    return Bounded(0, 7, fmt::format("exponent of {}", Quoted(op)));
  }

  Want Quantize(const Operation& op, std::string_view, size_t, const Value& value) const {
    std::optional<Bounds> scale = Known(op.arg("scale")[0]);
    std::optional<Bounds> zero =
        op.has("zero_point") ? Known(op.arg("zero_point")[0]) : Bounds{0, 0};
    if (!scale || !zero || !(scale->second > 0) || !IsFloat(value.type.dtype)) return {};
    bool is_signed = op.result()->type.dtype == DType::kInt8;
    double least = is_signed ? -128 : 0, greatest = is_signed ? 127 : 255;
    return Soft((least - zero->first) * scale->second, (greatest - zero->first) * scale->second,
                fmt::format("levels of {}", Quoted(op)));
  }

  const SymbolSizes& sizes_;
  std::unordered_map<const Value*, Want> wants_;
  std::unordered_map<const Value*, std::pair<const Operation*, size_t>> loop_inputs_;
};

// Views are the same without a row.
std::span<const Analysis::RuleRow> Analysis::Rules() {
  static constexpr RuleRow kRules[] = {
      {"add", "", &Analysis::Add},
      {"sub", "", &Analysis::Sub},
      {"mul", "", &Analysis::Mul},
      {"real_div", "", &Analysis::Divide},
      {"floor_div", "", &Analysis::Divide},
      {"mod", "", &Analysis::Divide},
      {"maximum", "", &Analysis::Extremum},
      {"minimum", "", &Analysis::Extremum},
      {"clip", " x ", &Analysis::Clip},
      {"pow", " x ", &Analysis::Domain},
      {"pow", " y ", &Analysis::Exponent},
      {"sqrt", "", &Analysis::Domain},
      {"rsqrt", " x ", &Analysis::Domain},
      {"log", " x ", &Analysis::Domain},
      {"acos", "", &Analysis::Domain},
      {"asin", "", &Analysis::Domain},
      {"atanh", "", &Analysis::Domain},
      {"quantize", " input ", &Analysis::Quantize},
      {"batch_norm", " x ", &Analysis::BatchNorm},
      {"equal", "", &Analysis::Compare},
      {"not_equal", "", &Analysis::Compare},
      {"less", "", &Analysis::Compare},
      {"less_equal", "", &Analysis::Compare},
      {"greater", "", &Analysis::Compare},
      {"greater_equal", "", &Analysis::Compare},
      {"logical_not", "", &Analysis::Not},
      {"logical_and", "", &Analysis::Logic},
      {"logical_or", "", &Analysis::Logic},
      {"logical_xor", "", &Analysis::Logic},
      {"select", "", &Analysis::Select},
      {"scaled_dot_product_attention", " attn_mask ", &Analysis::AttentionMask},
      {"cast", " x ", &Analysis::Cast},
      {"identity", "", &Analysis::Same},
      {"concat", " values ", &Analysis::Concat},
      {"stack", " values ", &Analysis::Same},
      {"tile", " x ", &Analysis::Same},
      {"pad", " x ", &Analysis::Same},
      {"gather", " x ", &Analysis::Same},
      {"gather_along_axis", " x ", &Analysis::Same},
      {"gather_nd", " x ", &Analysis::Same},
      {"reduce_max", " x ", &Analysis::Same},
      {"reduce_min", " x ", &Analysis::Same},
      {"gather", " indices ", &Analysis::Index},
      {"gather_along_axis", " indices ", &Analysis::Index},
      {"scatter", " indices ", &Analysis::Index},
      {"scatter_along_axis", " indices ", &Analysis::Index},
      {"gather_nd", " indices ", &Analysis::IndexVectors},
      {"scatter_nd", " indices ", &Analysis::IndexVectors},
      {"one_hot", " indices ", &Analysis::OneHot},
      {"slice_by_index", " begin end ", &Analysis::SliceBound},
      {"slice_by_size", " begin size ", &Analysis::SliceBound},
      {"slice_update", " begin end ", &Analysis::SliceBound},
      {"range_1d", "", &Analysis::SmallSize},
      {"fill", " shape ", &Analysis::SmallSize},
      {"tile", " reps ", &Analysis::SmallSize},
      {"one_hot", " one_hot_vector_size ", &Analysis::SmallSize},
      {"cumsum", " x ", &Analysis::Accumulated},
      {"reduce_sum", " x ", &Analysis::Accumulated},
      {"while_loop", "", &Analysis::Enter},
  };
  return kRules;
}

}  // namespace

std::unordered_map<const Value*, Want> FindWants(const Function& function,
                                                 const SymbolSizes& sizes) {
  return Analysis(function, sizes).Take();
}

}  // namespace mlc

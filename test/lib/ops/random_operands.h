// test/lib/ops/random_operands.h - checks the traits of a row against its evaluation on random
// operands.
//
// traits_test.cpp covers rows whose operands follow from the signature. For rows with other
// parameters or with dependent operands, the row's own test provides the operands: CheckTraits for
// rows with a layout, CheckRange for the others.
#pragma once

#include <algorithm>
#include <functional>
#include <map>
#include <random>
#include <set>

#include "lib/ops/range_rules.h"
#include "test/catch.h"
#include "test/lib/ops/evaluate.h"

namespace mlc::test {

class Draw {
 public:
  explicit Draw(uint32_t seed) : engine_(seed) {}
  int64_t Int(int64_t low, int64_t high) {
    return std::uniform_int_distribution<int64_t>(low, high)(engine_);
  }
  double Real(double low, double high) {
    return std::uniform_real_distribution<double>(low, high)(engine_);
  }
  bool Coin() { return Int(0, 1) == 1; }
  template <class T>
  T Of(std::initializer_list<T> list) {
    return list.begin()[Int(0, static_cast<int64_t>(list.size()) - 1)];
  }
  Dims Sizes(int least, int most) {
    Dims dims(static_cast<size_t>(Int(least, most)));
    for (int64_t& dim : dims) dim = Int(1, 4);
    return dims;
  }
  // Numbers of an interval of random size and position; occasionally its ends, or a single number.
  Tensor Numbers(const Dims& dims, DType dtype) {
    double size = Of({0.0, 0.01, 1.0, 3.0, 50.0, 1000.0}), low = Of({-size, 0.0, 0.1, -size / 3});
    return Between(dims, dtype, low, low + size);
  }
  Tensor Between(const Dims& dims, DType dtype, double low, double high) {
    std::vector<double> values(static_cast<size_t>(ElementCount(dims)));
    for (double& value : values) {
      value = Int(0, 7) == 0 ? Of({low, high}) : Real(low, high);
      if (IsInteger(dtype) || dtype == DType::kBool) value = std::floor(value);
      if (dtype == DType::kBool) value = static_cast<double>(Int(0, 1));
      value += 0.0;  // avoids -0
    }
    return Tensor::Of<double>(dims, values).Cast(dtype);
  }
  Tensor Whole(const Dims& dims, int64_t low, int64_t high) {
    std::vector<int32_t> values(static_cast<size_t>(ElementCount(dims)));
    for (int32_t& value : values) value = static_cast<int32_t>(Int(low, high));
    return I32(dims, values);
  }
  std::vector<int64_t> Order(int64_t rank) {
    std::vector<int64_t> order(static_cast<size_t>(rank));
    for (int64_t i = 0; i < rank; ++i) order[static_cast<size_t>(i)] = i;
    std::shuffle(order.begin(), order.end(), engine_);
    return order;
  }
  DType Float() { return Of({DType::kFp16, DType::kFp32}); }
  // A dtype that the parameter allows and that the cases cover.
  DType TypeOf(DTypeSet types) {
    std::vector<DType> all;
    for (DType dtype : {DType::kFp16, DType::kFp32, DType::kInt32, DType::kBool})
      if (Contains(types, dtype)) all.push_back(dtype);
    return all.at(static_cast<size_t>(Int(0, static_cast<int64_t>(all.size()) - 1)));
  }

  // An image x, about [2, 4, 4, 4], in fp16 or fp32.
  Tensor Image(int64_t channels = 4) { return Numbers({Int(1, 2), channels, 4, 4}, Float()); }

 private:
  std::mt19937 engine_;
};

using Case = std::vector<In>;

inline Tensor Ints32(const std::vector<int32_t>& values) { return Tensor::Vector(values); }
inline Tensor Text(std::string_view text) { return Tensor::String(std::string(text)); }
inline Tensor Truth(bool value) { return Tensor::Scalar<bool>(value); }
inline Tensor Number(int64_t value) { return Tensor::Scalar<int32_t>(static_cast<int32_t>(value)); }
inline Tensor Axis(Draw& draw, size_t rank) {
  int64_t n = static_cast<int64_t>(rank);
  return Number(draw.Int(-n, n - 1));
}

// Parameters of rows with a layout that keep their defaults here.
inline constexpr std::string_view kAsDefault[] = {"begin_mask",   "end_mask",    "interleave",
                                                  "output_dtype", "split_sizes", "squeeze_mask"};

// Operands of a row with a layout beyond those that follow from its signature, for data of these
// dimensions and this dtype.
using OwnOperands = std::function<Case(Draw&, const Dims&, DType)>;

// Operands of a row with a layout: those of `own`, and, from its signature, data of one shape (with
// some sizes 1), axes and scalars.
inline Case DrawFlexible(const OpDef& def, Draw& draw, size_t least_rank, bool keeps_rank,
                         const OwnOperands& own) {
  Dims dims = draw.Sizes(static_cast<int>(least_rank), 4);
  std::map<char, DType> domains;
  Case operands;
  if (own) {
    const Param& data =
        def.canonical().params.at(static_cast<size_t>(def.Find(def.layout.data[0])));
    DType dtype = domains.try_emplace(data.domain, draw.TypeOf(data.types)).first->second;
    operands = own(draw, dims, dtype);
  }
  const Case own_ones = operands;
  for (const Param& param : def.canonical().params) {
    if (std::any_of(own_ones.begin(), own_ones.end(),
                    [&](const In& each) { return each.param == param.name; }))
      continue;
    DType dtype = param.domain
                      ? domains.try_emplace(param.domain, draw.TypeOf(param.types)).first->second
                  : Contains(param.types, DType::kBool) && !Contains(param.types, DType::kFp32)
                      ? DType::kBool
                      : DType::kInt32;
    const Layout& layout = def.layout;
    if (std::find(layout.data.begin(), layout.data.end(), param.name) != layout.data.end()) {
      for (int64_t n = param.variadic ? draw.Int(1, 3) : 1; n > 0; --n) {
        Dims sizes = dims;
        if (layout.data[1] != "")
          for (int64_t& dim : sizes)
            if (draw.Int(0, 4) == 0) dim = 1;
        if (def.name == "squeeze") sizes.front() = 1;
        operands.emplace_back(param.name, draw.Numbers(sizes, dtype));
      }
    } else if (param.name == "axis") {
      operands.emplace_back("axis", Axis(draw, dims.size()));
    } else if (param.name == "axes") {
      std::vector<int32_t> axes;
      int64_t count = draw.Int(1, static_cast<int64_t>(dims.size()));
      for (int64_t axis : draw.Order(static_cast<int64_t>(dims.size())))
        if (std::ssize(axes) < count) axes.push_back(static_cast<int32_t>(axis));
      if (def.name == "squeeze" || def.name == "expand_dims") axes = {0};
      operands.emplace_back("axes", Ints32(axes));
    } else if (param.name == "keep_dims") {
      operands.emplace_back("keep_dims", Truth(keeps_rank || draw.Coin()));
    } else if (param.name == "alpha" || param.name == "beta") {
      operands.emplace_back(param.name, draw.Between({}, dtype, -2, 2));
    } else if (param.name == "epsilon") {
      operands.emplace_back("epsilon", draw.Between({}, dtype, 1e-3, 0.1));
    } else if (param.name == "exclusive" || param.name == "reverse") {
      operands.emplace_back(param.name, Truth(draw.Coin()));
    } else if (param.name == "num_splits") {
      operands.emplace_back("num_splits", Number(1));
    } else if (def.name == "reshape") {
      operands.emplace_back("shape", Ints32({-1}));
    } else if (param.name == "begin" || param.name == "end" || param.name == "size") {
      std::vector<int32_t> places;
      for (int64_t dim : dims)
        places.push_back(static_cast<int32_t>(param.name == "begin" ? 0 : draw.Int(1, dim)));
      operands.emplace_back(param.name, Ints32(places));
    } else if (param.name == "stride") {
      operands.emplace_back("stride", draw.Whole({static_cast<int64_t>(dims.size())}, 1, 2));
    } else if (std::find(std::begin(kAsDefault), std::end(kAsDefault), param.name) ==
               std::end(kAsDefault)) {
      FAIL(def.name << ": nothing draws \"" << param.name
                    << "\"; CheckTraits in its own test does");
    }
  }
  return operands;
}

inline RangeContext ContextOf(const OpDef& def, const Case& operands, std::vector<Type> types) {
  RangeContext::Intervals intervals(def.canonical().params.size());
  for (const In& each : operands)
    intervals[static_cast<size_t>(def.Find(each.param))].push_back(IntervalOf(each.value));
  return RangeContext(def, ArgsOf(def, operands), std::move(intervals), std::move(types));
}

// The violation of a result's interval for these operands; empty if there is none. Counts the
// checked elements.
inline std::string Outside(const OpDef& def, const Case& operands, const RangeContext& context,
                           int64_t& looked_at) {
  std::vector<Tensor> results = EvaluateAll(def.name, operands);
  for (size_t i = 0; i < results.size(); ++i) {
    Interval range = RangeOf(context, static_cast<int>(i));
    for (double element : results[i].Doubles()) {
      looked_at += !std::isnan(element);
      if (!std::isnan(element) && !range.Contains(element))
        return fmt::format("result {}: {} is outside [{}, {}]", i, element, range.low, range.high);
    }
  }
  return "";
}

// Checks that results lie in the interval of the row, and that intervals of floats are not always
// infinite.
inline void CheckRange(std::string_view op, const std::function<Case(Draw&, DType)>& operands_of) {
  const OpDef& def = Ops().At(op);
  constexpr uint32_t kCases = 1000;
  std::string wrong;
  uint32_t looked_at = 0;  // cases with at least one checked element
  bool says = false;       // some interval of a float is finite, or no result is a float
  for (uint32_t seed = 0; seed < kCases && wrong.empty(); ++seed) {
    INFO(def.name << ", seed " << seed);
    Draw draw(seed);
    try {
      Case operands = operands_of(draw, draw.Float());
      std::vector<Type> types = Infer(def.name, operands).results;
      RangeContext context = ContextOf(def, operands, types);
      says = says || !IsFloat(types[0].dtype) || RangeOf(context, 0) != Interval();
      int64_t elements = 0;
      wrong = Outside(def, operands, context, elements);
      looked_at += elements > 0;
    } catch (const Error& error) {
      wrong = error.text();
    }
    CHECK(wrong == "");
  }
  INFO(def.name);
  CHECK(looked_at >= kCases / 2);
  CHECK(says);
}

// Checks that permuting the dimensions of the operands permutes the result.
inline void CheckOrder(const OpDef& def, const OwnOperands& own) {
  const Layout& layout = def.layout;
  auto named = [](const auto& names, std::string_view name) {
    return std::find(names.begin(), names.end(), name) != names.end();
  };
  uint32_t telling = 0;  // cases whose result depends on the order of dimensions
  for (uint32_t seed = 0; seed < 1000; ++seed) {
    Draw draw(seed);
    Case operands = DrawFlexible(def, draw, 2, true, own), permuted = operands;
    size_t rank = 0;
    for (const In& each : operands)
      if (named(layout.data, each.param)) rank = each.value.dims().size();
    std::vector<int64_t> order = draw.Order(static_cast<int64_t>(rank)), place(rank);
    for (size_t i = 0; i < rank; ++i)
      place[static_cast<size_t>(order[i])] = static_cast<int64_t>(i);
    std::set<int64_t> dropped;
    for (In& each : permuted) {
      if (named(layout.data, each.param)) {
        each = In(each.param, each.value.Transposed({order.begin(), order.end()}));
      } else if (each.param == layout.axes) {
        std::vector<int32_t> axes;
        for (int64_t axis : each.value.Ints()) {
          axis += axis < 0 ? static_cast<int64_t>(rank) : 0;
          if (def.name == "squeeze") dropped.insert(axis);
          axes.push_back(static_cast<int32_t>(place[static_cast<size_t>(axis)]));
        }
        each = In(each.param, each.value.rank() == 0 ? Number(axes[0]) : Ints32(axes));
      } else if (named(layout.per_dimension, each.param)) {
        std::vector<int64_t> before = each.value.Ints();
        size_t n = before.size() / rank;
        std::vector<int32_t> after;
        for (int64_t dim : order)
          for (size_t k = 0; k < n; ++k)
            after.push_back(static_cast<int32_t>(before[static_cast<size_t>(dim) * n + k]));
        each = In(each.param, Ints32(after));
      }
    }
    std::vector<Tensor> plain = EvaluateAll(def.name, operands),
                        moved = EvaluateAll(def.name, permuted);
    std::vector<int64_t> result_order;
    for (int64_t dim : order)
      if (!dropped.contains(dim))
        result_order.push_back(dim - std::distance(dropped.begin(), dropped.lower_bound(dim)));
    REQUIRE(plain.size() == moved.size());
    for (size_t i = 0; i < plain.size(); ++i) {
      INFO(def.name << ", seed " << seed);
      Tensor expected = plain[i].Transposed({result_order.begin(), result_order.end()});
      REQUIRE(expected.dims() == moved[i].dims());
      telling += i == 0 &&
                 (expected.dims() != plain[i].dims() || expected.Doubles() != plain[i].Doubles());
      REQUIRE(Near(moved[i].Doubles(), expected.Doubles(),
                   plain[i].dtype() == DType::kFp16 ? 2e-3 : 1e-5));
    }
  }
  INFO(def.name);
  CHECK(telling >= 50);
}

// Both checks, for a row with a layout.
inline void CheckTraits(std::string_view op, const OwnOperands& own = nullptr) {
  const OpDef& def = Ops().At(op);
  if (def.range)
    CheckRange(op, [&](Draw& draw, DType) { return DrawFlexible(def, draw, 1, false, own); });
  // reshape and expand_dims are covered by test/golden/passes/sink-transposes.mil.
  if (op != "reshape" && op != "expand_dims") CheckOrder(def, own);
}

}  // namespace mlc::test

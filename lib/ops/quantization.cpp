#include <algorithm>
#include <cmath>

#include "lib/ir/encoding.h"
#include "lib/ops/eval.h"
#include "lib/ops/operand_constraint.h"
#include "lib/ops/range_rules.h"
#include "lib/ops/row.h"

namespace mlc {

namespace {

// scale and zero_point are both scalars (without axis) or both vectors along axis.
void CheckScale(const OpContext& context) {
  int rank = context.rank("scale");
  if (rank > 1)
    context.Fail("scale is {}, expected a scalar or a vector", context.type("scale").ToString());
  if (context.has("zero_point") && context.rank("zero_point") != rank)
    context.Fail("scale is {} and zero_point is {}, expected two scalars or two vectors",
                 context.type("scale").ToString(), context.type("zero_point").ToString());
  if (rank == 0 && context.has("axis")) context.Fail("axis is specified, but scale is a scalar");
  if (rank == 0) return;
  if (!context.has("axis")) context.Fail("scale is a vector, which requires axis");
  const Dim& length =
      context.shape("input")[OpContext::Axis(context.Int("axis"), context.rank("input"))];
  for (std::string_view name : {"scale", "zero_point"})
    if (context.has(name) && context.shape(name)[0] != length && length.is_constant())
      context.Fail("{} is {}, expected {} elements like the axis of input", name,
                   context.type(name).ToString(), length.ToString());
}

// The scale and zero point of each element of input.
struct Scales {
  std::vector<double> scale, zero_point;
  int64_t inner = 1, length = 1;
  explicit Scales(const EvalContext& context) : scale(context.in("scale").Doubles()) {
    if (context.has("zero_point")) zero_point = context.in("zero_point").Doubles();
    if (context.rank("scale") == 0) return;
    Dims dims = context.out_dims();
    int axis = OpContext::Axis(context.Int("axis"), static_cast<int>(dims.size()));
    length = dims[axis];
    inner = StridesOf(dims)[axis];
  }
  int64_t At(int64_t i) const { return i / inner % length; }
  double Zero(int64_t at) const { return zero_point.empty() ? 0 : zero_point[at]; }
};

void InferQuantize(InferContext& context) {
  std::string name = context.String("output_dtype");
  std::optional<DType> dtype = ParseDType(name);
  if (dtype != DType::kInt8 && dtype != DType::kUint8)
    context.Fail("output_dtype is \"{}\", expected int8 or uint8", name);
  if (context.has("zero_point") && context.dtype("zero_point") != *dtype)
    context.Fail("zero_point is {}, but output_dtype is {}", context.type("zero_point").ToString(),
                 name);
  CheckScale(context);
  if (!IsFloat(context.dtype("input")))
    context.Fail("input is {}, expected a float type", context.type("input").ToString());
  context.Result(*dtype, context.shape("input"));
}
void EvalQuantize(EvalContext& context) {
  Scales scales(context);
  Tensor x = context.in("input");
  context.Set(Dispatch(context.out_dtype(), [&]<class R>(R) -> Tensor {
    Out<R> out(x.dims());
    if constexpr (!kIsFloat<R>) {
      auto low = static_cast<double>(std::numeric_limits<R>::lowest());
      auto high = static_cast<double>(std::numeric_limits<R>::max());
      for (int64_t i = 0; i < x.size(); ++i) {
        int64_t at = scales.At(i);
        auto quotient = static_cast<float>(x.Double(i) / scales.scale[at]);
        double v = std::nearbyint(static_cast<double>(quotient)) + scales.Zero(at);
        out.data[i] = Narrow<R>(std::isnan(v) ? 0.0 : std::clamp(v, low, high));
      }
    }
    return out.tensor;
  }));
}

void InferDequantize(InferContext& context) {
  CheckScale(context);
  if (context.has("zero_point")) SharedDType(context, "input", "zero_point");
  if (!IsFloat(context.dtype("scale")))
    context.Fail("scale is {}, expected a float type", context.type("scale").ToString());
  context.Result(context.dtype("scale"), context.shape("input"));
}
// A constant keeps its encoding.
void EvalDequantize(EvalContext& context) {
  Tensor x = context.in("input");
  Dims grid(std::max(x.rank(), 1), 1);
  if (context.rank("scale") == 1)
    grid[OpContext::Axis(context.Int("axis"), x.rank())] = context.in("scale").size();
  Encoding encoding{.dtype = context.out_dtype(),
                    .data = x.rank() == 0 ? x.Reshaped({1}) : x,
                    .scale = context.in("scale").Reshaped(grid)};
  if (context.has("zero_point")) encoding.offset = context.in("zero_point").Reshaped(grid);
  context.Set(Tensor::Encoded(std::move(encoding)).Reshaped(x.dims()));
}

Interval RangeDequantize(const RangeContext& context, int) {
  Interval number = context.in("input");
  if (context.has("zero_point")) number = number - context.in("zero_point");
  return number * context.in("scale");
}

OperandConstraint WantOfQuantize(const ConstraintContext& context) {
  std::optional<Interval> scale = context.Known("scale");
  std::optional<Interval> zero =
      context.op.has("zero_point") ? context.Known("zero_point") : Interval{0, 0};
  if (!scale || !zero || !(scale->high > 0) || !context.is_float()) return {};
  Interval levels = IntervalOf(context.op.result()->type.dtype);
  return OperandConstraint::Soft((levels.low - zero->low) * scale->high,
                                 (levels.high - zero->low) * scale->high,
                                 fmt::format("quantisation levels of {}", Quoted(context.op)));
}

constexpr OpRow kQuantizationRows[] = {
    {.name = "dequantize",
     .doc = "scale * (input - zero_point)",
     .signatures = {{{kIos17,
                      "input:S zero_point:S!? scale:D! axis:int32!? | D=fp16/fp32 S=uint8/int8"}}},
     .infer = InferDequantize,
     .eval = EvalDequantize,
     .range = RangeDequantize},
    {.name = "quantize",
     .doc = "input / scale in fp32, rounded (ties to even), plus zero_point, saturated to "
            "output_dtype",
     .signatures = {{{kIos17,
                      "input:S zero_point:D!? scale:S! axis:int32!? output_dtype:string! | "
                      "S=fp16/fp32 D=uint8/int8"}}},
     .infer = InferQuantize,
     .eval = EvalQuantize,
     .range = RangeOfType,
     .constraints = {{{"input", WantOfQuantize}}}},
};

}  // namespace

std::span<const OpRow> QuantizationRows() { return kQuantizationRows; }

}  // namespace mlc

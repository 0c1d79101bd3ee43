// Stores constants that the source holds in quantised form in that form.
//
//   w = const(fp32 [64, 3, 7, 7], which is scale * (int8 - zero))
//     ->   w = constexpr_affine_dequantize(quantized_data = int8 [64, 3, 7, 7], scale, zero_point)
//
// One scale, or one for each element of an axis, is constexpr_affine_dequantize (iOS16); blocks and
// 4 bits are constexpr_blockwise_shift_scale (iOS18). Where the target lacks the latter, 4 bits are
// stored as 8 if that is enough, else the constant stays as it is. Must not fire on
// constants below 2048 elements, on model outputs, where nothing is saved, nor where the scales are
// no normal fp16 numbers and the program computes in fp16. Numeric effect: none in fp32; in fp16
// the scales are rounded instead of the products.
#include "lib/passes/quantised_constants.h"

#include <algorithm>
#include <cmath>

#include "lib/passes/match.h"

namespace mlc {
namespace {

constexpr int64_t kLeastElements = 2048;

// The type in which the data is stored; kNone: no type has its values.
DType Stored(DType data) {
  switch (data) {
    case DType::kInt4:
    case DType::kUint4:
    case DType::kInt8:
    case DType::kUint8:
      return data;
    case DType::kUint1:
    case DType::kUint2:
    case DType::kUint3:
      return DType::kUint4;
    default:
      return DType::kNone;
  }
}

// The axis along which the scales differ; 0 when there is one scale, nothing when there are several
// such axes or blocks.
std::optional<int> ScaleAxis(const Quantized& form) {
  int axis = 0, found = 0;
  for (int i = 0; i < form.scale.rank(); ++i) {
    if (form.scale.dims()[i] == 1) continue;
    if (form.scale.dims()[i] != form.data.dims()[i]) return std::nullopt;
    axis = i;
    ++found;
  }
  return found > 1 ? std::nullopt : std::optional(axis);
}

// Whether fp16 holds the scales with all their digits, and what they make of the greatest integers.
bool FitsHalf(const Quantized& form) {
  std::vector<double> scales = form.scale.Doubles();
  double steps = std::ldexp(1, Bits(form.data.dtype()));
  return std::all_of(scales.begin(), scales.end(), [=](double scale) {
    return scale == 0 || (std::fabs(scale) >= 0x1p-14 && std::fabs(scale) * steps < 65504);
  });
}

size_t Bytes(const Quantized& form, DType stored) {
  return ByteCount(stored, form.data.size()) + form.scale.byte_size() +
         (form.offset ? form.offset.byte_size() : 0);
}

// How a constant is stored.
struct Plan {
  std::optional<int> axis;  // of constexpr_affine_dequantize; nothing: blocks
  DType stored;
};

// Nothing where it stays dense. `dtype`: of the constant, now or after it was narrowed.
std::optional<Plan> PlanFor(const Operation& op, DType dtype, PassContext::Precision precision,
                            Opset target) {
  if (!op.def->is_const() || !op.val.quantized() || op.result()->is_output()) return std::nullopt;
  const Quantized& form = *op.val.quantized();
  if (dtype != DType::kFp32 && dtype != DType::kFp16) return std::nullopt;
  DType stored = Stored(form.data.dtype());
  if (op.val.size() < kLeastElements || stored == DType::kNone) return std::nullopt;
  bool half = dtype == DType::kFp16 || precision != PassContext::Precision::kFp32;
  if (half && !FitsHalf(form)) return std::nullopt;

  bool float_offset = form.offset && IsFloat(form.offset.dtype());
  bool blockwise = target >= Opset::kIos18;
  std::optional<int> axis;
  if (target >= Opset::kIos16 && !float_offset) axis = ScaleAxis(form);
  if (Bits(stored) < 8 && axis && !blockwise)
    stored = IsSigned(stored) ? DType::kInt8 : DType::kUint8;
  if (Bits(stored) < 8) axis.reset();
  if ((!axis && !blockwise) || Bytes(form, stored) >= ByteCount(dtype, op.val.size()))
    return std::nullopt;
  return Plan{axis, stored};
}

bool Rewrite(Operation* op, PassContext& context) {
  std::optional<Plan> plan = PlanFor(*op, op->val.dtype(), context.precision, context.target);
  if (!plan) return false;
  const Tensor& dense = op->val;
  const Quantized& form = *dense.quantized();
  Tensor data = form.data.Cast(plan->stored), scale = form.scale.Cast(dense.dtype()),
         offset = form.offset;
  if (offset) offset = offset.Cast(IsFloat(offset.dtype()) ? dense.dtype() : plan->stored);
  auto operation = std::make_unique<Operation>();
  operation->def = &op->block->function->program->ops->At(
      plan->axis ? "constexpr_affine_dequantize" : "constexpr_blockwise_shift_scale");
  Builder builder = BuilderBefore(op, context);
  auto set = [&](std::string_view param, const Tensor& value) {
    operation->SetArg(param, {builder.Const(value, fmt::format("{}_{}", op->name, param))});
  };
  if (plan->axis) {
    Dims dims = scale.size() == 1 ? Dims() : Dims{scale.size()};
    if (!offset) offset = Tensor::Full(plan->stored, dims, 0);
    set("quantized_data", data);
    set("zero_point", offset.Reshaped(dims));
    set("scale", scale.Reshaped(dims));
    set("axis", Tensor::Scalar<int32_t>(*plan->axis));
  } else {
    set("data", data);
    set("scale", scale);
    if (offset) set("offset", offset);
  }
  operation->location = op->location;
  auto result = std::make_unique<Value>();
  result->type = op->result()->type;
  std::string name = op->result()->name;
  result->name = op->block->function->UniqueName(name + "_dense");
  result->def = operation.get();
  operation->name = result->name;
  operation->results.push_back(std::move(result));
  Operation* made = op->block->Insert(std::move(operation), op);
  Function* function = op->block->function;
  Replace(op, made->result());
  function->Rename(made->result(), name);
  made->name = made->result()->name;
  return true;
}

bool Run(Program& program, PassContext& context) {
  return RewriteAll(program, [&](Operation* op) { return Rewrite(op, context); });
}

}  // namespace

std::optional<Opset> QuantisedSince(const Operation& op, PassContext::Precision precision) {
  bool half = precision != PassContext::Precision::kFp32;
  DType dtype = half && op.val.dtype() == DType::kFp32 ? DType::kFp16 : op.val.dtype();
  std::optional<Plan> plan = PlanFor(op, dtype, precision, Opset::kIos26);
  if (!plan) return std::nullopt;
  return plan->axis ? Opset::kIos16 : Opset::kIos18;
}

extern const PassDef kQuantisedConstants = {
    "quantised-constants", "store constants that came quantised in that form", Run};

}  // namespace mlc

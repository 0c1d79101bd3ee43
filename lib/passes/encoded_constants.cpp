// Stores constants that the source holds encoded in an equivalent Core ML encoding.
//
//   w = const(fp32 [64, 3, 7, 7], which is scale * (int8 - zero))
//     ->   w = constexpr_affine_dequantize(quantized_data = int8 [64, 3, 7, 7], scale, zero_point)
//
//   scale (data - offset)    one scale, or one per element of an axis: affine_dequantize (iOS16);
//                            blocks and 4 bits: blockwise_shift_scale (iOS18)
//   scale data + bias        the same with offset = -bias / scale (iOS18)
//   table[index]             lut_to_dense: one table of scalars (iOS16), tables per group or of
//                            vectors (iOS18); encoded tables: after blockwise_shift_scale (iOS18)
//   scale (table[index] - offset)   the same with scaled tables, or, if smaller, with the entries of
//                            an integer table as data; from iOS26 lut_to_dense followed by
//                            blockwise_shift_scale
//   data where mask is set   sparse_to_dense; encoded data: after lut_to_sparse or
//                            sparse_blockwise_shift_scale (iOS18)
//
// If the target does not support 4-bit elements, they are stored as 8 bits, and 3-bit elements as 4
// bits. If the target lacks the encoding, or the rounding error in fp16 would be too large, the
// constant is stored dense, which is reported as a decision. Must not fire on constants with fewer
// than 2048 elements, on model outputs, if nothing is saved, or on fp16 constants whose significant
// scales or table entries are not normal fp16 numbers: the users of such a constant stay in fp32
// (precision_plan.h) unless the user overrides this. Numeric effect: in fp32 none, except for a
// bias; in fp16 the scales are rounded instead of the products, and if the source is fp32 a
// decision reports the error.
#include "lib/passes/encoded_constants.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <variant>

#include "lib/ir/block_grid.h"
#include "lib/ir/subbyte.h"
#include "lib/passes/rewriting.h"
#include "lib/support/threads.h"

namespace mlc::passes {
namespace {

using Form = Encoding::Form;

constexpr int64_t kLeastEncoded = 2048;
// Plain rounding to fp16 has an error of 2.1e-4; 4 bits with a bias justify 5e-4.
constexpr double kMostError = 1e-3;
// The limit for flushed scales, by root mean square; the rest of fp16's budget of 1e-2 is left for
// rounding.
constexpr double kMostFlushed = 5e-3;

// An operand that is a result of an earlier step; the alternative is a constant.
struct Result {
  int step, result;
};
using Argument = std::variant<Tensor, Result>;

struct Step {
  std::string_view op;
  std::vector<std::pair<std::string_view, Argument>> args;
};

// The encoding of a constant, or the reason why it is dense.
struct Plan {
  std::vector<Step> steps;
  Opset since = Opset::kIos16;
  std::string dense, note;

  size_t bytes() const {
    size_t sum = 0;
    for (const Step& step : steps)
      for (const auto& [name, argument] : step.args)
        if (const Tensor* tensor = std::get_if<Tensor>(&argument)) sum += tensor->byte_size();
    return sum;
  }
};

// Returns the type in which integers are stored, or kNone if no type represents their values.
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
    case DType::kUint6:
      return DType::kUint8;
    default:
      return DType::kNone;
  }
}

// Returns the axis along which the scales differ; 0 for a single scale, nothing for several such
// axes or blocks.
std::optional<int> ScaleAxis(const Encoding& e) {
  int axis = 0, found = 0;
  for (int i = 0; i < e.scale.rank(); ++i) {
    if (e.scale.dims()[i] == 1) continue;
    if (e.scale.dims()[i] != e.data.dims()[i]) return std::nullopt;
    axis = i;
    ++found;
  }
  return found > 1 ? std::nullopt : std::optional(axis);
}

// Returns int8 elements plus 128.
Tensor Unsigned(const Tensor& integers) {
  return Tensor::Lazy(
      DType::kUint8, integers.dims(),
      [=](int64_t first, int64_t count, std::byte* out) {
        integers.Read(first, count, out);
        constexpr int64_t kWord = sizeof(uint64_t);
        int64_t i = 0;
        for (; i + kWord <= count; i += kWord) {
          uint64_t eight;
          std::memcpy(&eight, out + i, kWord);
          eight ^= 0x8080808080808080u;
          std::memcpy(out + i, &eight, kWord);
        }
        for (; i < count; ++i) out[i] ^= std::byte{0x80};
      },
      integers);
}

// Returns elements [first, first + count) as doubles.
std::vector<double> Doubles(const Tensor& tensor, int64_t first, int64_t count) {
  std::vector<std::byte> raw(ByteCount(InBytes(tensor.dtype()), count));
  std::vector<double> values(static_cast<size_t>(count));
  ReadBytes(tensor, first, count, raw.data());
  ConvertElements(InBytes(tensor.dtype()), raw.data(), DType::kFp64,
                  reinterpret_cast<std::byte*>(values.data()), count);
  return values;
}

// Returns whether fp16 can represent the scales or the table: none overflows, and a sample shows
// that flushing subnormal numbers to zero loses little. `steps` is the largest integer by which
// `numbers` are multiplied.
bool FitsHalf(const Tensor& numbers, double steps) {
  constexpr int64_t kChunk = 1 << 10, kMost = 1 << 14;
  const Tensor::Range range = numbers.range();
  if (range.nan || !(std::max(-range.low, range.high) * steps < 65504)) return false;
  const int64_t size = numbers.size(), chunks = (size + kChunk - 1) / kChunk,
                step = std::max<int64_t>(chunks / (kMost / kChunk), 1);
  double lost = 0, all = 0;
  for (int64_t chunk = 0; chunk < chunks; chunk += step) {
    const int64_t first = chunk * kChunk, count = std::min(kChunk, size - first);
    for (double number : Doubles(numbers, first, count)) {
      all += number * number;
      if (std::fabs(number) < 0x1p-14) lost += number * number;
    }
  }
  numbers.Release(0, size);  // the system maps more pages than were read
  return lost <= kMostFlushed * kMostFlushed * all;
}

bool FitsHalf(const Encoding& e) {
  if (e.form == Form::kAffine)
    return FitsHalf(e.scale, std::ldexp(1, std::min(Bits(e.data.dtype()), 32)));
  // A table that is fp16 in the source loses nothing.
  const bool wide = e.form == Form::kPalette && !e.table.encoding() && IsFloat(e.table.dtype()) &&
                    e.table.dtype() != DType::kFp16;
  return !wide || FitsHalf(e.table, 1);
}

Dims Leading(const Tensor& table) { return {table.dims().begin(), table.dims().end() - 2}; }

// Returns a tensor whose cells are repeated to a finer `grid`; trailing dimensions are unchanged.
Tensor Refined(const Tensor& x, const Dims& grid) {
  Dims dims = x.dims(), from(dims.size(), 1), to(dims.size(), 1), reps(dims.size(), 1);
  std::copy(grid.begin(), grid.end(), dims.begin());
  if (dims == x.dims()) return x;
  for (size_t d = dims.size(); d-- > 1;) {
    from[d - 1] = from[d] * x.dims()[d];
    to[d - 1] = to[d] * dims[d];
  }
  for (size_t d = 0; d < dims.size(); ++d) reps[d] = dims[d] / x.dims()[d];
  const size_t width = Bits(x.dtype()) / 8;
  return Tensor::Lazy(x.dtype(), dims, [=](int64_t first, int64_t count, std::byte* out) {
    for (int64_t i = first; i < first + count; ++i) {
      int64_t at = 0;
      for (size_t d = 0; d < dims.size(); ++d) at += i / to[d] % dims[d] / reps[d] * from[d];
      x.Read(at, 1, out + (i - first) * width);
    }
  });
}

// Returns the root mean square error of `made`, an encoding scale (data - offset), relative to the
// values of `e`, measured on at most `most` of them.
double ErrorOf(const Encoding& e, const Encoding& made, DType dtype, int64_t most);

constexpr std::string_view kLut = "constexpr_lut_to_dense";

class Planner {
 public:
  // `dtype` is the type of the constant, possibly after narrowing.
  Planner(DType dtype, Opset target)
      : dtype_(dtype), half_(dtype == DType::kFp16), target_(target) {}

  Plan Of(const Encoding& e) {
    if (!Top(e)) {
      plan_.steps.clear();
      if (plan_.dense.empty()) plan_.dense = "no operation supports this encoding";
    }
    return std::move(plan_);
  }

 private:
  bool blockwise() const { return target_ >= Opset::kIos18; }
  bool Needs(Opset since) {
    plan_.since = std::max(plan_.since, since);
    if (target_ >= since) return true;
    return Stays(fmt::format("{} has no operation for this encoding", TargetName(target_)));
  }
  bool Stays(std::string why) {
    plan_.dense = std::move(why);
    return false;
  }
  Result Add(Step step) {
    plan_.steps.push_back(std::move(step));
    return {static_cast<int>(plan_.steps.size()) - 1, 0};
  }
  Tensor Wide(const Tensor& tensor) const { return tensor.Cast(dtype_); }

  bool Top(const Encoding& e) {
    constexpr int64_t kSample = 1 << 14;
    switch (e.form) {
      case Form::kAffine:
        if (e.mask || !Affine(e)) return false;
        // Measure the rounding error in fp16 if the source is more precise.
        if (dtype_ == DType::kFp16 && e.dtype != dtype_ && plan_.note.empty() &&
            plan_.steps.back().op != kLut)
          plan_.note = fmt::format("encoding of the source, with an error of {:.1e} in fp16",
                                   ErrorOf(e, e, dtype_, kSample));
        return true;
      case Form::kPalette:
        return !e.mask && Palette(e).has_value();
      default:
        return Sparse(e);
    }
  }

  bool Affine(const Encoding& e) {
    if (e.data.encoding()) return Stacked(e);
    if (!e.bias) return Scaled(e, e.data);
    if (!Needs(Opset::kIos18)) return false;
    Unbiased unbiased = WithoutBias(e, dtype_);
    if (!(unbiased.error <= kMostError))
      return Stays(fmt::format("scale (data - offset) has an error of {:.1e}", unbiased.error));
    plan_.note = fmt::format("scale data + bias as scale (data - offset), with an error of {:.1e}",
                             unbiased.error);
    return Scaled(unbiased.encoding, unbiased.encoding.data);
  }

  // Encodes scale (data - offset), where data is a tensor of integers or a result.
  bool Scaled(const Encoding& e, const Tensor& integers) {
    DType stored = Stored(integers.dtype());
    if (stored == DType::kNone)
      return Stays(fmt::format("no operation scales {} elements", Name(integers.dtype())));
    if (half_ && !FitsHalf(e)) return Stays("fp16 cannot represent the scales");
    bool float_offset = e.offset && IsFloat(e.offset.dtype());
    const bool affine = target_ >= Opset::kIos16 && !float_offset && !operand_;
    std::optional<int> axis = affine ? ScaleAxis(e) : std::nullopt;
    if (Bits(stored) < 8 && axis && !blockwise())
      stored = IsSigned(stored) ? DType::kInt8 : DType::kUint8;
    if (Bits(stored) < 8) axis = std::nullopt;
    if (!axis && !Needs(Opset::kIos18)) return false;
    Tensor data = integers.Cast(stored), scale = Wide(e.scale), offset = OffsetFor(e, stored);
    if (axis) {
      Dims dims = scale.size() == 1 ? Dims() : Dims{scale.size()};
      if (!offset) offset = Tensor::Full(stored, dims, 0);
      if (stored == DType::kInt8) {
        // Processors mishandle signed integers in this operation (coremltools#2114, #2675).
        data = Unsigned(data);
        offset = Unsigned(offset);
      }
      Add({"constexpr_affine_dequantize",
           {{"quantized_data", data},
            {"zero_point", offset.Reshaped(dims)},
            {"scale", scale.Reshaped(dims)},
            {"axis", Tensor::Scalar<int32_t>(*axis)}}});
      return true;
    }
    AddScaling("constexpr_blockwise_shift_scale", {{"data", data}}, scale, offset);
    return true;
  }

  // Returns the offset for data of a type.
  Tensor OffsetFor(const Encoding& e, DType data) const {
    if (!e.offset) return {};
    return IsFloat(e.offset.dtype()) ? Wide(e.offset) : e.offset.Cast(data);
  }

  Result AddScaling(std::string_view op, std::vector<std::pair<std::string_view, Argument>> args,
                    const Tensor& scale, const Tensor& offset) {
    args.emplace_back("scale", scale);
    if (offset) args.emplace_back("offset", offset);
    return Add({op, std::move(args)});
  }

  // Encodes a palette whose entries are scaled.
  bool Stacked(const Encoding& e) {
    const Encoding& palette = *e.data.encoding();
    if (palette.form != Form::kPalette || palette.mask || e.bias || palette.table.encoding())
      return IsInteger(e.data.dtype()) && !e.bias && Scaled(e, Dense(e.data));
    if (half_ && !FitsHalf(e)) return Stays("fp16 cannot represent the scales");
    const bool integers = IsInteger(palette.table.dtype());
    if (target_ >= Opset::kIos26 && palette.table.dtype() == (integers ? palette.dtype : dtype_)) {
      std::optional<Result> entries = Palette(palette);
      if (!entries) return false;
      plan_.since = std::max(plan_.since, Opset::kIos18);
      AddScaling("constexpr_blockwise_shift_scale", {{"data", *entries}}, Wide(e.scale),
                 OffsetFor(e, palette.table.dtype()));
      return true;
    }
    // Either the tables are scaled or the entries are stored as data, whichever is smaller.
    Planner folded(dtype_, target_), dense(dtype_, target_);
    std::optional<Encoding> tables = Folded(e, palette);
    bool first = tables && folded.Palette(*tables);
    bool second = integers && dense.Scaled(e, Dense(e.data));
    if (first && (!second || folded.plan_.bytes() < dense.plan_.bytes()))
      plan_ = std::move(folded.plan_);
    else
      plan_ = std::move(dense.plan_);
    if (!first && !second && plan_.dense.empty()) plan_ = std::move(folded.plan_);
    return first || second;
  }

  // Applies the scale and offset of `e` to the tables of its palette, refined to cells that share a
  // scale; nullopt if the cells and scales do not align.
  std::optional<Encoding> Folded(const Encoding& e, const Encoding& palette) const {
    Dims cells = Leading(palette.table);
    const Dims& scales = e.scale.dims();
    for (size_t d = 0; d < cells.size(); ++d) {
      bool along = palette.vector() > 1 && static_cast<int>(d) == palette.vector_axis;
      if (along && scales[d] != 1) return std::nullopt;
      if (cells[d] % scales[d] == 0) continue;
      if (scales[d] % cells[d] != 0) return std::nullopt;
      cells[d] = scales[d];
    }
    auto outer = [&](const Tensor& tensor) {
      if (!tensor) return Tensor();
      Dims dims = tensor.dims();
      dims.insert(dims.end(), {1, 1});
      return tensor.Reshaped(std::move(dims));
    };
    Encoding result = palette;
    result.table = Tensor::Encoded({.dtype = dtype_,
                                    .data = Refined(palette.table, cells),
                                    .scale = outer(e.scale),
                                    .offset = outer(e.offset)});
    return result;
  }

  std::optional<Result> Palette(const Encoding& e) {
    Dims grid = Leading(e.table);
    const bool one = ElementCount(grid) == 1 && e.vector() == 1;
    if (half_ && !FitsHalf(e)) {
      Stays("fp16 cannot represent the table");
      return std::nullopt;
    }
    DType indices = e.data.dtype();
    if (!one || indices == DType::kUint3) plan_.since = std::max(plan_.since, Opset::kIos18);
    if (!one && !Needs(Opset::kIos18)) return std::nullopt;
    Argument table = IsFloat(e.table.dtype()) ? Dense(Wide(e.table)) : e.table;
    const Encoding* entries = e.table.encoding();
    if (entries && blockwise() && !entries->mask && entries->form == Form::kAffine &&
        !entries->data.encoding() && !entries->bias && IsInteger(entries->data.dtype())) {
      Planner planner(dtype_, target_);
      planner.operand_ = true;
      if (planner.Scaled(*entries, entries->data) &&
          planner.plan_.bytes() < std::get<Tensor>(table).byte_size()) {
        plan_.since = std::max(plan_.since, Opset::kIos18);
        plan_.steps.push_back(std::move(planner.plan_.steps.at(0)));
        table = Result{static_cast<int>(plan_.steps.size()) - 1, 0};
      }
    }
    if (blockwise()) {
      Step step{"constexpr_lut_to_dense", {{"indices", e.data}, {"lut", table}}};
      if (e.vector() > 1) step.args.emplace_back("vector_axis", VectorAxis(e));
      return Add(std::move(step));
    }
    // Before iOS18 there is one vector of entries, and indices are packed into bytes; 3-bit indices
    // become 4-bit ones.
    Tensor packed = e.data, vector = std::get<Tensor>(table).Reshaped({e.entries()});
    if (indices == DType::kUint3) {
      packed = e.data.Cast(DType::kUint4);
      std::vector<double> longer = vector.Doubles();
      longer.resize(16);
      vector = Tensor::Vector(longer).Cast(vector.dtype());
    }
    return Add({"constexpr_lut_to_dense",
                {{"indices", BytesOf(packed)}, {"lut", vector}, {"shape", ShapeOf(e.data)}}});
  }

  static Tensor VectorAxis(const Encoding& e) { return Tensor::Scalar<int32_t>(e.vector_axis); }
  static Tensor ShapeOf(const Tensor& tensor) {
    std::vector<uint32_t> sizes;
    for (int64_t size : tensor.dims()) sizes.push_back(static_cast<uint32_t>(size));
    return Tensor::Vector(sizes);
  }

  // A mask and the values where it is set: constants or results of a step.
  struct Values {
    Argument mask, data;
  };
  std::optional<Values> ValuesOf(const Tensor& values, const Tensor& mask) {
    const Encoding* e = values.encoding();
    if (!e) return Values{mask, values};
    if (!e->mask || e->form == Form::kSparse || e->bias) return std::nullopt;
    if (e->form == Form::kPalette) {
      if (e->table.encoding()) return std::nullopt;
      Tensor table = IsFloat(e->table.dtype()) ? Wide(e->table) : e->table;
      Step step{"constexpr_lut_to_sparse",
                {{"indices_mask", e->mask}, {"indices_nonzero_data", e->data}, {"lut", table}}};
      if (e->vector() > 1) step.args.emplace_back("vector_axis", VectorAxis(*e));
      int at = Add(std::move(step)).step;
      return Values{Result{at, 0}, Result{at, 1}};
    }
    if (half_ && !FitsHalf(*e)) return std::nullopt;
    std::optional<Values> inner = ValuesOf(e->data, e->mask);
    if (!inner) return std::nullopt;
    DType stored = e->data.encoding() ? e->data.dtype() : Stored(e->data.dtype());
    if (stored == DType::kNone) return std::nullopt;
    if (Tensor* data = std::get_if<Tensor>(&inner->data)) *data = data->Cast(stored);
    int at = AddScaling("constexpr_sparse_blockwise_shift_scale",
                        {{"data_mask", inner->mask}, {"nonzero_data", inner->data}}, Wide(e->scale),
                        OffsetFor(*e, stored))
                 .step;
    return Values{Result{at, 0}, Result{at, 1}};
  }

  bool Sparse(const Encoding& e) {
    std::optional<Values> values;
    if (e.data.encoding() && blockwise()) {
      values = ValuesOf(e.data, e.mask);
      if (values)
        plan_.since = std::max(plan_.since, Opset::kIos18);
      else
        plan_.steps.clear();
    }
    if (!values) values = Values{e.mask, Dense(Wide(e.data))};
    Step step{"constexpr_sparse_to_dense", {{"nonzero_data", values->data}}};
    if (blockwise()) {
      step.args.emplace_back("mask", values->mask);
    } else {
      step.args.emplace_back("mask", BytesOf(e.mask));
      step.args.emplace_back("shape", ShapeOf(e.mask));
    }
    Add(std::move(step));
    return true;
  }

  DType dtype_;
  bool half_;
  Opset target_;
  bool operand_ = false;  // encodes an operand of another constexpr operation, which requires iOS18
  Plan plan_;
};

// Returns nothing if a constant has no encoding or is not a weight.
std::optional<Plan> PlanFor(const Operation& op, DType dtype, Opset target, bool named = false) {
  if (!op.def->is_const() || !op.val.encoding() || op.result()->is_output()) return std::nullopt;
  if (dtype != DType::kFp32 && dtype != DType::kFp16) return std::nullopt;
  if (op.val.size() < kLeastEncoded && !named) return std::nullopt;
  Plan plan = Planner(dtype, target).Of(*op.val.encoding());
  if (plan.dense.empty() && plan.bytes() >= ByteCount(dtype, op.val.size())) return std::nullopt;
  return plan;
}

// Inserts the steps before the constant and replaces it.
void Build(Operation* op, const Plan& plan, PassContext& context) {
  Builder builder = BuilderBefore(op, context);
  Function* function = op->block->function;
  const std::string name = op->result()->name, stem = op->name.empty() ? name : op->name;
  std::vector<Operation*> made;
  for (const Step& step : plan.steps) {
    const bool last = made.size() + 1 == plan.steps.size();
    auto operation = std::make_unique<Operation>();
    operation->def = &function->program->ops->At(step.op);
    operation->location = op->location;
    for (const auto& [param, argument] : step.args) {
      const Tensor* tensor = std::get_if<Tensor>(&argument);
      operation->SetArg(param, {tensor ? builder.Const(*tensor, fmt::format("{}_{}", stem, param))
                                       : made[std::get<Result>(argument).step]->result(
                                             std::get<Result>(argument).result)});
    }
    InferContext inferred(*operation->def, operation->args(), nullptr, &function->symbols);
    operation->def->infer(inferred);
    for (Type& type : inferred.results) {
      auto result = std::make_unique<Value>();
      std::string_view suffix = last                                ? "dense"
                                : &type != &inferred.results.back() ? "mask"
                                                                    : "encoded";
      result->name = function->UniqueName(fmt::format("{}_{}", name, suffix));
      result->type = std::move(type);
      result->def = operation.get();
      result->index = static_cast<int>(operation->results.size());
      operation->results.push_back(std::move(result));
    }
    operation->name = operation->results.back()->name;
    made.push_back(op->block->Insert(std::move(operation), op));
  }
  Operation* dense = made.back();
  MLC_CHECK(dense->result()->type == op->result()->type, "{} instead of {}",
            dense->result()->type.ToString(), op->result()->type.ToString());
  Replace(op, dense->result());
  function->Rename(dense->result(), name);
  dense->name = dense->result()->name;
}

bool IsEncoded(const Operation& op) {
  return op.def->is_const() && op.val.encoding() && op.result()->has_uses();
}

bool Rewrite(Operation* op, const std::optional<Plan>& plan, PassContext& context) {
  if (!plan) return false;
  const std::string& reason = plan->dense.empty() ? plan->note : plan->dense;
  if (!reason.empty())
    context.diagnostics.Decide("encoding", op->name,
                               plan->dense.empty() ? reason : fmt::format("dense: {}", reason));
  if (!plan->dense.empty()) {
    op->val = Dense(op->val);  // no later pass considers it again
    return false;
  }
  Build(op, *plan, context);
  return true;
}

bool RunEncodedConstants(Program& program, PassContext& context) {
  // Plans read the scales of all constants in parallel; the constants that they create have no
  // encoding.
  std::vector<Operation*> encoded;
  for (const auto& function : program.functions)
    ForEachOperation(*function, [&](Operation* op) {
      if (IsEncoded(*op)) encoded.push_back(op);
    });
  std::vector<std::optional<Plan>> plans(encoded.size());
  ParallelFor(std::ssize(encoded), 0, [&](int64_t i) {
    const Operation& op = *encoded[i];
    const bool named =
        context.compression && context.compression->named.contains(op.result()->name);
    plans[i] = PlanFor(op, op.val.dtype(), context.target, named);
  });
  bool changed = false;
  for (size_t i = 0; i < encoded.size(); ++i) changed |= Rewrite(encoded[i], plans[i], context);
  return changed;
}

void Round(std::vector<double>& values, DType dtype) {
  std::vector<std::byte> raw(values.size() * 8);
  auto* doubles = reinterpret_cast<std::byte*>(values.data());
  ConvertElements(DType::kFp64, doubles, dtype, raw.data(), std::ssize(values));
  ConvertElements(dtype, raw.data(), DType::kFp64, doubles, std::ssize(values));
}

// Returns whether a block equals its bias: its scale is 0, or so small relative to the bias that
// the offset exceeds fp16.
bool IsBias(double scale, double bias, DType dtype) {
  constexpr double kMostOffset = 65000;  // leaves room to add an 8-bit integer
  return scale == 0 || (dtype == DType::kFp16 && !(std::fabs(bias / scale) < kMostOffset));
}

// Returns the new scale or offset, which is computed when it is read.
Tensor Parameter(const Tensor& scale, const Tensor& bias, DType dtype, bool offset) {
  return Tensor::Lazy(
      dtype, scale.dims(),
      [=](int64_t first, int64_t count, std::byte* out) {
        std::vector<double> scales = Doubles(scale, first, count),
                            biases = Doubles(bias, first, count);
        Round(scales, dtype);
        for (size_t i = 0; i < scales.size(); ++i) {
          const bool alone = IsBias(scales[i], biases[i], dtype);
          if (offset)
            scales[i] = !alone ? -biases[i] / scales[i] : biases[i] != 0 ? -1 : 0;
          else if (alone)
            scales[i] = biases[i];
        }
        ConvertElements(DType::kFp64, reinterpret_cast<const std::byte*>(scales.data()), dtype, out,
                        count);
      },
      scale);
}

bool AnyIsBias(const Encoding& e, DType dtype) {
  constexpr int64_t kBlock = int64_t{1} << 16;
  bool any = false;
  for (int64_t first = 0; !any && first < e.scale.size(); first += kBlock) {
    int64_t count = std::min(kBlock, e.scale.size() - first);
    std::vector<double> scales = Doubles(e.scale, first, count),
                        biases = Doubles(e.bias, first, count);
    e.scale.Release(first, count);
    Round(scales, dtype);
    for (int64_t i = 0; i < count; ++i) any = any || IsBias(scales[i], biases[i], dtype);
  }
  return any;
}

// Returns the integers, with 0 in blocks that equal their bias.
Tensor WithoutIdle(const Encoding& e, DType dtype) {
  BlockGrid grid(e.data.dims(), e.scale.dims());
  // Blocks of whole bytes stay packed.
  const bool packed = grid.block() % 8 == 0 && e.data.dims().back() % 8 == 0;
  const DType held = packed ? e.data.dtype() : InBytes(e.data.dtype());
  Tensor zeroed = Tensor::Lazy(
      held, e.data.dims(),
      [e, grid, dtype, held](int64_t first, int64_t count, std::byte* out) {
        if (held == e.data.dtype())
          e.data.Read(first, count, out);
        else
          ReadBytes(e.data, first, count, out);
        grid.Rows(first, count, [&](int64_t i, int64_t n, int64_t cell, int64_t used) {
          const int64_t block = grid.block(), cells = (used + n - 1) / block + 1;
          std::vector<double> scales = Doubles(e.scale, cell, cells),
                              biases = Doubles(e.bias, cell, cells);
          Round(scales, dtype);
          for (int64_t c = 0; n > 0; ++c, used = 0) {
            const int64_t run = std::min(n, block - used);
            if (IsBias(scales[c], biases[c], dtype))
              std::fill_n(out + ByteCount(held, i - first), ByteCount(held, run), std::byte{0});
            i += run, n -= run;
          }
        });
      },
      e.data);
  return zeroed.Cast(e.data.dtype());
}

double ErrorOf(const Encoding& e, const Encoding& made, DType dtype, int64_t most) {
  constexpr int64_t kChunk = 1024;
  // Compute each step of the arithmetic in `dtype`, and the exact values.
  Tensor ones = Tensor::Full(DType::kUint8, e.data.dims(), 1);
  Tensor exact = Tensor::Encoded(e), offset;
  Tensor scale = Tensor::Encoded({.dtype = dtype, .data = ones, .scale = made.scale});
  if (made.offset) offset = Tensor::Encoded({.dtype = dtype, .data = ones, .scale = made.offset});
  const int64_t size = exact.size(), chunks = (size + kChunk - 1) / kChunk,
                step = std::max<int64_t>(chunks / (most / kChunk), 1);
  double errors = 0, squares = 0;
  for (int64_t chunk = 0; chunk < chunks; chunk += step) {
    int64_t first = chunk * kChunk, count = std::min(kChunk, size - first);
    std::vector<double> wanted = Doubles(exact, first, count), s = Doubles(scale, first, count),
                        x = Doubles(made.data, first, count);
    if (offset) {
      std::vector<double> o = Doubles(offset, first, count);
      for (int64_t i = 0; i < count; ++i) x[i] -= o[i];
    }
    Round(x, dtype);
    for (int64_t i = 0; i < count; ++i) x[i] *= s[i];
    Round(x, dtype);
    for (int64_t i = 0; i < count; ++i) {
      errors += (x[i] - wanted[i]) * (x[i] - wanted[i]);
      squares += wanted[i] * wanted[i];
    }
  }
  e.data.Release(0, size);
  return errors > 0 ? std::sqrt(errors / squares) : 0;
}

}  // namespace

Unbiased WithoutBias(const Encoding& e, DType dtype) {
  Unbiased result{e};
  Encoding& to = result.encoding;
  to.dtype = dtype;
  to.bias = {};
  to.scale = Parameter(e.scale, e.bias, dtype, false);
  to.offset = Parameter(e.scale, e.bias, dtype, true);
  if (AnyIsBias(e, dtype)) to.data = WithoutIdle(e, dtype);
  result.error = ErrorOf(e, to, dtype, int64_t{1} << 17);
  return result;
}

std::optional<Opset> EncodedSince(const Operation& op, PassContext::Precision precision) {
  bool half = precision != PassContext::Precision::kFp32;
  DType dtype = half && op.val.dtype() == DType::kFp32 ? DType::kFp16 : op.val.dtype();
  std::optional<Plan> plan = PlanFor(op, dtype, Opset::kIos18);
  return plan && plan->dense.empty() ? std::optional(plan->since) : std::nullopt;
}

bool NeedsFp32(const Operation& op, const Tensor& values, Opset target) {
  if (!values.encoding()) return false;
  const Encoding& e = *values.encoding();
  const Tensor& numbers = e.form == Encoding::Form::kAffine ? e.scale : e.table;
  if (FitsHalf(e) || numbers.range().nan) return false;
  if (op.def->is_constexpr()) return true;
  const std::optional<Plan> plan = PlanFor(op, DType::kFp32, target);
  return plan && plan->dense.empty();
}

extern const PassDef kEncodedConstants = {
    "encoded-constants", "store quantised constants in the forms that Core ML supports",
    RunEncodedConstants};

}  // namespace mlc::passes

// Replaces operations that the Neural Engine cannot run by others that it can, where a rule of
// placement (lib/analysis/placement_rules.h) applies and its fix is exact arithmetic.
//
//   reflection            y = pad(x, mode = "reflect")    ->   concat(reverse(slice), x, reverse(slice))
//   channel-padding       y = pad(x, [0, 0, 0, 2, ...])   ->   concat(x, constant)
//   transposed-dilation   conv_transpose(dilations = 2)   ->   the kernel with zeros in between
//   kernel-width          conv(kernel [3, 21])            ->   transpose(conv(transpose(x), [21, 3]))
//   conv-3d               conv(kernel [3, 5, 5])          ->   the sum of three convolutions [5, 5]
//   cumulative-sum        cumsum(x)                       ->   matmul(x, triangle of ones)
//   logic                 logical_and(a, b)               ->   greater(mul(a, b), 0.5)
//   response-norm         local_response_norm(x)          ->   x * pow(k + conv(square(x)), -beta)
//   product-rank          matmul of five dimensions       ->   reshape(matmul of four)
//   pool-window-N         avg_pool over a whole picture   ->   reduce_mean
//
// Must not fire without --optimize-for ane, if the rule does not apply, or where the fix is not
// exact: on computed weights, on sizes that are not constant, on kernels that are also too high;
// nor where it would be large: on more than 2048 sums, 1024 normalised channels, 7 steps of depth.
// mlc explain reports such cases, which are left to the author of the model. Numeric effect: only the order
// of summation.
//
// Operators by name: those that the rules concern.
#include <array>
#include <cmath>

#include "lib/analysis/cost.h"
#include "lib/analysis/placement_rules.h"
#include "lib/ir/arithmetic.h"
#include "lib/passes/rewriting.h"

namespace mlc::passes {
namespace {

constexpr int64_t kHighestKernel = 29;  // rule kernel-width
constexpr int64_t kWidestKernel = 13;   // rule kernel-width
constexpr int64_t kDeepestKernel = 7;   // each step of the depth is a convolution of its own
constexpr int64_t kMostNormalised =
    1024;  // channels; the band has the square of this many elements
constexpr int64_t kLongestTriangle = 2048;  // the triangle has the square of this many elements

// Returns a dimension if it is constant.
std::optional<int64_t> SizeOf(const Value* value, size_t axis) {
  const Dim& dim = value->type.shape[axis];
  return dim.is_constant() ? std::optional(dim.constant()) : std::nullopt;
}

// Returns (before, after) for every dimension of the operand of a pad; empty if they are computed.
std::vector<int64_t> PadsOf(const Operation& op) {
  const Tensor pad = op.constant("pad");
  if (!pad || !op.value("x")) return {};
  std::vector<int64_t> pads = pad.Ints();
  pads.insert(pads.begin(), 2 * op.value("x")->type.shape.size() - pads.size(), 0);
  return pads;
}

bool Reflection(Operation* op, PassContext& context) {
  std::vector<int64_t> pads = PadsOf(*op);
  const Tensor mode = op->constant("mode");
  if (pads.empty() || !mode || mode.strings()[0] != "reflect") return false;
  Value* x = op->value("x");
  for (size_t axis = 0; axis < pads.size() / 2; ++axis)
    if ((pads[2 * axis] || pads[2 * axis + 1]) && !SizeOf(x, axis)) return false;
  Builder b = BuilderBefore(op, context);
  for (size_t d = 0; d < pads.size() / 2; ++d) {
    const auto axis = static_cast<int64_t>(d);
    const int64_t before = pads[2 * d], after = pads[2 * d + 1], size = SizeOf(x, d).value_or(0);
    auto mirrored = [&](int64_t begin, int64_t end) {
      Value* part = SliceAlong(b, x, axis, begin, end, false);
      return end - begin == 1 ? part : b.Make("reverse", {{"x", part}, {"axes", Ints({axis})}});
    };
    std::vector<Value*> parts;
    if (before) parts.push_back(mirrored(1, before + 1));
    parts.push_back(x);
    if (after) parts.push_back(mirrored(size - 1 - after, size - 1));
    if (parts.size() > 1) x = Concat(b, parts, axis);
  }
  return Replace(op, x);
}

bool ChannelPadding(Operation* op, PassContext& context) {
  std::vector<int64_t> pads = PadsOf(*op);
  const Tensor mode = op->constant_or_default("mode");
  Tensor number = op->constant("constant_val");
  if (pads.empty() || !mode || mode.strings()[0] != "constant") return false;
  if (op->has("constant_val") && !number) return false;
  Value* x = op->value("x");
  if (!number) number = Tensor::Full(x->type.dtype, {}, 0);
  if (!IsStatic(x->type.shape)) return false;
  Builder b = BuilderBefore(op, context);
  for (size_t d = 0; d < 2; ++d) {
    auto filled = [&](int64_t size) {
      Dims dims = StaticDims(x->type.shape);
      dims[d] = size;
      return b.Const(Tensor::Full(x->type.dtype, dims, number.Double(0)), "padding");
    };
    std::vector<Value*> parts;
    if (pads[2 * d]) parts.push_back(filled(pads[2 * d]));
    parts.push_back(x);
    if (pads[2 * d + 1]) parts.push_back(filled(pads[2 * d + 1]));
    if (parts.size() > 1) x = Concat(b, parts, static_cast<int64_t>(d));
    pads[2 * d] = pads[2 * d + 1] = 0;
  }
  if (std::ranges::any_of(pads, [](int64_t n) { return n != 0; })) {
    Builder::Args args = ArgsWithout(*op, {"x", "pad"});
    args.emplace_back("x", x);
    args.emplace_back("pad", Ints({pads.begin() + 4, pads.end()}));
    x = b.Make("pad", std::move(args));
  }
  return Replace(op, x);
}

// Returns the numbers of an attribute with one per spatial dimension, or ones.
std::vector<int64_t> PerSpatial(const Operation& op, std::string_view param, size_t spatial) {
  const Tensor numbers = op.constant(param);
  return numbers ? numbers.Ints() : std::vector<int64_t>(spatial, 1);
}

bool TransposedDilation(Operation* op, PassContext& context) {
  const Tensor weight = op->constant("weight");
  if (!weight || !op->value("weight")) return false;
  const Dims from = weight.dims();
  const std::vector<int64_t> dilations = PerSpatial(*op, "dilations", from.size() - 2);
  Dims to = from;
  for (size_t i = 2; i < from.size(); ++i) to[i] = (from[i] - 1) * dilations[i - 2] + 1;
  if (to.back() > kWidestKernel || to[2] > kHighestKernel) return false;
  std::vector<double> spread(static_cast<size_t>(ElementCount(to)), 0.0);
  const std::vector<double> numbers = weight.Doubles();
  std::vector<int64_t> index(from.size(), 0);
  for (double number : numbers) {
    int64_t at = 0;
    for (size_t i = 0; i < from.size(); ++i)
      at = at * to[i] + index[i] * (i < 2 ? 1 : dilations[i - 2]);
    spread[static_cast<size_t>(at)] = number;
    for (size_t i = from.size(); i-- > 0 && ++index[i] == from[i];) index[i] = 0;
  }
  Builder b = BuilderBefore(op, context);
  Builder::Args args = ArgsWithout(*op, {"weight", "dilations"});
  args.emplace_back(
      "weight", b.Const(Tensor::Of<double>(to, spread).Cast(weight.dtype()).ComputedFrom(weight),
                        op->value("weight")->name));
  return Replace(op, b.Make("conv_transpose", std::move(args)));
}

// Exchanges the entries of two spatial dimensions, of which each has `per`.
Tensor Exchanged(const Tensor& numbers, int64_t per) {
  std::vector<int64_t> all = numbers.Ints();
  std::rotate(all.begin(), all.begin() + per, all.end());
  return Ints(all);
}

// Exchanges height and width, or makes the one spatial dimension the height.
bool KernelWidth(Operation* op, PassContext& context) {
  const Tensor weight = op->constant("weight");
  if (!op->is("conv") || !weight || !op->value("x") || !op->value("weight")) return false;
  const Dims& dims = weight.dims();
  const bool flat = dims.size() == 3;
  if (dims.size() > 4 || dims.back() > kHighestKernel || (!flat && dims[2] > 13)) return false;
  Builder b = BuilderBefore(op, context);
  Builder::Args args = ArgsWithout(*op, {"x", "weight", "strides", "dilations", "pad"});
  auto moved = [&](Value* value) {
    return flat ? Expanded(b, value, {3}) : Transposed(b, value, {0, 1, 3, 2});
  };
  args.emplace_back("x", moved(op->value("x")));
  args.emplace_back("weight", b.Const(flat ? weight.Reshaped({dims[0], dims[1], dims[2], 1})
                                           : weight.Transposed({0, 1, 3, 2}),
                                      op->value("weight")->name));
  for (auto [param, per, one] : {std::tuple{"strides", 1, int64_t{1}},
                                 {"dilations", 1, int64_t{1}},
                                 {"pad", 2, int64_t{0}}}) {
    if (!op->has(param)) continue;
    const Tensor numbers = op->constant(param);
    if (!numbers) return false;
    std::vector<int64_t> more = numbers.Ints();
    more.insert(more.end(), static_cast<size_t>(per), one);
    args.emplace_back(param, flat ? Ints(more) : Exchanged(numbers, per));
  }
  Value* y = b.Make("conv", std::move(args));
  return Replace(op, flat ? Squeezed(b, y, {3}) : Transposed(b, y, {0, 1, 3, 2}));
}

// Adds the results of convolutions of images, one for each step of the kernel's depth.
bool Conv3d(Operation* op, PassContext& context) {
  const Tensor weight = op->constant("weight");
  Value* x = op->value("x");
  if (!op->is("conv") || !weight || weight.rank() != 5 || !x || !op->value("weight")) return false;
  const Shape &from = x->type.shape, &to = op->result()->type.shape;
  if (!IsStatic(from) || !IsStatic(to) || weight.encoding()) return false;
  const Tensor type = op->constant_or_default("pad_type"), given = op->constant("pad");
  const std::string padding = type ? type.strings()[0] : "";
  if (padding != "valid" && padding != "custom") return false;
  const std::vector<int64_t> strides = PerSpatial(*op, "strides", 3),
                             dilations = PerSpatial(*op, "dilations", 3);
  std::vector<int64_t> pad =
      padding == "custom" && given ? given.Ints() : std::vector<int64_t>(6, 0);
  const Dims in = StaticDims(from), out = StaticDims(to), kernel = weight.dims();
  Builder b = BuilderBefore(op, context);
  if (kernel[3] == 1 && kernel[4] == 1 && strides[1] == 1 && strides[2] == 1 &&
      std::all_of(pad.begin() + 2, pad.end(), [](int64_t n) { return n == 0; })) {
    // A convolution over time only is one of an image whose rows are frames.
    Builder::Args args =
        ArgsWithout(*op, {"x", "weight", "strides", "dilations", "pad_type", "pad"});
    args.emplace_back("x", WithShape(b, x, {in[0], in[1], in[2], in[3] * in[4]}));
    args.emplace_back("weight", b.Const(weight.Reshaped({kernel[0], kernel[1], kernel[2], 1}),
                                        op->value("weight")->name));
    args.emplace_back("strides", Ints({strides[0], 1}));
    args.emplace_back("dilations", Ints({dilations[0], 1}));
    args.emplace_back("pad_type", "custom");
    args.emplace_back("pad", Ints({pad[0], pad[1], 0, 0}));
    return Replace(op, WithShape(b, b.Make("conv", std::move(args)), {out.begin(), out.end()}));
  }
  if (kernel[2] > kDeepestKernel) return false;
  Value* frames = Transposed(b, x, {0, 2, 1, 3, 4});  // [N, D, C, H, W]
  // After the transpose, depth is dimension 1, which cannot be padded (rule channel-padding).
  auto zeros = [&](int64_t count) {
    return b.Const(Tensor::Full(x->type.dtype, {in[0], count, in[1], in[3], in[4]}, 0), "padding");
  };
  if (pad[0]) frames = Concat(b, {zeros(pad[0]), frames}, 1);
  if (pad[1]) frames = Concat(b, {frames, zeros(pad[1])}, 1);
  Value* sum = nullptr;
  for (int64_t k = 0; k < kernel[2]; ++k) {
    const int64_t begin = k * dilations[0];
    Value* part = frames;
    if (kernel[2] > 1 || strides[0] > 1) {
      const std::vector<bool> whole = {true, false, true, true, true};
      part = b.Make("slice_by_index",
                    {{"x", frames},
                     {"begin", Ints({0, begin, 0, 0, 0})},
                     {"end", Ints({0, begin + (out[2] - 1) * strides[0] + 1, 0, 0, 0})},
                     {"stride", Ints({1, strides[0], 1, 1, 1})},
                     {"begin_mask", Tensor::Vector<bool>(whole)},
                     {"end_mask", Tensor::Vector<bool>(whole)}});
    }
    part = WithShape(b, part, {in[0] * out[2], in[1], in[3], in[4]});
    const Dims flat = {kernel[0] * kernel[1], kernel[2], kernel[3], kernel[4]};
    Value* plane = SliceAlong(b, b.Const(weight.Reshaped(flat), op->value("weight")->name), 1, k,
                              k + 1, false);
    plane = WithShape(b, plane, {kernel[0], kernel[1], kernel[3], kernel[4]});
    Builder::Args args = {{"x", part},
                          {"weight", plane},
                          {"strides", Ints({strides[1], strides[2]})},
                          {"dilations", Ints({dilations[1], dilations[2]})},
                          {"pad_type", "custom"},
                          {"pad", Ints({pad[2], pad[3], pad[4], pad[5]})}};
    if (op->has("groups")) args.emplace_back("groups", op->arg("groups")[0]);
    if (op->has("bias") && k == 0) args.emplace_back("bias", op->arg("bias")[0]);
    Value* y = b.Make("conv", std::move(args));
    sum = sum ? Binary(b, "add", sum, y) : y;
  }
  sum = WithShape(b, sum, {out[0], out[2], out[1], out[3], out[4]});
  return Replace(op, Transposed(b, sum, {0, 2, 1, 3, 4}));
}

bool CumulativeSum(Operation* op, PassContext& context) {
  Value* x = op->value("x");
  const Tensor exclusive = op->constant_or_default("exclusive"),
               reverse = op->constant_or_default("reverse");
  if (!op->is("cumsum") || !x || !IsFloat(x->type.dtype) || !exclusive || !reverse) return false;
  const auto rank = static_cast<int64_t>(x->type.shape.size());
  auto axes = op->has("axis") ? ConstantAxes(*op, "axis", static_cast<int>(rank))
                              : std::optional(std::vector<int64_t>{0});
  if (!axes || rank < 2) return false;
  const std::optional<int64_t> size = SizeOf(x, static_cast<size_t>((*axes)[0]));
  if (!size || *size > kLongestTriangle) return false;
  std::vector<float> triangle(static_cast<size_t>(*size * *size), 0);
  for (int64_t i = 0; i < *size; ++i)    // element of x
    for (int64_t j = 0; j < *size; ++j)  // sum
      if (reverse.Bool(0) ? i > j || (i == j && !exclusive.Bool(0))
                          : i < j || (i == j && !exclusive.Bool(0)))
        triangle[static_cast<size_t>(i * *size + j)] = 1;
  Builder b = BuilderBefore(op, context);
  std::vector<int64_t> perm = Consecutive(0, rank);
  std::swap(perm[static_cast<size_t>((*axes)[0])], perm.back());
  const bool moved = (*axes)[0] != rank - 1;
  Value* rows = moved ? Transposed(b, x, perm) : x;
  Value* sums =
      Binary(b, "matmul", rows,
             b.Const(Tensor::Of<float>({*size, *size}, triangle).Cast(x->type.dtype), "triangle"));
  return Replace(op, moved ? Transposed(b, sums, perm) : sums);
}

bool Logic(Operation* op, PassContext& context) {
  Value *x = op->value("x"), *y = op->value("y");
  if (!x || !y || x->type.dtype != DType::kBool) return false;
  Builder b = BuilderBefore(op, context);
  // The type of the cast is that of the narrowed program.
  const DType type =
      context.precision == PassContext::Precision::kFp32 ? DType::kFp32 : DType::kFp16;
  x = b.Cast(x, type);
  y = b.Cast(y, type);
  if (op->is("logical_xor")) return Replace(op, Binary(b, "not_equal", x, y));
  Value* both = Binary(b, op->is("logical_and") ? "mul" : "maximum", x, y);
  return Replace(op, Binary(b, "greater", both, 0.5));
}

// Squares are scaled by 2^-8, so that numbers up to 4095 do not overflow in fp16.
bool ResponseNorm(Operation* op, PassContext& context) {
  Value* x = op->value("x");
  constexpr double kScale = 1.0 / 16;
  if (!x || x->type.rank() != 4 || !SizeOf(x, 1) || *SizeOf(x, 1) > kMostNormalised) return false;
  std::map<std::string_view, double> numbers;
  for (std::string_view param : {"size", "alpha", "beta", "k"}) {
    const Tensor number = op->constant_or_default(param);
    if (!number) return false;
    numbers[param] = number.Double(0);
  }
  const int64_t channels = *SizeOf(x, 1), size = static_cast<int64_t>(numbers["size"]);
  std::vector<double> band(static_cast<size_t>(channels * channels), 0);
  for (int64_t to = 0; to < channels; ++to)
    for (int64_t i = std::max<int64_t>(to - size / 2, 0);
         i <= std::min(to - size / 2 + size - 1, channels - 1); ++i)
      band[static_cast<size_t>(to * channels + i)] =
          numbers["alpha"] / static_cast<double>(size) / (kScale * kScale);
  Builder b = BuilderBefore(op, context);
  Value* squares = b.Make("square", {{"x", Binary(b, "mul", x, kScale)}});
  Value* sums = b.Make(
      "conv",
      {{"x", squares},
       {"weight", b.Const(Tensor::Of<double>({channels, channels, 1, 1}, band).Cast(x->type.dtype),
                          "neighbours")},
       {"pad_type", "valid"}});
  Value* power = Binary(b, "pow", Binary(b, "add", sums, numbers["k"]), -numbers["beta"]);
  return Replace(op, Binary(b, "mul", x, power));
}

// Joins the leading dimensions.
bool ProductRank(Operation* op, PassContext& context) {
  Value *x = op->value("x"), *y = op->value("y");
  if (!op->is("matmul") || !x || !y || x->type.rank() != 5 || y->type.rank() != 5) return false;
  const Shape &left = x->type.shape, &right = y->type.shape, &to = op->result()->type.shape;
  auto joined = [](const Shape& shape) {
    Shape four(shape.begin() + 1, shape.end());
    four[0] = shape[0] * shape[1];
    return ShapeOperand(four);
  };
  // Both operands broadcast alike in the two dimensions.
  const bool same = left[0] == right[0] && left[1] == right[1];
  auto one = [](const Shape& shape) { return shape[0] == Dim(1) && shape[1] == Dim(1); };
  const Tensor a = joined(left), c = joined(right), back = ShapeOperand(to);
  if (!(same || one(left) || one(right)) || !a || !c || !back) return false;
  Builder b = BuilderBefore(op, context);
  Builder::Args args = ArgsWithout(*op, {"x", "y"});
  args.emplace_back("x", b.Make("reshape", {{"x", x}, {"shape", a}}));
  args.emplace_back("y", b.Make("reshape", {{"x", y}, {"shape", c}}));
  Value* product = b.Make("matmul", std::move(args));
  return Replace(op, b.Make("reshape", {{"x", product}, {"shape", back}}));
}

// A window over the whole picture, without padding.
bool WholeWindow(Operation* op, PassContext& context) {
  const Tensor kernel = op->constant("kernel_sizes"), type = op->constant_or_default("pad_type");
  Value* x = op->value("x");
  const bool mean = op->is("avg_pool");
  if (!kernel || !x || !type || type.strings()[0] != "valid" || !(mean || op->is("max_pool")))
    return false;
  std::vector<int64_t> axes;
  for (int64_t i = 0; i < kernel.size(); ++i) {
    if (SizeOf(x, static_cast<size_t>(i + 2)) != kernel.Int(i)) return false;
    axes.push_back(i + 2);
  }
  Builder b = BuilderBefore(op, context);
  return Replace(op, Reduced(b, mean ? "reduce_mean" : "reduce_max", x, axes, true));
}

struct Form {
  std::string_view rule;
  bool (*rewrite)(Operation*, PassContext&);
};
constexpr std::array kForms = {
    Form{"reflection", Reflection},
    Form{"channel-padding", ChannelPadding},
    Form{"transposed-dilation", TransposedDilation},
    Form{"kernel-width", KernelWidth},
    Form{"conv-3d", Conv3d},
    Form{"cumulative-sum", CumulativeSum},
    Form{"logic", Logic},
    Form{"response-norm", ResponseNorm},
    Form{"product-rank", ProductRank},
    Form{"pool-window-29", WholeWindow},
};

bool RunAneForms(Program& program, PassContext& context) {
  if (context.optimize_for != analysis::Unit::kNeuralEngine) return false;
  const analysis::Chip& chip = analysis::DefaultChip();
  std::vector<std::pair<const analysis::PlacementRule*, const Form*>> forms;
  for (const Form& form : kForms) {
    const auto rules = analysis::PlacementRules();
    auto rule = std::ranges::find(rules, form.rule, &analysis::PlacementRule::id);
    MLC_CHECK(rule != rules.end(), "there is no rule {}", form.rule);
    if (rule->AppliesTo(*context.optimize_for, chip)) forms.emplace_back(&*rule, &form);
  }
  return OnEachFunction(program, [&](Function& function) {
    const std::vector<std::string> open = analysis::InputSymbols(function);
    const analysis::SymbolSizes sizes = analysis::SizesToExamine(function).front();
    bool changed = false;
    std::vector<Operation*> operations(function.body.operations().begin(),
                                       function.body.operations().end());
    for (Operation* op : operations) {
      if (op->def->is_const() || op->results.size() != 1) continue;
      for (auto [rule, form] : forms) {
        if (rule->operation({*op, sizes, function.symbols, open, chip}).empty()) continue;
        if (form->rewrite(op, context)) {
          changed = true;
          break;
        }
      }
    }
    return changed;
  });
}

}  // namespace

extern const PassDef kAneForms = {"ane-forms",
                                  "replace operations that the Neural Engine cannot run, if the "
                                  "program is for it",
                                  RunAneForms};

}  // namespace mlc::passes

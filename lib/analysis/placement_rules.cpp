// Operators by name: what the compute units are known to run, run slowly, or not run.
#include "lib/analysis/placement_rules.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>

#include "lib/analysis/weight_bytes.h"

namespace mlc::analysis {

namespace {

constexpr uint8_t kAne = static_cast<uint8_t>(Unit::kNeuralEngine),
                  kGpu = static_cast<uint8_t>(Unit::kGpu), kCpu = static_cast<uint8_t>(Unit::kCpu);

constexpr int64_t kAlignment = 64;             // bytes to which rows of the last axis are padded
constexpr double kMuchPadding = 1.5;           // growth of a tensor that is worth mentioning
constexpr int64_t kLargeTensor = 1 << 16;      // elements from which the layout matters
constexpr int64_t kLargeTable = 1 << 20;       // bytes of an embedding table worth moving out
constexpr int64_t kLargestMask = 1 << 22;      // elements; larger constants are weights
constexpr int64_t kLeastFusedQuery = 1 << 20;  // elements up to which fused attention is not taken

// --- operands and sizes

bool OneOf(const Operation& op, std::initializer_list<std::string_view> names) {
  return std::find(names.begin(), names.end(), op.def->name) != names.end();
}

// Calls fn(description, type) for each operand that is not constant and each result.
template <class Fn>
void ForEachVariable(const Operation& op, Fn&& fn) {
  for (size_t i = 0; i < op.args().size(); ++i)
    for (const Operand& operand : op.args()[i])
      if (operand.value && !operand.constant() &&
          !(operand.value->def && operand.value->def->def->is_constexpr()))
        fn(op.def->canonical().params[i].name, operand.type());
  for (const auto& result : op.results) fn(std::string_view("result"), result->type);
}

// As above, returning the first text that is not empty.
template <class Fn>
std::string FirstOf(const Operation& op, Fn&& text_of) {
  std::string found;
  ForEachVariable(op, [&](std::string_view what, const Type& type) {
    if (found.empty() && type.is_tensor()) found = text_of(what, type);
  });
  return found;
}

// At sizes that are not valid together, an expression may be negative.
int64_t SizeOf(const Dim& dim, const OperationAt& at) {
  return dim.is_constant() ? dim.constant()
                           : std::max<int64_t>(dim.Evaluate(at.sizes).value_or(1), 0);
}

Dims SizesOf(const Type& type, const OperationAt& at) {
  Dims dims;
  for (const Dim& dim : type.shape) dims.push_back(SizeOf(dim, at));
  return dims;
}

double ElementsOf(const Type& type, const OperationAt& at) {
  double elements = 1;
  for (int64_t size : SizesOf(type, at)) elements *= static_cast<double>(size);
  return elements;
}

std::vector<int64_t> IntsOf(const Operation& op, std::string_view param) {
  if (op.def->Find(param) < 0) return {};
  const Tensor value = op.constant_or_default(param);
  return value ? value.Ints() : std::vector<int64_t>();
}

// The operator that decodes an operand that is a compressed weight; null for other operands.
const Operation* Decoder(const Operation& op, std::string_view param) {
  const Value* value = op.def->Find(param) >= 0 ? op.value(param) : nullptr;
  return value && value->def && value->def->def->is_constexpr() ? value->def : nullptr;
}

const Operation* WeightDecoder(const Operation& op) {
  for (std::string_view param : {"weight", "y", "x"})
    if (const Operation* decoder = Decoder(op, param)) return decoder;
  return nullptr;
}

bool HasConstant(const Operation& op, std::string_view param) {
  return op.def->Find(param) >= 0 && op.has(param) &&
         (op.constant(param) || Decoder(op, param) != nullptr);
}

// Spatial sizes of a kernel: those of the weight of a convolution, kernel_sizes of a pool.
std::vector<int64_t> KernelOf(const Operation& op) {
  if (op.def->Find("kernel_sizes") >= 0) return IntsOf(op, "kernel_sizes");
  if (!OneOf(op, {"conv", "conv_transpose"}) || !op.value("weight")) return {};
  std::vector<int64_t> sizes;
  const Shape& shape = op.value("weight")->type.shape;
  for (size_t d = 2; d < shape.size(); ++d)
    sizes.push_back(shape[d].is_constant() ? shape[d].constant() : 1);
  return sizes;
}

bool IsPool(const Operation& op) { return OneOf(op, {"max_pool", "avg_pool", "l2_pool"}); }
bool IsConv(const Operation& op) { return OneOf(op, {"conv", "conv_transpose"}); }
bool IsGather(const Operation& op) {
  return OneOf(op, {"gather", "gather_along_axis", "gather_nd"});
}

int64_t Largest(const std::vector<int64_t>& numbers) {
  return numbers.empty() ? 0 : *std::max_element(numbers.begin(), numbers.end());
}

bool HasOnlyFactors2And3(int64_t number) {
  for (int64_t factor : {2, 3})
    while (number > 1 && number % factor == 0) number /= factor;
  return number == 1;
}

std::string Itself(const OperationAt& at) { return ItIs(at.op); }

std::string Shown(const Dims& dims) { return fmt::format("[{}]", fmt::join(dims, ", ")); }

// --- cannot run

std::string Fp32(const OperationAt& at) {
  const Operation& op = at.op;
  std::string found = FirstOf(op, [](std::string_view what, const Type& type) {
    return IsFloat(type.dtype) && type.dtype != DType::kFp16
               ? fmt::format("{} is {}", what, Name(type.dtype))
               : "";
  });
  if (!found.empty()) return found;
  for (size_t i = 0; i < op.args().size(); ++i) {
    const Param& param = op.def->canonical().params[i];
    if (!Contains(param.types, DType::kFp16)) continue;
    for (const Operand& operand : op.args()[i])
      if (operand.constant() && IsFloat(operand.type().dtype) &&
          operand.type().dtype != DType::kFp16)
        return fmt::format("constant {} is {}", param.name, Name(operand.type().dtype));
  }
  return "";
}

std::string Integers(const OperationAt& at) {
  return FirstOf(at.op, [](std::string_view what, const Type& type) {
    const DType dtype = type.dtype;
    return !IsFloat(dtype) && dtype != DType::kBool && Bits(dtype) > 16
               ? fmt::format("{} is {}", what, Name(dtype))
               : "";
  });
}

std::string Rank(const OperationAt& at) {
  return FirstOf(at.op, [](std::string_view what, const Type& type) {
    return type.rank() > 5 ? fmt::format("{} has {} dimensions", what, type.rank()) : "";
  });
}

bool IsListed(const std::string& symbol, const OperationAt& at) {
  const auto found = at.symbols.find(symbol);
  return found != at.symbols.end() &&
         (!found->second.enumerated.empty() || found->second.low == found->second.high);
}

// Returns the first dimension with a symbol for which `is` holds, as text.
std::string WithSymbol(const OperationAt& at, const std::function<bool(const std::string&)>& is) {
  return FirstOf(at.op, [&](std::string_view what, const Type& type) {
    for (const Dim& dim : type.shape)
      if (dim.HasSymbol(is)) return fmt::format("{} has shape {}", what, ToString(type.shape));
    return std::string();
  });
}

bool IsOpen(const std::string& symbol, const OperationAt& at) {
  return std::find(at.open.begin(), at.open.end(), symbol) != at.open.end();
}

std::string OpenShape(const OperationAt& at) {
  return WithSymbol(
      at, [&](const std::string& symbol) { return IsOpen(symbol, at) && !IsListed(symbol, at); });
}

std::string DataDependentShape(const OperationAt& at) {
  return WithSymbol(at, [&](const std::string& symbol) { return !IsOpen(symbol, at); });
}

// Channels and batches of tensors with four or five dimensions may be longer than other axes.
std::string AxisAbove(const OperationAt& at, int64_t limit, int64_t limit_of_channels) {
  auto look = [&](std::string_view what, const Type& type) {
    const Dims dims = SizesOf(type, at);
    for (size_t d = 0; d < dims.size(); ++d) {
      const int64_t most = dims.size() >= 4 && d < 2 ? limit_of_channels : limit;
      if (dims[d] > most)
        return fmt::format("axis {} of {} has {} elements, more than {}", d, what, dims[d], most);
    }
    return std::string();
  };
  // Weights of layers are exempt, but not the tables that operations look up.
  if (IsGather(at.op) && at.op.has("x"))
    if (std::string found = look("x", at.op.arg("x")[0].type()); !found.empty()) return found;
  return FirstOf(at.op, look);
}

std::string LongAxis(const OperationAt& at) { return AxisAbove(at, 16384, 65536); }
std::string VeryLongAxis(const OperationAt& at) { return AxisAbove(at, 65536, 65536); }

std::string ZeroSized(const OperationAt& at) {
  return FirstOf(at.op, [&](std::string_view what, const Type& type) {
    return type.rank() > 0 && ElementsOf(type, at) == 0
               ? fmt::format("{} has shape {}", what, Shown(SizesOf(type, at)))
               : "";
  });
}

std::string ControlFlow(const OperationAt& at) {
  if (at.op.def->runs_blocks() || at.op.def->effect == Effect::kList) return Itself(at);
  if (const Operation* parent = at.op.block->parent)
    return fmt::format("it is inside {} \"{}\"", parent->def->name, parent->name);
  return "";
}

std::string Random(const OperationAt& at) {
  return at.op.def->effect == Effect::kRandom ? Itself(at) : "";
}

template <auto& kNames>
std::string IsNamed(const OperationAt& at) {
  return std::find(std::begin(kNames), std::end(kNames), at.op.def->name) != std::end(kNames)
             ? Itself(at)
             : "";
}
using Names = const std::string_view[];
constexpr Names kRecurrent = {"lstm", "gru", "rnn"};
constexpr Names kScatters = {"scatter", "scatter_along_axis", "scatter_nd"};
constexpr Names kSelections = {"topk", "argsort", "reduce_argmax", "reduce_argmin"};
constexpr Names kBoxes = {"non_maximum_suppression"};
constexpr Names kCumulative = {"cumsum"};
constexpr Names kUnknown = {"band_part",        "one_hot",         "non_zero", "shape",
                            "reverse_sequence", "sliding_windows", "classify", "reduce_prod"};
constexpr Names kFunctions = {"tan", "asin", "acos", "sinh", "cosh", "atanh", "mod"};
constexpr Names kLogic = {"logical_and", "logical_or", "logical_xor"};
constexpr Names kAngles = {"sin", "cos"};
constexpr Names kSampling = {"resample", "affine", "crop_resize", "range_1d"};
constexpr Names kUnshifted = {"reduce_log_sum_exp", "softplus"};

std::string Gather(const OperationAt& at) {
  return IsGather(at.op) && !at.op.constant("indices")
             ? fmt::format("{} has indices that are computed or given", at.op.def->name)
             : "";
}

std::string Product5d(const OperationAt& at) {
  if (!OneOf(at.op, {"matmul", "linear"})) return "";
  const int rank = at.op.arg("x")[0].type().rank();
  return rank > 4 ? fmt::format("x has {} dimensions", rank) : "";
}

std::string Conv3d(const OperationAt& at) {
  return IsConv(at.op) && KernelOf(at.op).size() == 3 ? "it is a three-dimensional convolution"
                                                      : "";
}

std::string WideKernel(const OperationAt& at, int64_t most) {
  const std::vector<int64_t> kernel = KernelOf(at.op);
  return IsConv(at.op) && !kernel.empty() && kernel.back() > most
             ? fmt::format("the kernel is {} wide, more than {}", kernel.back(), most)
             : "";
}
std::string KernelWider13(const OperationAt& at) { return WideKernel(at, 13); }
std::string KernelWider15(const OperationAt& at) { return WideKernel(at, 15); }

std::string DilatedTransposedConv(const OperationAt& at) {
  return at.op.is("conv_transpose") && Largest(IntsOf(at.op, "dilations")) > 1
             ? fmt::format("its dilations are {}", Shown(IntsOf(at.op, "dilations")))
             : "";
}

std::string PoolWindow(const OperationAt& at, int64_t most) {
  const std::vector<int64_t> kernel = KernelOf(at.op);
  return IsPool(at.op) && Largest(kernel) > most
             ? fmt::format("its window is {}, and {} is the maximum", Shown(kernel), most)
             : "";
}
std::string PoolWindow13(const OperationAt& at) { return PoolWindow(at, 13); }
std::string PoolWindow29(const OperationAt& at) { return PoolWindow(at, 29); }
std::string PoolWindow31(const OperationAt& at) { return PoolWindow(at, 31); }

std::string OldPoolStride(const OperationAt& at) {
  const std::vector<int64_t> strides = IntsOf(at.op, "strides");
  return IsPool(at.op) && Largest(strides) > 2 ? fmt::format("its strides are {}", Shown(strides))
                                               : "";
}

std::string OldUpsampling(const OperationAt& at) {
  if (!OneOf(at.op, {"upsample_nearest_neighbor", "upsample_bilinear"})) return "";
  for (std::string_view param : {"scale_factor_height", "scale_factor_width"})
    if (const Tensor factor = at.op.constant_or_default(param); factor && factor.Double(0) > 2)
      return fmt::format("{} is {:g}", param, factor.Double(0));
  return "";
}

std::string PadsChannels(const OperationAt& at) {
  if (!at.op.is("pad")) return "";
  const std::vector<int64_t> pad = IntsOf(at.op, "pad");
  const int rank = at.op.arg("x")[0].type().rank();
  const int first = rank - static_cast<int>(pad.size() / 2);  // the first padded axis
  for (size_t i = 0; i < pad.size(); ++i)
    if (const int axis = first + static_cast<int>(i / 2); rank >= 4 && axis < 2 && pad[i] != 0)
      return fmt::format("it pads axis {}, which holds {}", axis, axis ? "channels" : "batches");
  return "";
}

std::string Mirrors(const OperationAt& at) {
  if (!at.op.is("pad")) return "";
  const Tensor mode = at.op.constant_or_default("mode");
  return mode && mode.strings()[0] == "reflect" ? "its mode is reflect" : "";
}

std::string WideResponseNorm(const OperationAt& at) {
  if (!at.op.is("local_response_norm")) return "";
  const Dims dims = SizesOf(at.op.arg("x")[0].type(), at);
  return dims.size() > 1 && dims[1] > 15 ? fmt::format("x has {} channels", dims[1]) : "";
}

std::string SmallFusedAttention(const OperationAt& at) {
  if (!at.op.is("scaled_dot_product_attention")) return "";
  const double elements = ElementsOf(at.op.arg("query")[0].type(), at);
  return elements <= kLeastFusedQuery ? fmt::format("its query has {} elements", elements) : "";
}

bool UsesStates(const Operation& op) {
  return op.def->effect == Effect::kReadsState || op.def->effect == Effect::kWritesState;
}

std::string ManyStates(const OperationAt& at) {
  const size_t states = at.op.block->function->states.size();
  return UsesStates(at.op) && states > 2 ? fmt::format("the function has {} states", states) : "";
}

// Returns the type of the state that the operation reads or writes.
const Type* StateOf(const Operation& op) {
  if (!UsesStates(op)) return nullptr;
  for (const Operands& operands : op.args())
    for (const Operand& operand : operands)
      if (operand.type().kind == Type::Kind::kState) return &operand.type().elements[0];
  return nullptr;
}

std::string StateWidth(const OperationAt& at) {
  const Type* state = StateOf(at.op);
  if (!state || state->rank() == 0) return "";
  const int64_t width = SizeOf(state->shape.back(), at);
  return width % 32 != 0 ? fmt::format("the last dimension of the state has {} elements", width)
                         : "";
}

// --- weights

std::string BlockwiseWeights(const OperationAt& at) {
  const Operation* decoder = WeightDecoder(at.op);
  if (!decoder || !decoder->is("constexpr_blockwise_shift_scale")) return "";
  const Shape& data = decoder->arg("data")[0].type().shape;
  const Shape& scale = decoder->arg("scale")[0].type().shape;
  int split = 0;  // dimensions with more than one scale
  bool blocks = false;
  for (size_t d = 0; d < data.size() && d < scale.size(); ++d) {
    if (scale[d] == Dim(1)) continue;
    ++split;
    blocks = blocks || scale[d] != data[d];
  }
  return blocks || split > 1
             ? fmt::format("its weights have one scale for each block: {} scales of shape {}",
                           Name(decoder->arg("data")[0].type().dtype), ToString(scale))
             : "";
}

std::string FourBitWeights(const OperationAt& at) {
  const Operation* decoder = WeightDecoder(at.op);
  if (!decoder || !decoder->is("constexpr_blockwise_shift_scale")) return "";
  const DType dtype = decoder->arg("data")[0].type().dtype;
  return Bits(dtype) <= 4 ? fmt::format("its weights are {}", Name(dtype)) : "";
}

std::string AffineWeights(const OperationAt& at) {
  const Operation* decoder = WeightDecoder(at.op);
  return decoder &&
                 OneOf(*decoder, {"constexpr_affine_dequantize", "constexpr_blockwise_shift_scale"})
             ? fmt::format("its weights are decoded by {}", decoder->def->name)
             : "";
}

std::string EightBitWeights(const OperationAt& at) {
  const Operation* decoder = WeightDecoder(at.op);
  return at.op.is("linear") && decoder && !AffineWeights(at).empty()
             ? fmt::format("its weights are decoded by {}", decoder->def->name)
             : "";
}

std::string GroupedTables(const OperationAt& at) {
  const Operation* decoder = WeightDecoder(at.op);
  if (!decoder || !decoder->is("constexpr_lut_to_dense") || decoder->def->Find("lut") < 0)
    return "";
  const Shape& lut = decoder->arg("lut")[0].type().shape;
  int split = 0;
  for (size_t d = 0; d + 2 < lut.size(); ++d) split += lut[d] != Dim(1);
  return split > 1 ? fmt::format("its weights have lookup tables of shape {}", ToString(lut)) : "";
}

std::string PerTensorPalette(const OperationAt& at) {
  const Operation* decoder = WeightDecoder(at.op);
  if (!decoder || !decoder->is("constexpr_lut_to_dense")) return "";
  const Type& lut = decoder->arg("lut")[0].type();
  int64_t entries = 1;
  for (const Dim& dim : lut.shape) entries *= SizeOf(dim, at);
  return entries <= 16 ? fmt::format("its weights have {} different values", entries) : "";
}

std::string CompressedWeights(const OperationAt& at) {
  const Operation* decoder = WeightDecoder(at.op);
  return decoder ? fmt::format("its weights are decoded by {}", decoder->def->name) : "";
}

std::string QuantizedActivations(const OperationAt& at) {
  return OneOf(at.op, {"quantize", "dequantize"}) ? Itself(at) : "";
}

std::string PalettizedStride(const OperationAt& at) {
  const Operation* decoder = WeightDecoder(at.op);
  const std::vector<int64_t> strides = IntsOf(at.op, "strides");
  return IsConv(at.op) && decoder && decoder->is("constexpr_lut_to_dense") && Largest(strides) > 2
             ? fmt::format("its weights are a palette and its strides are {}", Shown(strides))
             : "";
}

// --- numbers

std::string InfiniteConstant(const OperationAt& at) {
  if (!at.op.def->elementwise()) return "";
  for (size_t i = 0; i < at.op.args().size(); ++i)
    for (const Operand& operand : at.op.args()[i]) {
      const Tensor& constant = operand.constant();
      if (!constant || !IsFloat(constant.dtype()) || constant.size() > kLargestMask) continue;
      const Tensor::Range range = constant.range();
      if (std::isinf(range.low) || std::isinf(range.high))
        return fmt::format("constant {} contains an infinity",
                           at.op.def->canonical().params[i].name);
    }
  return "";
}

std::string OffsetSlice(const OperationAt& at) {
  if (!OneOf(at.op, {"slice_by_index", "slice_by_size", "split"})) return "";
  const Type& type = at.op.arg("x")[0].type();
  if (!IsFloat(type.dtype) || type.rank() == 0) return "";
  const size_t last = static_cast<size_t>(type.rank()) - 1;
  if (at.op.is("split")) {
    const std::vector<int64_t> axis = IntsOf(at.op, "axis");
    return !axis.empty() && OpContext::Axis(axis[0], type.rank()) == static_cast<int>(last)
               ? "it splits the last axis"
               : "";
  }
  const std::vector<int64_t> begin = IntsOf(at.op, "begin");
  return begin.size() > last && begin[last] != 0
             ? fmt::format("it starts at {} of the last axis", begin[last])
             : "";
}

std::string FusedAttentionMask(const OperationAt& at) {
  return at.op.is("scaled_dot_product_attention") && at.op.has("attn_mask") ? "it has a mask" : "";
}

std::string LongTopK(const OperationAt& at) {
  if (!at.op.is("topk")) return "";
  const int64_t longest = Largest(SizesOf(at.op.arg("x")[0].type(), at));
  return longest > 65536 ? fmt::format("it selects from {} elements", longest) : "";
}

// --- slow

// Returns the factor by which rows of the last axis grow when they are padded to 64 bytes.
double PaddingOf(const Type& type, const OperationAt& at) {
  const Dims dims = SizesOf(type, at);
  if (dims.empty() || dims.back() == 0) return 1;
  const int64_t bits = dims.back() * Bits(type.dtype), unit = 8 * kAlignment;
  return static_cast<double>((bits + unit - 1) / unit * unit) / static_cast<double>(bits);
}

std::string NarrowRows(const OperationAt& at) {
  for (const auto& result : at.op.results) {
    const Type& type = result->type;
    if (!type.is_tensor() || ElementsOf(type, at) < kLargeTensor) continue;
    if (const double factor = PaddingOf(type, at); factor >= kMuchPadding)
      return fmt::format(
          "the last axis of the result {} is padded to {} bytes: {:.3g} times the memory",
          Shown(SizesOf(type, at)), kAlignment, factor);
  }
  return "";
}

std::string LinearLayer(const OperationAt& at) {
  if (at.op.is("linear")) return Itself(at);
  return at.op.is("matmul") && (HasConstant(at.op, "y") || HasConstant(at.op, "x"))
             ? "it multiplies by a constant matrix"
             : "";
}

// Returns whether the operation multiplies two computed matrices for each of several heads.
bool IsPerHeadProduct(const OperationAt& at) {
  if (!at.op.is("matmul") || HasConstant(at.op, "x") || HasConstant(at.op, "y")) return false;
  const Dims dims = SizesOf(at.op.result()->type, at);
  return dims.size() == 4 && dims[1] > 1;
}

std::string HeadsTogether(const OperationAt& at) {
  if (at.op.is("scaled_dot_product_attention")) return Itself(at);
  return IsPerHeadProduct(at)
             ? fmt::format("one product computes {} heads", SizesOf(at.op.result()->type, at)[1])
             : "";
}

std::string UnfusedAttention(const OperationAt& at) {
  if (!at.op.is("softmax")) return "";
  const Value* x = at.op.value("x");
  for (int depth = 0; x && x->def && depth < 4; ++depth) {
    if (x->def->is("matmul"))
      return IsPerHeadProduct({*x->def, at.sizes, at.symbols, at.open, at.chip})
                 ? "it is attention, written as products and a softmax"
                 : "";
    x = x->def->def->Find("x") >= 0 ? x->def->value("x") : nullptr;
  }
  return "";
}

std::string SoftmaxOverRows(const OperationAt& at) {
  if (!at.op.is("softmax")) return "";
  const Type& type = at.op.arg("x")[0].type();
  const std::vector<int64_t> axis = IntsOf(at.op, "axis");
  if (axis.empty() || type.rank() != 4 || ElementsOf(type, at) < kLargeTensor) return "";
  const int at_axis = OpContext::Axis(axis[0], 4);
  return at_axis >= 2
             ? fmt::format("it normalises along axis {} of {}", at_axis, Shown(SizesOf(type, at)))
             : "";
}

std::string MovesLastAxis(const OperationAt& at) {
  const Operation& op = at.op;
  if (op.results.empty() || ElementsOf(op.result()->type, at) < kLargeTensor) return "";
  if (op.is("transpose")) {
    const std::vector<int64_t> perm = IntsOf(op, "perm");
    const int rank = static_cast<int>(perm.size());
    return rank > 0 && OpContext::Axis(perm.back(), rank) != rank - 1
               ? fmt::format("perm is {}", Shown(perm))
               : "";
  }
  if (op.def->moves != Moves::kShape || op.def->Find("x") < 0) return "";
  const Dims from = SizesOf(op.arg("x")[0].type(), at), to = SizesOf(op.result()->type, at);
  return !from.empty() && !to.empty() && from.back() != to.back()
             ? fmt::format("{} becomes {}", Shown(from), Shown(to))
             : "";
}

std::string ConvStride(const OperationAt& at) {
  const std::vector<int64_t> strides = IntsOf(at.op, "strides");
  if (!at.op.is("conv") || Largest(strides) <= 2) return "";
  bool unlike = false, odd = false;
  for (int64_t stride : strides) {
    odd = odd || !HasOnlyFactors2And3(stride) || (stride == 3 && strides.size() < 2);
    unlike = unlike || (stride != strides[0] && stride > 2 && strides[0] > 2);
  }
  return odd || unlike ? fmt::format("its strides are {}", Shown(strides)) : "";
}

std::string LargeKernel(const OperationAt& at) {
  const std::vector<int64_t> kernel = KernelOf(at.op);
  return IsConv(at.op) && Largest(kernel) >= 9 ? fmt::format("its kernel is {}", Shown(kernel))
                                               : "";
}

std::string LargeDilation(const OperationAt& at) {
  const std::vector<int64_t> dilations = IntsOf(at.op, "dilations");
  return at.op.is("conv") && Largest(dilations) > 3
             ? fmt::format("its dilations are {}", Shown(dilations))
             : "";
}

std::string PoolStride(const OperationAt& at) {
  if (!IsPool(at.op)) return "";
  const std::vector<int64_t> strides = IntsOf(at.op, "strides"), kernel = KernelOf(at.op);
  if (strides == kernel && Largest(strides) > 4) return "";  // one window: a global pool
  for (int64_t stride : strides)
    if (stride != 1 && stride != 2 && stride != 4)
      return fmt::format("its strides are {}", Shown(strides));
  return "";
}

std::string Embedding(const OperationAt& at) {
  if (!at.op.is("gather") || !HasConstant(at.op, "x")) return "";
  const Type& table = at.op.arg("x")[0].type();
  const double bytes = ElementsOf(table, at) * Bits(table.dtype) / 8;
  return bytes >= kLargeTable ? fmt::format("its table has {:.1f} MB", bytes / 1e6) : "";
}

std::string UpcastActivation(const OperationAt& at) {
  return OneOf(at.op, {"silu", "tanh"}) ? Itself(at) : "";
}

std::string ListedShapesOfNorm(const OperationAt& at) {
  if (!at.op.is("layer_norm")) return "";
  for (const Dim& dim : at.op.arg("x")[0].type().shape)
    if (dim.HasSymbol([&](const std::string& symbol) { return IsListed(symbol, at); }))
      return fmt::format("x has shape {}", ToString(at.op.arg("x")[0].type().shape));
  return "";
}

std::string PointwiseConv(const OperationAt& at) {
  if (!at.op.is("conv") || Largest(KernelOf(at.op)) != 1) return "";
  const Dims dims = SizesOf(at.op.arg("x")[0].type(), at);
  return dims.size() == 4 && dims[2] == 1 ? "it is a linear layer, written as a convolution" : "";
}

// --- functions and packages

std::string Fragments(const Placement& placement, const Chip&) {
  return placement.eligible_segments > 1
             ? fmt::format("{} segments, with {} transfers between units",
                           placement.eligible_segments, placement.transfers)
             : "";
}

std::string LargePackage(const Program& program, int64_t most) {
  uint64_t bytes = 0;
  for (const Weight& weight : WeightsOf(program)) bytes += weight.bytes;
  return static_cast<int64_t>(bytes) > most
             ? fmt::format("the weights have {:.2f} GB", static_cast<double>(bytes) / 1e9)
             : "";
}

bool IsPhone(const Chip& chip) { return chip.name[0] == 'A'; }

std::string Above1GB(const Program& program, const Chip& chip) {
  return IsPhone(chip) ? LargePackage(program, int64_t{1} << 30) : "";
}

std::string Above2GB(const Program& program, const Chip& chip) {
  return IsPhone(chip) ? "" : LargePackage(program, int64_t{2} << 30);
}

// --- the table

constexpr Severity kCannotRun = Severity::kCannotRun, kInaccurate = Severity::kInaccurate,
                   kSlow = Severity::kSlow, kNote = Severity::kNote;
constexpr Standing kApple = Standing::kApple, kCode = Standing::kCode,
                   kMeasured = Standing::kMeasured, kClaim = Standing::kClaim;

// Generations: 14 is A14 and M1, 15 is A15 and M2, 16 is A16 and M3, 17 is A17 Pro and M4 (Chip).
//
// Three kinds of evidence are not equal. What Core ML placed on a device (MLComputePlan) counts more
// than what a private interface compiled, because Core ML declines some of the latter; both count
// more than lists from the first years of the Neural Engine, which limit their rules to old chips.
// "aned" below marks the private interface. sbryngelson/ANEForge and sbryngelson/ane-guide have one
// author and count once; they name compiler families (H13 for M1), which are not A-series numbers.
constexpr PlacementRule kRules[] = {
    // --- types and shapes
    {{"fp32", kCannotRun, "an operand or result is a float wider than fp16", kApple,
      "apple/coreai-models, neural_engine_rules.md: \"fp32 falls back to GPU/CPU\", literals "
      "included",
      "compile with --precision fp16, and with --io fp16 (from iOS16) if the operation converts an "
      "input or output; the manifest's decisions say why an operation stays in fp32"},
     kAne,
     0,
     0,
     Fp32},
    {{"wide-integer", kCannotRun, "an operand or result is an integer of more than 16 bits", kApple,
      "apple/coreai-models, neural_engine_rules.md: fp16, int8 and int16 are the supported types; "
      "sbryngelson/ANEForge (aned) rejects int32 tensors",
      "compute indices and masks outside the model and pass them as fp16, or as int16 from iOS17"},
     kAne,
     0,
     0,
     Integers},
    {{"rank", kCannotRun, "an operand or result has more than five dimensions", kApple,
      "apple/coreai-models, neural_engine_rules.md: \"Max tensor rank: 5\"; onnxruntime#14212 "
      "failed when loading",
      "drop dimensions of 1, or split the reshape and transpose into steps with five dimensions; "
      "mlc compile does both where it can"},
     kAne,
     0,
     0,
     Rank,
     nullptr,
     nullptr,
     "lower-rank"},
    // Apple's flexible-inputs.md says that ranges may run there from iOS17.4; coremltools#2370 and
    // FluidInference/FluidAudio measured that none does, and Apple's newer text asks for static
    // shapes.
    {{"open-shape", kCannotRun, "a dimension is a range of sizes", kApple,
      "apple/coreai-models, neural_engine_rules.md: \"Fully static shapes\"; coremltools#1764, "
      "#2370. Conflict: coremltools' flexible-inputs.md allows ranges from iOS17.4",
      "fix the size (--dim SYMBOL=N) or list the sizes that are needed (--dim SYMBOL=A,B,C)"},
     kAne,
     0,
     0,
     OpenShape},
    {{"data-dependent-shape", kCannotRun, "a dimension depends on the data", kApple,
      "apple/coreai-models, neural_engine_rules.md: \"Fully static shapes\"",
      "return a tensor of the largest size with a count or a mask, or compute this part in the "
      "app"},
     kAne,
     0,
     0,
     DataDependentShape},
    {{"zero-size", kCannotRun, "an operand or result has no elements", kMeasured,
      "sbryngelson/ane-guide, 04-capability-surface.md (aned, M1)",
      "remove the empty tensor from the source model, or fix the size that makes it empty"},
     kAne,
     0,
     0,
     ZeroSized},
    // Apple's compiler states both limits. continue-revolution/sd-webui-animatediff#235 saw 4096 for
    // batches of one addition in 2023; later logs do not.
    {{"long-axis", kCannotRun,
      "an axis has more than 16384 elements (batches and channels of tensors with four dimensions: "
      "65536)",
      kMeasured,
      "AUTOMATIC1111/stable-diffusion-webui#13527 (Apple's compiler on M1 Max: N, C up to 65536, "
      "D, H, W up to 16384); onnxruntime's Core ML provider (16384)",
      "split the axis, or move it to the channels of a tensor with four dimensions"},
     kAne,
     0,
     16,
     LongAxis},
    {{"very-long-axis", kCannotRun, "an axis has more than 65536 elements", kCode,
      "sbryngelson/ane-guide, a-op-device-matrix.md (aned, compiler tables of M4 and M5)",
      "split the axis"},
     kAne,
     17,
     0,
     VeryLongAxis},
    // --- operators
    {{"recurrent", kCannotRun, "a recurrent layer", kApple,
      "coremltools#1780 (Apple staff); FluidInference/FluidAudio, ANE_Candidates.md (M5)",
      "run this part on the CPU as a model of its own, or replace the layer by a convolution or "
      "attention and train again"},
     kAne,
     0,
     0,
     IsNamed<kRecurrent>},
    {{"control-flow", kCannotRun, "a loop, a branch or a list", kMeasured,
      "coremltools#2208, #2008; sbryngelson/ANEForge (aned)",
      "unroll the loop in the source model, or call the model once for each step"},
     kAne | kGpu,
     0,
     0,
     ControlFlow},
    // A comment in coremltools' torch frontend says that gather resides on the Neural Engine, and
    // the two aned sources contradict each other. What Core ML planned on three devices decides.
    {{"gather", kCannotRun, "a lookup with indices that are not constant", kMeasured,
      "roboflow/rf-detr#1495 (M3 Pro), john-rocky/CoreML-LLM EXPERIMENTS.md (iPhone 17 Pro), "
      "FluidInference/FluidAudio (M5): planned on the CPU. Conflict: coremltools, "
      "frontend/torch/ops.py",
      "look up embeddings in a model of their own or in the app, and pass the rows"},
     kAne,
     0,
     0,
     Gather},
    {{"scatter", kCannotRun, "writes at computed indices", kApple,
      "coremltools, frontend/torch/ops.py: scatter and scatter_nd \"fall off ANE\"; "
      "sbryngelson/ANEForge (aned)",
      "write slices at constant positions, or select with a mask: x * (1 - m) + update * m"},
     kAne,
     0,
     0,
     IsNamed<kScatters>},
    {{"selection", kCannotRun, "sorts, or finds the position of the largest elements", kMeasured,
      "roboflow/rf-detr#1495 (M3 Pro): topk planned on the CPU; john-rocky/CoreML-LLM "
      "EXPERIMENTS.md (iPhone 17 Pro): reduce_argmax on the CPU. Conflict: sbryngelson/ANEForge "
      "(aned) runs topk from M2",
      "return the scores, and select in the app"},
     kAne,
     0,
     0,
     IsNamed<kSelections>},
    {{"box-selection", kCannotRun, "non-maximum suppression", kMeasured,
      "sbryngelson/ane-guide, a-op-device-matrix.md (aned)",
      "return boxes and scores, and suppress in the app or in a second model"},
     kAne,
     0,
     0,
     IsNamed<kBoxes>},
    {{"cumulative-sum", kCannotRun, "cumsum", kMeasured,
      "john-rocky/CoreML-LLM, QWEN35_ROADMAP.md: 1088 of 1089 operations planned on the Neural "
      "Engine, all but cumsum",
      "multiply by a constant triangular matrix of ones"},
     kAne,
     0,
     0,
     IsNamed<kCumulative>},
    {{"no-kernel", kCannotRun, "an operator for which the Neural Engine has no kernel", kMeasured,
      "sbryngelson/ANEForge, full_mil_vocabulary_sweep.json (aned)",
      "compute it in the app, or from arithmetic, slices and concatenations"},
     kAne,
     0,
     0,
     IsNamed<kUnknown>},
    {{"no-function", kCannotRun, "a function that the Neural Engine does not compute", kMeasured,
      "sbryngelson/ANEForge, full_mil_vocabulary_sweep.json (aned); jafreck/ironmill, "
      "ane-op-support-matrix.md",
      "express it by exp, log, sqrt and divisions, or by a table, within the range that occurs"},
     kAne,
     0,
     0,
     IsNamed<kFunctions>},
    {{"logic", kCannotRun, "a logical operation on two booleans", kMeasured,
      "sbryngelson/ANEForge (aned), jafreck/ironmill: rejected, although comparisons and select "
      "run",
      "multiply numbers that are 0 or 1 (and), or take their maximum (or)"},
     kAne,
     0,
     0,
     IsNamed<kLogic>},
    {{"random", kCannotRun, "draws random numbers", kMeasured,
      "sbryngelson/ANEForge, full_mil_vocabulary_sweep.json (aned)",
      "pass the random numbers as an input"},
     kAne,
     0,
     0,
     Random},
    {{"sine", kCannotRun, "sin or cos", kMeasured,
      "sbryngelson/ane-guide, a-op-device-matrix.md (aned, M1 and M2); jafreck/ironmill",
      "pass sines and cosines as inputs, or as a table if the positions are constant"},
     kAne,
     0,
     15,
     IsNamed<kAngles>},
    {{"sampling", kCannotRun, "samples at computed positions, or counts", kMeasured,
      "sbryngelson/ane-guide, a-op-device-matrix.md (aned): M1 has no unit for it",
      "resize by a constant factor instead, or sample in the app"},
     kAne,
     0,
     14,
     IsNamed<kSampling>},
    {{"product-rank", kCannotRun, "a matrix product of tensors with five dimensions", kMeasured,
      "john-rocky/CoreML-LLM: five dimensions on the CPU, three on the Neural Engine; "
      "sbryngelson/ane-guide (aned)",
      "reshape to at most four dimensions around the product"},
     kAne,
     0,
     0,
     Product5d},
    // sbryngelson/ANEForge's later documents call three-dimensional convolutions native, but its
    // own probe of each device fails.
    {{"conv-3d", kCannotRun, "a three-dimensional convolution", kMeasured,
      "sbryngelson/ane-guide, 04-capability-surface.md (aned: fails for each device). Conflict: "
      "sbryngelson/ANEForge, op-catalog.md",
      "use one two-dimensional convolution for each step of the depth, and add the results"},
     kAne,
     0,
     0,
     Conv3d},
    {{"kernel-width", kCannotRun, "a convolution kernel is more than 13 wide", kMeasured,
      "sbryngelson/ane-guide, 04-capability-surface.md (aned, M1)",
      "split the kernel into several, or exchange height and width: heights up to 29 run"},
     kAne,
     0,
     17,
     KernelWider13},
    {{"kernel-width-15", kCannotRun, "a convolution kernel is more than 15 wide", kMeasured,
      "sbryngelson/ANEForge, cross-chip.md (aned, M5)",
      "split the kernel into several, or exchange height and width: heights up to 32 run"},
     kAne,
     18,
     0,
     KernelWider15},
    {{"transposed-dilation", kCannotRun, "a transposed convolution with dilations", kCode,
      "pkhairkh/MILLer (messages of Apple's compiler in macOS 26, second hand)",
      "insert zeros into the kernel instead"},
     kAne,
     0,
     0,
     DilatedTransposedConv},
    {{"pool-window-13", kCannotRun, "a pooling window larger than 13", kMeasured,
      "hollance/neural-engine#2 (log of a system of 2020)",
      "pool twice with smaller windows, or reduce over whole axes"},
     kAne,
     0,
     13,
     PoolWindow13},
    {{"pool-window-29", kCannotRun, "a pooling window larger than 29", kMeasured,
      "sbryngelson/ane-guide, a-op-device-matrix.md (aned, M1)",
      "pool twice with smaller windows, or reduce over whole axes"},
     kAne,
     14,
     14,
     PoolWindow29},
    {{"pool-window-31", kCannotRun, "a pooling window larger than 31", kMeasured,
      "sbryngelson/ane-guide, a-op-device-matrix.md (aned, from M2)",
      "pool twice with smaller windows, or reduce over whole axes"},
     kAne,
     15,
     0,
     PoolWindow31},
    {{"old-pool-stride", kCannotRun, "a pooling stride larger than 2", kMeasured,
      "hollance/neural-engine#2 (log of a system of 2020). Conflict: Apple's text of 2026 "
      "recommends strides of 2 or 4, for current chips",
      "pool with stride 1 or 2, and slice"},
     kAne,
     0,
     13,
     OldPoolStride},
    {{"old-upsampling", kCannotRun, "upsampling by a factor above 2", kMeasured,
      "hollance/neural-engine#2 (log of a system of 2020)", "upsample several times by 2"},
     kAne,
     0,
     13,
     OldUpsampling},
    {{"channel-padding", kCannotRun, "pads batches or channels", kCode,
      "pkhairkh/MILLer (messages of Apple's compiler in macOS 26, second hand)",
      "concatenate a constant instead"},
     kAne,
     0,
     0,
     PadsChannels},
    {{"reflection", kCannotRun, "pads by reflection", kMeasured,
      "sbryngelson/ane-guide, 17-model-design-rules.md (aned): M1 has no unit for it",
      "concatenate slices instead"},
     kAne,
     0,
     14,
     Mirrors},
    {{"response-norm", kCannotRun, "local response normalisation of more than 15 channels",
      kMeasured, "sbryngelson/ANEForge, op-quirks.md (aned)",
      "divide by a power of an average pool of squares over channels, as a convolution"},
     kAne,
     0,
     0,
     WideResponseNorm},
    // Apple's rules say that no fused form exists. On M4, Core ML takes large ones all the same.
    {{"small-fused-attention", kCannotRun,
      "scaled_dot_product_attention with a query of at most 1048576 elements", kMeasured,
      "vx-lang/Vx#437 (M4). Conflict: apple/coreai-models, neural_engine_rules.md: \"there is no "
      "fused SDPA path\" of any size",
      "compile for iOS17 or older, where attention consists of products and a softmax"},
     kAne,
     0,
     0,
     SmallFusedAttention},
    {{"many-states", kCannotRun, "a function with more than two states", kMeasured,
      "john-rocky/CoreML-LLM, MLSTATE_PATTERN.md (iPhone 17 Pro): prediction fails, although the "
      "plan names the Neural Engine",
      "store keys and values of all layers in one state"},
     kAne,
     0,
     0,
     ManyStates},
    {{"state-width", kCannotRun, "a state whose last dimension is not a multiple of 32", kMeasured,
      "coremltools#2631", "pad the last dimension of the state to a multiple of 32"},
     kAne,
     0,
     0,
     StateWidth},
    // --- weights
    {{"table-blocks", kCannotRun, "weights with lookup tables for blocks of rows and columns",
      kMeasured, "apple/coreai-models#279 (error -14)",
      "use tables for groups of output channels only"},
     kAne,
     0,
     0,
     GroupedTables},
    {{"int4-weights", kCannotRun, "weights of four bits with a scale", kMeasured,
      "apple/coreai-models#55, #205: no region on the Neural Engine",
      "use a palette of 16 values for groups of output channels"},
     kAne,
     0,
     0,
     FourBitWeights},
    {{"block-scales", kInaccurate, "weights with a scale for each block", kMeasured,
      "apple/coreai-models#279 (cosine 0.367 on iPhone 16 Pro Max); coremltools, "
      "opt-quantization-perf.md: blocks are for the GPU, channels for the Neural Engine",
      "use a scale for each channel, or a palette for groups of output channels"},
     kAne,
     0,
     0,
     BlockwiseWeights},
    {{"folded-int8", kNote, "int8 weights are expanded to fp16 when the model is loaded", kMeasured,
      "sbryngelson/ane-guide, a-op-device-matrix.md (aned, M1)",
      "a palette of 64 or 16 values stays compressed on each Neural Engine"},
     kAne,
     0,
     14,
     AffineWeights},
    {{"int8-activations", kSlow, "quantised activations", kApple,
      "coremltools, opt-quantization-perf.md: faster on A17 Pro and M4, slower where the unit "
      "expands them",
      "quantise the weights only"},
     kAne,
     0,
     16,
     QuantizedActivations},
    {{"palette-stride", kSlow, "a convolution with a palette and a stride above 2", kApple,
      "apple/coreai-models, neural_engine_rules.md: \"With palettized kernels ... use up to 2\"",
      "leave the weights of this layer in fp16"},
     kAne,
     0,
     0,
     PalettizedStride},
    {{"cpu-palette", kInaccurate, "weights with at most 16 different values in one table",
      kMeasured, "coremltools#2716 (cosine 0.03 on the CPU)",
      "use tables for groups of channels, or run on another unit"},
     kCpu,
     0,
     0,
     PerTensorPalette},
    {{"expanded-weights", kNote, "compressed weights are expanded when the model is loaded", kApple,
      "coremltools, opt-palettization-perf.md and opt-quantization-perf.md",
      "on the CPU, compression makes the package smaller, not faster"},
     kCpu,
     0,
     0,
     CompressedWeights},
    {{"gpu-int8", kInaccurate, "weights of eight bits with a scale", kMeasured,
      "FluidInference/mobius#73: MPSGraph ended with \"pass manager failed\"",
      "use a palette of 64 values on the GPU"},
     kGpu,
     0,
     0,
     EightBitWeights},
    // --- numbers
    {{"infinity", kInaccurate, "a constant contains an infinity", kApple,
      "apple/coreai-models, common_issues.md: \"does not handle IEEE -inf correctly in softmax\"",
      "mask with -40000, as the pass safe-masks does for attention"},
     kAne,
     0,
     0,
     InfiniteConstant,
     nullptr,
     nullptr,
     "safe-masks"},
    {{"offset-slice", kInaccurate,
      "a slice that does not start at the beginning of the last axis: magnitudes above 4094 become "
      "infinite",
      kMeasured, "sbryngelson/ane-guide, 19-pitfalls-and-limits.md (aned, M1 and M2; exact on M5)",
      "slice another axis, or make sure that the values stay below 4094"},
     kAne,
     0,
     15,
     OffsetSlice},
    {{"unshifted-exponential", kInaccurate,
      "computes an exponential that overflows fp16 for operands above 10", kMeasured,
      "coremltools#2690 (reduce_log_sum_exp), #2687 (softplus, M4)",
      "subtract the maximum first, as the pass safe-logarithms does"},
     kAne,
     0,
     0,
     IsNamed<kUnshifted>,
     nullptr,
     nullptr,
     "safe-logarithms"},
    {{"fused-mask", kInaccurate, "scaled_dot_product_attention with a mask", kClaim,
      "maderix/ANE, README (M4): the mask is ignored",
      "compile for iOS17 or older, where attention consists of products and a softmax"},
     kAne,
     0,
     0,
     FusedAttentionMask},
    {{"long-top-k", kInaccurate, "selects from more than 65536 elements", kMeasured,
      "john-rocky/CoreML-LLM, MTP_PATH_C_FINDINGS.md: indices off by multiples of 65536",
      "select from parts of the axis, then from their results"},
     kAne | kGpu | kCpu,
     0,
     0,
     LongTopK},
    // --- speed
    {{"narrow-rows", kSlow, "the last axis of a large tensor is short, and is padded to 64 bytes",
      kApple, "apple/coreai-models, neural_engine_rules.md: \"Tensor memory alignment\"",
      "move a longer axis to the end in the source model"},
     kAne,
     0,
     0,
     NarrowRows},
    {{"linear-layer", kSlow, "a linear layer that is not a convolution", kApple,
      "apple/coreai-models, neural_engine_rules.md: \"Conv2d instead of Linear\"; measured gains "
      "of "
      "10 to 22 %",
      "write it as a 1x1 convolution of (batch, channels, 1, sequence) in the source model"},
     kAne,
     0,
     0,
     LinearLayer},
    {{"heads-together", kSlow, "attention that computes several heads at once", kApple,
      "apple/coreai-models, neural_engine_rules.md: \"Per-head attention\"; "
      "apple/ml-ane-transformers",
      "compute each head by itself in the source model"},
     kAne,
     0,
     0,
     HeadsTogether},
    {{"row-softmax", kSlow, "a large softmax along a spatial axis", kApple,
      "apple/coreai-models, neural_engine_rules.md: \"Softmax placement\"",
      "normalise along the channels: scores of shape (batch, keys, 1, queries)"},
     kAne,
     0,
     0,
     SoftmaxOverRows},
    {{"moved-rows", kSlow, "a reshape or transpose changes the last axis of a large tensor", kApple,
      "apple/coreai-models, neural_engine_rules.md: \"Avoid unnecessary memory copies\"",
      "keep one layout from end to end in the source model"},
     kAne,
     0,
     0,
     MovesLastAxis},
    {{"conv-stride", kSlow, "a convolution stride with prime factors other than 2 and 3", kApple,
      "apple/coreai-models, neural_engine_rules.md: \"Convolution stride optimization\"",
      "use 2, 3, 4, 6, 8, 9, 12, 16, 24 or 32, equal in both directions, and train again"},
     kAne,
     0,
     0,
     ConvStride},
    {{"large-kernel", kSlow, "a convolution kernel of nine or more", kApple,
      "apple/coreai-models, neural_engine_rules.md: \"Large kernel decomposition\"",
      "use several smaller kernels (two of 5 cover 9), and train again"},
     kAne,
     0,
     0,
     LargeKernel},
    {{"large-dilation", kSlow, "a dilation above 3", kApple,
      "apple/coreai-models, neural_engine_rules.md: \"Dilated convolution factorization\"; "
      "hollance/neural-engine lists dilated convolutions as unsupported, in 2020",
      "use a chain of convolutions with dilations of 2 and 3, and train again"},
     kAne,
     0,
     0,
     LargeDilation},
    {{"pool-stride", kSlow, "a pooling stride other than 1, 2 and 4", kApple,
      "apple/coreai-models, neural_engine_rules.md: \"Pooling stride\"",
      "use 2 or 4, and train again"},
     kAne,
     14,
     0,
     PoolStride},
    {{"embedding", kSlow, "a lookup in a table of 1 MB or more", kApple,
      "apple/coreai-models, neural_engine_rules.md: \"Model decomposition\"; "
      "apple/ml-ane-transformers",
      "compile the lookup as a model of its own for the CPU"},
     kAne,
     0,
     0,
     Embedding},
    {{"listed-norm", kSlow, "layer_norm of a listed shape", kMeasured,
      "coremltools#1909: 175 ms, against 20 ms with a fixed shape",
      "compile one function or package for each size"},
     kAne,
     0,
     0,
     ListedShapesOfNorm},
    {{"upcast-activation", kNote, "silu or tanh, which Core AI computes in fp32", kApple,
      "apple/coreai-models, common_issues.md (Core AI, not Core ML)",
      "write silu as x * sigmoid(x), and tanh as 2 * sigmoid(2 x) - 1"},
     kAne,
     0,
     0,
     UpcastActivation},
    {{"unfused-attention", kSlow, "attention that is not scaled_dot_product_attention", kApple,
      "apple/coreai-models, gpu_rules.md: \"Native SDPA\"",
      "write it as one attention operator in the source model, and compile for iOS18 or newer"},
     kGpu,
     0,
     0,
     UnfusedAttention},
    {{"gpu-pointwise", kSlow, "a linear layer that is written as a convolution", kClaim,
      "erwinzhang7 (vision transformers: the Neural Engine gains 10 to 13 %, the GPU loses)",
      "write it as a linear layer in the source model"},
     kGpu,
     0,
     0,
     PointwiseConv},
    {{"segments", kSlow, "the Neural Engine is entered more than once", kMeasured,
      "arXiv 2606.22283: 0.09 to 0.23 ms for each entry; apple/coreai-models, "
      "neural_engine_rules.md: \"Neural Engine residency\"",
      "remove the operations between the segments, those with the least work first"},
     kAne,
     0,
     0,
     nullptr,
     Fragments},
    {{"package-1gb", kCannotRun, "a package of more than 1 GB, on a phone or tablet", kApple,
      "coremltools, mlmodel-utilities.md: parts of at most 1 GB. Conflict: john-rocky/CoreML-LLM "
      "ran up to 1.4 GB on iPhone 17 Pro",
      "compress the weights, or divide the model"},
     kAne,
     0,
     0,
     nullptr,
     nullptr,
     Above1GB},
    {{"package-2gb", kCannotRun, "a package of more than 2 GB, on a Mac", kClaim,
      "Anemll and 0seba, READMEs", "compress the weights, or divide the model"},
     kAne,
     0,
     0,
     nullptr,
     nullptr,
     Above2GB},
};

}  // namespace

bool PlacementRule::AppliesTo(Unit unit, const Chip& chip) const {
  return (units & static_cast<uint8_t>(unit)) != 0 && chip.generation >= oldest &&
         (newest == 0 || chip.generation <= newest);
}

std::span<const PlacementRule> PlacementRules() { return kRules; }

std::string ItIs(const Operation& op) { return fmt::format("it is {}", op.def->name); }

namespace {

std::string UnitsText(const PlacementRule& rule) {
  std::string text;
  for (Unit unit : {Unit::kNeuralEngine, Unit::kGpu, Unit::kCpu})
    if (rule.units & static_cast<uint8_t>(unit))
      text += fmt::format("{}{}", text.empty() ? "" : ", ", Name(unit));
  return text;
}

std::string ChipsText(const PlacementRule& rule) {
  if (rule.oldest == 0 && rule.newest == 0) return "all";
  std::vector<std::string_view> names;
  for (const Chip& chip : Chips())
    if (chip.generation >= rule.oldest && (rule.newest == 0 || chip.generation <= rule.newest))
      names.push_back(chip.name);
  return fmt::format("{}", fmt::join(names, ", "));
}

}  // namespace

std::string PlacementRulesPage() {
  std::string page =
      "# Rules of placement\n\n"
      "What the compute units of Apple silicon are known to run, to run slowly, or not to run. "
      "`mlc explain` applies these rules; this page is generated from lib/analysis/"
      "placement_rules.cpp.\n\n"
      "Standing: \"Apple\" is text published by Apple, \"source code\" was read in published code, "
      "\"measured\" was measured by others on devices, and \"claim\" is a statement without "
      "figures. \"aned\" marks experiments that bypass Core ML.\n\n"
      "| rule | severity | meaning | units | chips | standing | source | fix |\n"
      "|---|---|---|---|---|---|---|---|\n";
  for (const PlacementRule& rule : kRules)
    page += fmt::format("| {} | {} | {} | {} | {} | {} | {} | {} |\n", rule.id, Name(rule.severity),
                        rule.meaning, UnitsText(rule), ChipsText(rule), Name(rule.standing),
                        rule.source, rule.fix);
  return page;
}

}  // namespace mlc::analysis

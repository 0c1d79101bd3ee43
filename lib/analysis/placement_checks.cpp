#include "lib/analysis/placement_checks.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "lib/analysis/weight_bytes.h"

namespace mlc::analysis {

namespace {

constexpr int64_t kAlignment = 64;             // bytes to which rows of the last axis are padded
constexpr double kMuchPadding = 1.5;           // growth of a tensor that is worth mentioning
constexpr int64_t kLargeTensor = 1 << 16;      // elements from which the layout matters
constexpr int64_t kLargeTable = 1 << 20;       // bytes of an embedding table worth moving out
constexpr int64_t kLargestMask = 1 << 22;      // elements; larger constants are weights
constexpr int64_t kLeastFusedQuery = 1 << 20;  // elements up to which fused attention is not taken

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

// Returns whether the operation converts an input or output of the function.
bool ConvertsPort(const Operation& op) {
  if (!op.is("cast")) return false;
  const Value* x = op.value("x");
  return (x && !x->def) || op.result()->is_output();
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

std::string WideKernel(const OperationAt& at, int64_t most) {
  const std::vector<int64_t> kernel = KernelOf(at.op);
  return IsConv(at.op) && !kernel.empty() && kernel.back() > most
             ? fmt::format("the kernel is {} wide, more than {}", kernel.back(), most)
             : "";
}

std::string PoolWindow(const OperationAt& at, int64_t most) {
  const std::vector<int64_t> kernel = KernelOf(at.op);
  return IsPool(at.op) && Largest(kernel) > most
             ? fmt::format("its window is {}, and {} is the maximum", Shown(kernel), most)
             : "";
}

bool UsesStates(const Operation& op) {
  return op.def->effect == Effect::kReadsState || op.def->effect == Effect::kWritesState;
}

// Returns the type of the state that the operation reads or writes.
const Type* StateOf(const Operation& op) {
  if (!UsesStates(op)) return nullptr;
  for (const Operands& operands : op.args())
    for (const Operand& operand : operands)
      if (operand.type().kind == Type::Kind::kState) return &operand.type().elements[0];
  return nullptr;
}

// Returns the factor by which rows of the last axis grow when they are padded to 64 bytes.
double PaddingOf(const Type& type, const OperationAt& at) {
  const Dims dims = SizesOf(type, at);
  if (dims.empty() || dims.back() == 0) return 1;
  const int64_t bits = dims.back() * Bits(type.dtype), unit = 8 * kAlignment;
  return static_cast<double>((bits + unit - 1) / unit * unit) / static_cast<double>(bits);
}

// Returns whether the operation multiplies two computed matrices for each of several heads.
bool IsPerHeadProduct(const OperationAt& at) {
  if (!at.op.is("matmul") || HasConstant(at.op, "x") || HasConstant(at.op, "y")) return false;
  const Dims dims = SizesOf(at.op.result()->type, at);
  return dims.size() == 4 && dims[1] > 1;
}

std::string LargePackage(const Program& program, int64_t most) {
  uint64_t bytes = 0;
  for (const Weight& weight : WeightsOf(program)) bytes += weight.bytes;
  return static_cast<int64_t>(bytes) > most
             ? fmt::format("the weights have {:.2f} GB", static_cast<double>(bytes) / 1e9)
             : "";
}

bool IsPhone(const Chip& chip) { return chip.name[0] == 'A'; }

}  // namespace

std::string PortCast(const OperationAt& at) {
  const DType from = at.op.is("cast") ? at.op.arg("x")[0].type().dtype : DType::kNone;
  return ConvertsPort(at.op) && (from == DType::kFp32 || at.op.result()->type.dtype == DType::kFp32)
             ? fmt::format("it converts {} to {}", Name(from), Name(at.op.result()->type.dtype))
             : "";
}

std::string Fp32(const OperationAt& at) {
  const Operation& op = at.op;
  if (ConvertsPort(op)) return "";
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

std::string OpenShape(const OperationAt& at) {
  return WithSymbol(
      at, [&](const std::string& symbol) { return IsOpen(symbol, at) && !IsListed(symbol, at); });
}

std::string DataDependentShape(const OperationAt& at) {
  return WithSymbol(at, [&](const std::string& symbol) { return !IsOpen(symbol, at); });
}

std::string LongAxis(const OperationAt& at) { return AxisAbove(at, 16384, 65536); }
std::string VeryLongAxis(const OperationAt& at) { return AxisAbove(at, 65536, 65536); }

// A size that is 0 only at the examined sizes is not empty otherwise.
std::string ZeroSized(const OperationAt& at) {
  return FirstOf(at.op, [&](std::string_view what, const Type& type) {
    return std::ranges::find(type.shape, Dim(0)) != type.shape.end()
               ? fmt::format("{} has shape {}", what, ToString(type.shape))
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

std::string KernelWider13(const OperationAt& at) { return WideKernel(at, 13); }

std::string KernelWider15(const OperationAt& at) { return WideKernel(at, 15); }

std::string DilatedTransposedConv(const OperationAt& at) {
  return at.op.is("conv_transpose") && Largest(IntsOf(at.op, "dilations")) > 1
             ? fmt::format("its dilations are {}", Shown(IntsOf(at.op, "dilations")))
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

std::string ManyStates(const OperationAt& at) {
  const size_t states = at.op.block->function->states.size();
  return UsesStates(at.op) && states > 2 ? fmt::format("the function has {} states", states) : "";
}

std::string StateWidth(const OperationAt& at) {
  const Type* state = StateOf(at.op);
  if (!state || state->rank() == 0) return "";
  const int64_t width = SizeOf(state->shape.back(), at);
  return width % 32 != 0 ? fmt::format("the last dimension of the state has {} elements", width)
                         : "";
}

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

std::string NarrowRows(const OperationAt& at) {
  for (const auto& result : at.op.results) {
    const Type& type = result->type;
    if (!type.is_tensor() || ElementsOf(type, at) < kLargeTensor) continue;
    if (const double factor = PaddingOf(type, at); factor >= kMuchPadding)
      return fmt::format("rows of {} elements ({}) take {:.3g} times the memory",
                         SizesOf(type, at).back(), Shown(SizesOf(type, at)), factor);
  }
  return "";
}

std::string LinearLayer(const OperationAt& at) {
  if (at.op.is("linear")) return Itself(at);
  return at.op.is("matmul") && (HasConstant(at.op, "y") || HasConstant(at.op, "x"))
             ? "it multiplies by a constant matrix"
             : "";
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

std::string Fragments(const Placement& placement, const Chip&) {
  return placement.eligible_segments > 1
             ? fmt::format("{} segments, with {} transfers between units",
                           placement.eligible_segments, placement.transfers)
             : "";
}

std::string Above1GB(const Program& program, const Chip& chip) {
  return IsPhone(chip) ? LargePackage(program, int64_t{1} << 30) : "";
}

std::string Above2GB(const Program& program, const Chip& chip) {
  return IsPhone(chip) ? "" : LargePackage(program, int64_t{2} << 30);
}

}  // namespace mlc::analysis

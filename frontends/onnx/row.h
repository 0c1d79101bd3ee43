// frontends/onnx/row.h - one row of the table of ONNX operators, as the family files write it.
//
//   {"Abs", "abs(x)"}                    the MIL operator, and its parameters in the order of the
//                                        ONNX inputs; the ONNX operator has no attributes
//   {"Clip", ClipAttributes, 1, 10},
//   {"Clip", Clip, 11}                   a handler, and the opset versions (inclusive) that it
//                                        implements
//   {"FusedConv", FusedConv, 1, 0, "com.microsoft"}
//
// Rows of one name have disjoint version ranges. `mlc ops --frontend onnx` and OPERATORS.md print
// this table. By default a row is direct when it names a MIL operator and decomposed when it has a
// handler. These functions override that:
//
//   NodeRow("Relu", Relu).Direct()           one MIL operation with other arguments
//   NodeRow("Dropout", Dropout).Folded()     no operation remains at run time
//   NodeRow("Tile", Tile).When("...")        supported under this condition, which the handler checks
//   NodeRow("Unique", Unique).Never("...")   not expressible in Core ML; the handler folds constants
//   NodeRow("StringSplit", 20).Never("...")  not expressible in Core ML; always refused
#pragma once

#include <span>

#include "frontends/onnx/node.h"

namespace mlc::onnx {

using Handler = void (*)(Node&);

enum class Class { kDirect, kDecomposed, kFolded, kConditional, kImpossible };

struct NodeRow {
  std::string_view name;
  std::string_view same;
  Handler handler = nullptr;
  int since = 1, until = 0;      // 0: still valid
  std::string_view domain = "";  // "" is ai.onnx
  Class kind = Class::kDecomposed;
  std::string_view condition = "";  // the condition, or why the operator is impossible

  constexpr NodeRow(std::string_view n, const char* s, int from = 1, int to = 0,
                    std::string_view d = "")
      : name(n), same(s), since(from), until(to), domain(d), kind(Class::kDirect) {}
  constexpr NodeRow(std::string_view n, Handler h, int from = 1, int to = 0,
                    std::string_view d = "")
      : name(n), handler(h), since(from), until(to), domain(d) {}
  constexpr NodeRow(std::string_view n, int from) : name(n), since(from) {}

  constexpr NodeRow Direct() const { return As(Class::kDirect, condition); }
  constexpr NodeRow Folded() const { return As(Class::kFolded, condition); }
  constexpr NodeRow When(std::string_view text) const { return As(Class::kConditional, text); }
  constexpr NodeRow Never(std::string_view text) const { return As(Class::kImpossible, text); }

 private:
  constexpr NodeRow As(Class c, std::string_view text) const {
    NodeRow row = *this;
    row.kind = c;
    row.condition = text;
    return row;
  }
};

// The operator families; each is one file of ops/. rows.cpp joins them.
std::span<const NodeRow> ActivationRows();  // activations.cpp
std::span<const NodeRow>
AttentionRows();  // attention.cpp: Attention, RotaryEmbedding, TensorScatter ...
std::span<const NodeRow> BitCastRows();      // bit_cast.cpp
std::span<const NodeRow> BitsRows();         // bits.cpp: BitShift, BitwiseAnd ...
std::span<const NodeRow> ConstantRows();     // constant.cpp: Constant, Identity
std::span<const NodeRow> ConvolutionRows();  // convolution.cpp: Conv, ConvTranspose
std::span<const NodeRow> CumulativeRows();   // cumulative.cpp: CumSum, CumProd
std::span<const NodeRow>
DepthToSpaceRows();  // depth_to_space.cpp: DepthToSpace, SpaceToDepth, Col2Im
std::span<const NodeRow> DeterminantRows();  // determinant.cpp: Det, Inverse
std::span<const NodeRow> ElementwiseRows();  // elementwise.cpp: arithmetic, logic, Cast, Where
std::span<const NodeRow> GatherRows();       // gather.cpp: Gather*
std::span<const NodeRow>
GridSampleRows();                   // grid_sample.cpp: GridSample, AffineGrid, RoiAlign, DeformConv
std::span<const NodeRow> IfRows();  // if.cpp
std::span<const NodeRow>
IntegerProductRows();  // integer_products.cpp: ConvInteger, QLinearMatMul ...
std::span<const NodeRow> LinearAttentionRows();    // linear_attention.cpp
std::span<const NodeRow> LoopRows();               // loop.cpp: Loop, Scan
std::span<const NodeRow> LossRows();               // loss.cpp
std::span<const NodeRow> MatMulRows();             // matmul.cpp: Gemm, MatMul, Einsum
std::span<const NodeRow> NonMaxSuppressionRows();  // non_max_suppression.cpp
std::span<const NodeRow> NonZeroRows();            // nonzero.cpp: NonZero, Compress
std::span<const NodeRow> NormalizationRows();      // normalization.cpp
std::span<const NodeRow> OneHotRows();             // one_hot.cpp
std::span<const NodeRow> PadRows();                // pad.cpp: Pad, CenterCropPad
std::span<const NodeRow> PoolRows();               // pool.cpp
std::span<const NodeRow> QuantizedRows();  // quantized.cpp: QuantizeLinear, DequantizeLinear ...
std::span<const NodeRow> RandomRows();     // random.cpp: Random*, Multinomial, Dropout ...
std::span<const NodeRow> RecurrentRows();  // recurrent.cpp: GRU, LSTM, RNN
std::span<const NodeRow> ReductionRows();  // reduction.cpp
std::span<const NodeRow> ResizeRows();     // resize.cpp: Resize, Upsample
std::span<const NodeRow> ReverseSequenceRows();  // reverse_sequence.cpp
std::span<const NodeRow> ScatterRows();          // scatter.cpp
std::span<const NodeRow> SequenceRows();         // sequence.cpp: sequences and optionals
std::span<const NodeRow> ShapeRows();            // shape.cpp: Reshape, Transpose, Expand, Range ...
std::span<const NodeRow> SignalRows();           // signal.cpp: DFT, STFT, windows, MelWeightMatrix
std::span<const NodeRow> SliceRows();            // slice.cpp: Slice, Split, Concat
std::span<const NodeRow> HostOnlyRows();         // host_only.cpp: strings, image files
std::span<const NodeRow> TfIdfRows();            // tf_idf.cpp: TfIdfVectorizer
std::span<const NodeRow> TopKRows();             // top_k.cpp: TopK, ArgMax, ArgMin
std::span<const NodeRow> TriangleRows();         // triangle.cpp: Trilu, EyeLike
std::span<const NodeRow> UniqueRows();           // unique.cpp
std::span<const NodeRow> MicrosoftAttentionRows();  // microsoft/attention.cpp
std::span<const NodeRow>
MicrosoftFusedRows();  // microsoft/fused.cpp: other com.microsoft operators
std::span<const NodeRow> MicrosoftQuantizedRows();  // microsoft/quantized.cpp: QLinear*
std::span<const NodeRow> NBitsRows();  // microsoft/nbits.cpp: MatMulNBits, GatherBlockQuantized
// clang-format on

// Returns the row for this operator in this opset version, or null.
const NodeRow* FindRow(std::string_view domain, std::string_view name, int opset);
std::span<const NodeRow* const> AllRows();

}  // namespace mlc::onnx

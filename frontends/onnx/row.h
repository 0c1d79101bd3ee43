// frontends/onnx/row.h - one row of the table of ONNX operators, as the family files write it.
//
//   {"Abs", "abs(x)"}                    the MIL operator with the same arguments: its parameters,
//                                        in the order of ONNX's inputs. It takes no attributes.
//   {"Clip", ClipAttributes, 1, 10},
//   {"Clip", Clip, 11}                   a handler, and the opset versions (inclusive) in which it
//                                        is right
//   {"FusedConv", FusedConv, 1, 0, "com.microsoft"}
//
// Rows of one name have disjoint ranges. `mlc ops --frontend onnx` and OPERATORS.md are this table.
// A row is direct when it names a MIL operator and decomposed when it has a handler, unless it says
// otherwise:
//
//   Row("Relu", Relu).Direct()           one MIL operation with other arguments
//   Row("Dropout", Dropout).Folded()     nothing is left of it at run time
//   Row("Tile", Tile).When("...")        works under this condition, which the handler checks
//   Row("Unique", Unique).Never("...")   Core ML lacks what it takes; the handler does constants
//   Row("StringSplit", 20).Never("...")  the same, and nothing can be done: always refused
#pragma once

#include <span>

#include "frontends/onnx/node.h"

namespace mlc::onnx {

using Handler = void (*)(Node&);

enum class Class { kDirect, kDecomposed, kFolded, kConditional, kImpossible };

struct Row {
  std::string_view name;
  std::string_view same;
  Handler handler = nullptr;
  int since = 1, until = 0;      // 0: still valid
  std::string_view domain = "";  // "" is ai.onnx
  Class kind = Class::kDecomposed;
  std::string_view condition = "";  // what it takes, or why it is impossible

  constexpr Row(std::string_view n, const char* s, int from = 1, int to = 0,
                std::string_view d = "")
      : name(n), same(s), since(from), until(to), domain(d), kind(Class::kDirect) {}
  constexpr Row(std::string_view n, Handler h, int from = 1, int to = 0, std::string_view d = "")
      : name(n), handler(h), since(from), until(to), domain(d) {}
  constexpr Row(std::string_view n, int from) : name(n), since(from) {}

  constexpr Row Direct() const { return As(Class::kDirect, condition); }
  constexpr Row Folded() const { return As(Class::kFolded, condition); }
  constexpr Row When(std::string_view text) const { return As(Class::kConditional, text); }
  constexpr Row Never(std::string_view text) const { return As(Class::kImpossible, text); }

 private:
  constexpr Row As(Class c, std::string_view text) const {
    Row row = *this;
    row.kind = c;
    row.condition = text;
    return row;
  }
};

// The families; each is one file. rows.cpp joins them.
std::span<const Row> ActivationRows();  // activations.cpp
std::span<const Row>
AttentionRows();                     // attention.cpp: Attention, RotaryEmbedding, TensorScatter ...
std::span<const Row> BitCastRows();  // bit_cast.cpp
std::span<const Row> BitsRows();     // bits.cpp: BitShift, BitwiseAnd, BitwiseOr, BitwiseXor
std::span<const Row> ControlRows();  // control.cpp: Constant, Identity, If
std::span<const Row> ConvolutionRows();  // convolution.cpp: Conv, ConvTranspose
std::span<const Row>
ElementwiseRows();  // elementwise.cpp: arithmetic, logic, comparison, Cast, Where
std::span<const Row> EliminationRows();  // elimination.cpp: Det, Inverse
std::span<const Row> GatherRows();       // gather.cpp: Gather*, Compress, NonZero, OneHot
std::span<const Row> HostRows();         // host.cpp: strings, image files
std::span<const Row> ImageRows();        // image.cpp: Resize, Upsample, GridSample
std::span<const Row> IntegerRows();      // integer.cpp: ConvInteger, MatMulInteger, QLinearConv ...
std::span<const Row> LinearRows();       // linear.cpp: Gemm, MatMul, Einsum
std::span<const Row> LinearAttentionRows();     // linear_attention.cpp
std::span<const Row> LoopRows();                // scan.cpp: Loop, Scan
std::span<const Row> LossRows();                // loss.cpp
std::span<const Row> MicrosoftRows();           // microsoft.cpp: what else com.microsoft has
std::span<const Row> MicrosoftAttentionRows();  // microsoft_attention.cpp: com.microsoft
std::span<const Row> MicrosoftQuantizedRows();  // microsoft_quantized.cpp: QLinear*
std::span<const Row> NBitsRows();               // nbits.cpp: MatMulNBits, GatherBlockQuantized
std::span<const Row> NgramRows();               // ngrams.cpp: TfIdfVectorizer
std::span<const Row> NormalizationRows();       // normalization.cpp
std::span<const Row> PadRows();                 // pad.cpp: Pad, CenterCropPad
std::span<const Row> PoolRows();                // pool.cpp
std::span<const Row> QuantizedRows();  // quantized.cpp: QuantizeLinear, DequantizeLinear ...
std::span<const Row> RandomRows();     // random.cpp: Random*, Bernoulli, Multinomial, Dropout
std::span<const Row> RecurrentRows();  // recurrent.cpp: GRU, LSTM, RNN
std::span<const Row> ReductionRows();  // reduction.cpp
std::span<const Row> SamplingRows();   // sampling.cpp: GridSample, RoiAlign, DeformConv, AffineGrid
std::span<const Row> ScatterRows();    // scatter.cpp
std::span<const Row> SelectionRows();  // selection.cpp: TopK, ArgMax, ArgMin, Unique
std::span<const Row> SequenceRows();   // sequence.cpp: sequences and optionals
std::span<const Row> ShapeRows();      // shape.cpp: Reshape, Transpose, Expand, Shape, Range ...
std::span<const Row> SignalRows();     // signal.cpp: DFT, STFT, windows, MelWeightMatrix
std::span<const Row> SliceRows();      // slice.cpp: Slice, Split, Concat
std::span<const Row> SpaceRows();      // space.cpp: DepthToSpace, SpaceToDepth, Col2Im
std::span<const Row> TriangleRows();   // triangle.cpp: Trilu, EyeLike, CumSum, ReverseSequence
std::span<const Row> UniqueRows();     // unique.cpp

// All rows. Null when there is none for this operator in this version.
const Row* FindRow(std::string_view domain, std::string_view name, int opset);
std::span<const Row* const> AllRows();

// The element type that run-time values of an ONNX type have in the Program; kNone: cannot be
// computed with.
DType RuntimeType(DType onnx);
// `value` of ONNX type `from` as ONNX type `to`, by ONNX's rules for Cast: floats truncate toward
// zero, integers wrap, anything but zero is true.
Value* Convert(Builder& builder, Value* value, DType from, DType to);
// An fp32 value with the last 16 bits of each element cut off.
Value* CutToBf16(Builder& builder, Value* x);
// An int32 value brought back into the range of int8, uint8, int16 or uint16 by wrapping; other
// types as they are.
Value* Wrap(Builder& builder, Value* value, DType onnx);

}  // namespace mlc::onnx

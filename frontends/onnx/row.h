// frontends/onnx/row.h - one row of the table of ONNX operators, as the family files write it.
//
//   {"Abs", "abs(x)"}                    the MIL operator, and its parameters in the order of the
//                                        ONNX inputs; the ONNX operator has no attributes
//   {"Clip", ClipAttributes, 1, 10},
//   {"Clip", Clip, 11}                   a handler, and the opset versions (inclusive) that it
//                                        implements
//   Microsoft("FusedConv", FusedConv)
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

// A row of com.microsoft, whose operators have one version.
constexpr NodeRow Microsoft(std::string_view name, Handler handler) {
  return {name, handler, 1, 0, "com.microsoft"};
}

using NodeRows = std::span<const NodeRow>;
// The operator families; each is one file of ops/. rows.cpp joins them.
NodeRows ActivationRows();          // activations.cpp
NodeRows AttentionRows();           // attention.cpp: Attention, RotaryEmbedding, TensorScatter ...
NodeRows BitsRows();                // bits.cpp: BitCast, BitShift, BitwiseAnd ...
NodeRows ConstantRows();            // constant.cpp: Constant, Identity
NodeRows ConvolutionRows();         // convolution.cpp: Conv, ConvTranspose
NodeRows CumulativeRows();          // cumulative.cpp: CumSum, CumProd
NodeRows DepthToSpaceRows();        // depth_to_space.cpp: DepthToSpace, SpaceToDepth, Col2Im
NodeRows DeterminantRows();         // determinant.cpp: Det, Inverse
NodeRows ElementwiseRows();         // elementwise.cpp: arithmetic, logic, Cast, Where
NodeRows GatherRows();              // gather.cpp: Gather*
NodeRows GridSampleRows();          // grid_sample.cpp: GridSample, AffineGrid, RoiAlign, DeformConv
NodeRows IfRows();                  // if.cpp
NodeRows IntegerProductRows();      // integer_products.cpp: ConvInteger, QLinearMatMul ...
NodeRows LinearAttentionRows();     // linear_attention.cpp
NodeRows LoopRows();                // loop.cpp: Loop, Scan
NodeRows LossRows();                // loss.cpp
NodeRows MatMulRows();              // matmul.cpp: Gemm, MatMul, Einsum
NodeRows NonMaxSuppressionRows();   // non_max_suppression.cpp
NodeRows NonZeroRows();             // nonzero.cpp: NonZero, Compress, Unique
NodeRows NormalizationRows();       // normalization.cpp
NodeRows OneHotRows();              // one_hot.cpp
NodeRows PadRows();                 // pad.cpp: Pad, CenterCropPad
NodeRows PoolRows();                // pool.cpp
NodeRows QuantizedRows();           // quantized.cpp: QuantizeLinear, DequantizeLinear ...
NodeRows RandomRows();              // random.cpp: Random*, Multinomial, Dropout ...
NodeRows RecurrentRows();           // recurrent.cpp: GRU, LSTM, RNN
NodeRows ReductionRows();           // reduction.cpp
NodeRows ResizeRows();              // resize.cpp: Resize, Upsample
NodeRows ReverseSequenceRows();     // reverse_sequence.cpp
NodeRows ScatterRows();             // scatter.cpp
NodeRows SequenceRows();            // sequence.cpp: sequences and optionals
NodeRows ShapeRows();               // shape.cpp: Reshape, Transpose, Expand, Range ...
NodeRows SignalRows();              // signal.cpp: DFT, STFT, windows, MelWeightMatrix
NodeRows SliceRows();               // slice.cpp: Slice, Split, Concat
NodeRows HostOnlyRows();            // host_only.cpp: strings, image files
NodeRows TfIdfRows();               // tf_idf.cpp: TfIdfVectorizer
NodeRows TopKRows();                // top_k.cpp: TopK, ArgMax, ArgMin
NodeRows TriangleRows();            // triangle.cpp: Trilu, EyeLike
NodeRows MicrosoftAttentionRows();  // microsoft/attention.cpp
NodeRows MicrosoftFusedRows();      // microsoft/fused.cpp: other com.microsoft operators
NodeRows MicrosoftQuantizedRows();  // microsoft/quantized.cpp: QLinear*
NodeRows NBitsRows();               // microsoft/nbits.cpp: MatMulNBits, GatherBlockQuantized
// clang-format on

// Returns the row for this operator in this opset version, or null.
const NodeRow* FindRow(std::string_view domain, std::string_view name, int opset);
std::span<const NodeRow* const> AllRows();

}  // namespace mlc::onnx

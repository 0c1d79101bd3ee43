// lib/ops/row.h - the rows of the operator table (OpRow), as the family files write them.
//
// A signature lists the parameters in Core ML's order, then the type domains:
//
//   "x:T weight:T bias:T! ?  strides:int32!=* pad_type:string!=valid groups:int32!=1 | T=fp16/fp32"
//
//   name:TYPE   TYPE is a domain letter (its parameters share one dtype), a dtype, several dtypes
//               (int32/uint16), `list`, `state` or `any` (a tensor or a list)
//   !           must be constant
//   ...         variadic (concat's values)
//   ?           optional
//   =v          optional with default v
//   =*          optional with a computed default (OpRow::default_value)
//
// Forms whose parameters differ only in type share the text before the bar; FormRow::domains holds
// the rest. A row has one signature per form, oldest first. The last one is canonical and names every
// parameter of every form. form_params.cpp describes forms that are not a prefix of the canonical
// one (renamed parameters, other results).
#pragma once

#include <span>

#include "lib/ir/op_def.h"

namespace mlc {

// Rows use the enumerators without qualification: kIos17, kAngles.
using enum Opset;
using enum Fp16::Digits;
using enum Fp16::Kind;
// Required by operators that compute positions, angles, counts or scores.
inline constexpr uint32_t kPlaces = kAngles | kLogarithms | kSelections | kCounts;

using OpRows = std::span<const OpRow>;
// The families; each is a file (activations.cpp, conv.cpp, ...).
OpRows ActivationRows();
OpRows ConstexprRows();
OpRows ControlRows();  // const, select, cond, while_loop, states
OpRows ConvRows();     // conv, conv_transpose
OpRows ElementwiseBinaryRows();
OpRows ElementwiseUnaryRows();
OpRows ImageRows();   // resize, upsample, crop, resample, affine
OpRows LinearRows();  // linear, matmul, einsum
OpRows ListRows();    // make_list, list_read, ...
OpRows NormalizationRows();
OpRows PoolRows();
OpRows QuantizationRows();  // quantize, dequantize
OpRows RandomRows();        // random_bernoulli, random_categorical, ...
OpRows RecurrentRows();     // gru, lstm, rnn
OpRows ReductionRows();
OpRows ScatterGatherRows();
OpRows SelectionRows();  // topk, argsort, non_maximum_suppression
OpRows ShapeRows();      // reshape, transpose, expand_dims, squeeze, concat, split, tile, pad, ...
OpRows SliceRows();      // slice_by_index, slice_by_size, slice_update, sliding_windows
OpRows SpaceRows();      // depth_to_space, pixel_shuffle, space_to_batch and their inverses
OpRows TensorRows();     // shape, fill, range_1d, one_hot, cumsum, band_part, ...

// All rows, parsed once.
const OpSet& Ops();
// Parses a single signature; throws InternalError if it is malformed. Public for its test.
Form ParseForm(const FormRow& row);

}  // namespace mlc

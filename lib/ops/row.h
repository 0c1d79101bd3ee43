// lib/ops/row.h - the type of a row of the operator table, as written in the family files.
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
//   =*          optional with a computed default (Row::default_value)
//
// A row has one signature per form, oldest first. The last one is canonical and names every
// parameter of every form. forms.cpp describes forms that are not a prefix of the canonical one
// (renamed parameters, other results).
#pragma once

#include <array>
#include <span>

#include "lib/ir/op_def.h"

namespace mlc {

struct FormRow {
  Opset since = Opset::kIos15;
  std::string_view signature;
};

struct Row {
  std::string_view name;
  std::string_view doc;
  std::array<FormRow, 4> forms;  // unused entries have an empty signature
  InferFn infer = nullptr;
  EvalFn eval = nullptr;
  DefaultFn default_value = nullptr;
  std::string_view no_eval = {};
  Effect effect = Effect::kNone;
  ConstantKind constant = ConstantKind::kNone;
  Moves moves = Moves::kNone;
  Layout layout = {};
  Sums sums = {};
  std::array<Neutral, 2> neutral = {};
  Fp16 fp16 = {};
  WorkFn work = nullptr;
  RangeFn range = nullptr;
  std::string_view no_range = {};
  std::array<WantRule, 3> wants = {};
};

using enum Opset;         // rows read `{kIos17, "x:T ..."}`
using enum Fp16::Digits;  // and `.fp16 = {.needs = kAngles}`
using enum Fp16::Kind;
// Required by operators that compute positions, angles, counts or scores.
inline constexpr uint32_t kPlaces = kAngles | kLogarithms | kSelections | kCounts;

// The families; each is a file (activations.cpp, conv.cpp, ...).
std::span<const Row> ActivationRows();
std::span<const Row> ConstexprRows();
std::span<const Row> ControlRows();  // const, select, cond, while_loop, states
std::span<const Row> ConvRows();     // conv, conv_transpose
std::span<const Row> ElementwiseBinaryRows();
std::span<const Row> ElementwiseUnaryRows();
std::span<const Row> ImageRows();   // resize, upsample, crop, resample, affine
std::span<const Row> LinearRows();  // linear, matmul, einsum
std::span<const Row> ListRows();    // make_list, list_read, ...
std::span<const Row> NormalizationRows();
std::span<const Row> PoolRows();
std::span<const Row> QuantizationRows();  // quantize, dequantize
std::span<const Row> RandomRows();        // random_bernoulli, random_categorical, ...
std::span<const Row> RecurrentRows();     // gru, lstm, rnn
std::span<const Row> ReductionRows();
std::span<const Row> ScatterGatherRows();
std::span<const Row> SelectionRows();  // topk, argsort, non_maximum_suppression
std::span<const Row>
ShapeRows();  // reshape, transpose, expand_dims, squeeze, concat, split, tile, pad, ...
std::span<const Row> SliceRows();  // slice_by_index, slice_by_size, slice_update, sliding_windows
std::span<const Row>
SpaceRows();  // depth_to_space, pixel_shuffle, space_to_batch and their inverses
std::span<const Row> TensorRows();  // shape, fill, range_1d, one_hot, cumsum, band_part, ...

// All rows, parsed once.
const OpSet& Ops();
// Parses a single signature; throws InternalError if it is malformed. Public for its test.
Form ParseForm(const FormRow& row);

}  // namespace mlc

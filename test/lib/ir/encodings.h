// test/lib/ir/encodings.h - an encoding of every form, small enough to decode by hand.
#pragma once

#include <random>
#include <string>
#include <vector>

#include "lib/ir/encoding.h"
#include "lib/ir/subbyte.h"

namespace mlc::test {

struct EncodingSample {
  std::string name;
  Encoding encoding;
};

// A fixed sequence of numbers; floats are representable in fp16.
class FixedDraw {
 public:
  Tensor Integers(DType dtype, Dims dims) {
    int64_t high = int64_t{1} << (Bits(dtype) - (IsSigned(dtype) ? 1 : 0)),
            low = IsSigned(dtype) ? -high : 0;
    std::vector<int64_t> values;
    for (int64_t i = ElementCount(dims); i > 0; --i) values.push_back(low + Next(high - low));
    return Tensor::Of(std::move(dims), values).Cast(dtype);
  }
  Tensor Floats(Dims dims, DType dtype = DType::kFp32, double least = -2, double most = 2) {
    std::vector<double> values;
    for (int64_t i = ElementCount(dims); i > 0; --i)
      values.push_back(least + (most - least) * static_cast<double>(Next(1 << 20)) / (1 << 20));
    return Tensor::Of(std::move(dims), values).Cast(DType::kFp16).Cast(dtype);
  }
  Tensor Scales(Dims dims, DType dtype = DType::kFp32) {
    return Floats(std::move(dims), dtype, 0.01, 0.5);
  }
  Tensor Mask(Dims dims) {
    std::vector<int64_t> values;
    for (int64_t i = ElementCount(dims); i > 0; --i) values.push_back(Next(3) == 0);
    return Tensor::Of(std::move(dims), values).Cast(DType::kUint1);
  }

 private:
  int64_t Next(int64_t below) { return static_cast<int64_t>(random_() >> 11) % below; }
  std::mt19937_64 random_{12};
};

// Encodings of values of `dtype`. Constants have at least 2048 elements, so that passes treat them
// as weights.
inline std::vector<EncodingSample> EncodingSamples(DType dtype = DType::kFp32) {
  using enum Encoding::Form;
  FixedDraw draw;
  std::vector<EncodingSample> samples;
  auto add = [&](std::string name, Encoding encoding) {
    encoding.dtype = dtype;
    samples.push_back({std::move(name), std::move(encoding)});
  };
  auto held = [](const Tensor& mask) { return CountSet(mask, 0, mask.size()); };

  add("int8 per tensor",
      {.data = draw.Integers(DType::kInt8, {32, 96}), .scale = draw.Scales({1, 1}, dtype)});
  add("uint8 rows, offset", {.data = draw.Integers(DType::kUint8, {32, 96}),
                             .scale = draw.Scales({32, 1}, dtype),
                             .offset = draw.Integers(DType::kUint8, {32, 1})});
  add("int8 columns",
      {.data = draw.Integers(DType::kInt8, {32, 96}), .scale = draw.Scales({1, 96}, dtype)});
  add("int4 blocks",
      {.data = draw.Integers(DType::kInt4, {32, 96}), .scale = draw.Scales({32, 3}, dtype)});
  add("uint4 blocks, offset", {.data = draw.Integers(DType::kUint4, {32, 96}),
                               .scale = draw.Scales({32, 3}, dtype),
                               .offset = draw.Integers(DType::kUint4, {32, 3})});
  add("uint2 blocks, float offset", {.data = draw.Integers(DType::kUint2, {32, 96}),
                                     .scale = draw.Scales({32, 6}, dtype),
                                     .offset = draw.Floats({32, 6}, dtype)});
  add("int8 blocks on three axes", {.data = draw.Integers(DType::kInt8, {8, 12, 32}),
                                    .scale = draw.Scales({2, 3, 4}, dtype),
                                    .offset = draw.Integers(DType::kInt8, {2, 3, 4})});
  add("uint4 blocks, bias", {.data = draw.Integers(DType::kUint4, {32, 96}),
                             .scale = draw.Scales({32, 3}, dtype),
                             .bias = draw.Floats({32, 3}, dtype, -1, 1)});
  add("uint6 blocks, bias", {.data = draw.Integers(DType::kUint6, {32, 96}),
                             .scale = draw.Scales({32, 3}, dtype),
                             .bias = draw.Floats({32, 3}, dtype, -1, 1)});
  add("fp8 rows", {.data = draw.Floats({32, 96}).Cast(DType::kFp8E4M3FN),
                   .scale = draw.Scales({32, 1}, dtype)});

  for (DType indices :
       {DType::kUint1, DType::kUint2, DType::kUint3, DType::kUint4, DType::kUint6, DType::kUint8}) {
    add("palette of " + std::string(Name(indices)),
        {.form = kPalette,
         .data = draw.Integers(indices, {32, 96}),
         .table = draw.Floats({1, 1, int64_t{1} << Bits(indices), 1}, dtype)});
  }
  add("palettes of groups", {.form = kPalette,
                             .data = draw.Integers(DType::kUint4, {32, 96}),
                             .table = draw.Floats({4, 1, 16, 1}, dtype)});
  add("vectors along rows", {.form = kPalette,
                             .data = draw.Integers(DType::kUint3, {16, 96}),
                             .table = draw.Floats({2, 1, 8, 2}, dtype),
                             .vector_axis = 0});
  add("vectors along columns", {.form = kPalette,
                                .data = draw.Integers(DType::kUint4, {32, 24}),
                                .table = draw.Floats({1, 2, 16, 4}, dtype),
                                .vector_axis = 1});
  add("palettes of int8 with scales",
      {.form = kPalette,
       .data = draw.Integers(DType::kUint6, {32, 96}),
       .table = Tensor::Encoded({.dtype = dtype,
                                 .data = draw.Integers(DType::kInt8, {4, 1, 64, 1}),
                                 .scale = draw.Scales({4, 1, 1, 1}, dtype)})});
  add("scales of rows behind a palette",
      {.data = Tensor::Encoded({.form = kPalette,
                                .data = draw.Integers(DType::kUint2, {32, 96}),
                                .table = draw.Floats({1, 1, 4, 1}, dtype)}),
       .scale = draw.Scales({32, 1}, dtype)});
  add("scales of blocks behind a palette of int8",
      {.data = Tensor::Encoded({.form = kPalette,
                                .data = draw.Integers(DType::kUint4, {32, 96}),
                                .table = draw.Integers(DType::kInt8, {1, 1, 16, 1})}),
       .scale = draw.Scales({32, 3}, dtype)});

  Tensor mask = draw.Mask({32, 96});
  add("sparse", {.form = kSparse, .data = draw.Floats({held(mask)}, dtype), .mask = mask});
  mask = draw.Mask({8, 12, 32});
  add("sparse int8 with scales",
      {.form = kSparse,
       .data = Tensor::Encoded({.dtype = dtype,
                                .data = draw.Integers(DType::kInt8, {held(mask)}),
                                .scale = draw.Scales({2, 1, 4}, dtype),
                                .offset = draw.Integers(DType::kInt8, {2, 1, 4}),
                                .mask = mask}),
       .mask = mask});
  mask = draw.Mask({32, 96});
  Tensor entries = Tensor::Encoded({.form = kPalette,
                                    .data = draw.Integers(DType::kUint3, {held(mask)}),
                                    .table = draw.Floats({4, 1, 8, 1}, dtype),
                                    .mask = mask});
  add("sparse palettes", {.form = kSparse, .data = entries, .mask = mask});
  add("sparse palettes with scales",
      {.form = kSparse,
       .data = Tensor::Encoded(
           {.dtype = dtype, .data = entries, .scale = draw.Scales({32, 1}, dtype), .mask = mask}),
       .mask = mask});
  mask = draw.Mask({16, 96});
  add("sparse vectors",
      {.form = kSparse,
       .data = Tensor::Encoded({.form = kPalette,
                                .data = draw.Integers(DType::kUint4, {held(mask)}),
                                .table = draw.Floats({1, 1, 16, 2}, dtype),
                                .vector_axis = 0,
                                .mask = mask}),
       .mask = Repeated(mask, 0, 2)});
  return samples;
}

}  // namespace mlc::test

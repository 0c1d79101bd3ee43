// Expected values are the examples in coremltools' documentation of the operators, unless a comment
// states otherwise.
#include "test/catch.h"
#include "test/lib/ops/evaluate.h"
#include "test/lib/ops/random_operands.h"

namespace mlc::test {
namespace {

Tensor Packed(DType dtype, Dims dims, const std::vector<int>& values) {
  int bits = Bits(dtype);
  std::vector<std::byte> bytes(ByteCount(dtype, static_cast<int64_t>(values.size())));
  for (size_t i = 0; i < values.size() * bits; ++i)
    if (values[i / bits] >> (i % bits) & 1) bytes[i / 8] |= std::byte(1 << i % 8);
  return Tensor::Owned(dtype, std::move(dims), bytes);
}
Tensor U8(const std::vector<uint8_t>& values) { return Tensor::Vector(values); }
Tensor U32(const std::vector<uint32_t>& values) { return Tensor::Vector(values); }

TEST_CASE("constexpr_affine_dequantize") {
  // Hand calculation: scale * (q - zero), one pair per row.
  Tensor q = Tensor::Of<int8_t>({2, 3}, {-128, 0, 127, 1, 2, 3});
  Tensor y =
      Evaluate("constexpr_affine_dequantize", {{"quantized_data", q},
                                               {"zero_point", Tensor::Vector<int8_t>({-1, 1})},
                                               {"scale", F32({2}, {0.5f, 2})},
                                               {"axis", Tensor::Scalar<int32_t>(0)}});
  CHECK(y.Doubles() == std::vector<double>{-63.5, 0.5, 64, 0, 2, 4});
  CHECK_THROWS_AS(Infer("constexpr_affine_dequantize", {{"quantized_data", q},
                                                        {"zero_point", Tensor::Scalar<int8_t>(0)},
                                                        {"scale", F32({3}, {1, 1, 1})},
                                                        {"axis", Tensor::Scalar<int32_t>(0)}}),
                  Error);
}

TEST_CASE("constexpr_blockwise_shift_scale") {
  // coremltools' test of int4 with an offset (ops/tests/iOS18/test_compression.py), calculated by
  // hand.
  Tensor data = Packed(DType::kInt4, {1, 2, 4}, {2, 3, 5, 7, 6, 5, -3, -8});
  Tensor y = Evaluate("constexpr_blockwise_shift_scale",
                      {{"data", data},
                       {"scale", F32({1, 1, 2}, {1, 2})},
                       {"offset", Packed(DType::kInt4, {1, 1, 2}, {1, 0})}});
  CHECK(y.Doubles() == std::vector<double>{1, 2, 10, 14, 5, 4, -6, -16});
  CHECK_THROWS_WITH(Infer("constexpr_blockwise_shift_scale",
                          {{"data", data}, {"scale", F32({1, 1, 3}, {1, 2, 3})}}),
                    ContainsSubstring("is not divisible"));
}

TEST_CASE("constexpr_lut_to_dense, indices packed into bytes") {
  Tensor y = Evaluate("constexpr_lut_to_dense", {{"indices", U8({0b01101100, 0b00000011})},
                                                 {"lut", F32({4}, {10, 11, 12, 13})},
                                                 {"shape", U32({5})}});
  CHECK(y.Doubles() == std::vector<double>{10, 13, 12, 11, 13});
  // Indices 1, 63 and 32 of 6 bits; the second spans two bytes (hand calculation).
  std::vector<float> table(64);
  for (int i = 0; i < 64; ++i) table[i] = static_cast<float>(i);
  y = Evaluate("constexpr_lut_to_dense", {{"indices", U8({0b11000001, 0b00001111, 0b00000010})},
                                          {"lut", F32({64}, table)},
                                          {"shape", U32({3, 1})}});
  CHECK(y.Doubles() == std::vector<double>{1, 63, 32});
  CHECK_THROWS_AS(
      Infer("constexpr_lut_to_dense",
            {{"indices", U8({0})}, {"lut", F32({4}, {1, 2, 3, 4})}, {"shape", U32({5})}}),
      Error);
}

TEST_CASE("constexpr_lut_to_dense, tables per group and vectors") {
  Tensor y =
      Evaluate("constexpr_lut_to_dense",
               {{"indices", Packed(DType::kUint2, {6, 2}, {2, 3, 3, 0, 1, 0, 3, 0, 2, 1, 0, 3})},
                {"lut", F16({2, 1, 4, 1}, {1, 5, 9, 13, 2, 10, 18, 26})}});
  CHECK(y.Doubles() == std::vector<double>{9, 13, 13, 1, 5, 1, 26, 2, 18, 10, 2, 26});
  Tensor indices = Packed(DType::kUint1, {2, 2, 2}, {0, 0, 1, 0, 1, 1, 0, 0});
  Tensor lut = Tensor::Of<int8_t>({1, 1, 1, 2, 3}, {10, 11, 12, 20, 21, 22});
  y = Evaluate("constexpr_lut_to_dense",
               {{"indices", indices}, {"lut", lut}, {"vector_axis", Tensor::Scalar<int32_t>(1)}});
  CHECK(y.dims() == Dims{2, 6, 2});
  CHECK(y.Ints() == std::vector<int64_t>{10, 10, 11, 11, 12, 12, 20, 10, 21, 11, 22, 12,
                                         20, 20, 21, 21, 22, 22, 10, 10, 11, 11, 12, 12});
  y = Evaluate("constexpr_lut_to_dense",
               {{"indices", indices}, {"lut", lut}, {"vector_axis", Tensor::Scalar<int32_t>(2)}});
  CHECK(y.dims() == Dims{2, 2, 6});
  CHECK(y.Ints() == std::vector<int64_t>{10, 11, 12, 10, 11, 12, 20, 21, 22, 10, 11, 12,
                                         20, 21, 22, 20, 21, 22, 10, 11, 12, 10, 11, 12});
}

TEST_CASE("constexpr_sparse_to_dense") {
  Tensor values = F32({2}, {3, 4});
  Tensor y = Evaluate("constexpr_sparse_to_dense",
                      {{"nonzero_data", values}, {"mask", U8({0b00001100})}, {"shape", U32({5})}});
  CHECK(y.Doubles() == std::vector<double>{0, 0, 3, 4, 0});
  y = Evaluate("constexpr_sparse_to_dense",
               {{"nonzero_data", values}, {"mask", Packed(DType::kUint1, {5}, {0, 1, 0, 0, 1})}});
  CHECK(y.Doubles() == std::vector<double>{0, 3, 0, 0, 4});
  Tensor nibbles = Packed(DType::kInt4, {2}, {-3, 7});
  y = Evaluate("constexpr_sparse_to_dense",
               {{"nonzero_data", nibbles}, {"mask", Packed(DType::kUint1, {3}, {1, 0, 1})}});
  CHECK(y.SameBytes(Packed(DType::kInt4, {3}, {-3, 0, 7})));
  CHECK_THROWS_WITH(
      Evaluate("constexpr_sparse_to_dense",
               {{"nonzero_data", values}, {"mask", U8({0b00001000})}, {"shape", U32({5})}}),
      ContainsSubstring("1 bits set"));
}

TEST_CASE("sparse decoding reads from any offset") {
  // Hand calculation: every third of 10000 elements equals its index.
  std::vector<int> mask(10000);
  std::vector<float> values;
  for (int i = 0; i < 10000; i += 3) mask[i] = 1, values.push_back(static_cast<float>(i));
  Tensor y =
      Evaluate("constexpr_sparse_to_dense", {{"nonzero_data", Tensor::Vector(values)},
                                             {"mask", Packed(DType::kUint1, {100, 100}, mask)}});
  float out[5];
  y.Read(8999, 5, reinterpret_cast<std::byte*>(out));
  CHECK(std::vector<float>(out, out + 5) ==
        std::vector<float>{0, 9000 * (9000 % 3 == 0), 0, 0, 9003});
}

TEST_CASE("constexpr_lut_to_sparse") {
  Tensor mask = Packed(DType::kUint1, {4, 6},
                       {1, 1, 0, 0, 0, 0, 1, 1, 0, 0, 0, 1, 0, 1, 1, 0, 1, 0, 0, 0, 0, 1, 0, 0});
  Tensor indices = Packed(DType::kUint1, {9}, {0, 1, 1, 0, 1, 1, 0, 0, 1});
  std::vector<Tensor> y =
      EvaluateAll("constexpr_lut_to_sparse", {{"indices_mask", mask},
                                              {"indices_nonzero_data", indices},
                                              {"lut", F16({1, 1, 2, 1}, {2, 3})}});
  CHECK(y[0].SameBytes(mask));
  CHECK(y[1].Doubles() == std::vector<double>{2, 3, 3, 2, 3, 3, 2, 2, 3});
  y = EvaluateAll("constexpr_lut_to_sparse", {{"indices_mask", mask},
                                              {"indices_nonzero_data", indices},
                                              {"lut", F16({1, 1, 2, 2}, {2, 2, 3, 3})},
                                              {"vector_axis", Tensor::Scalar<int32_t>(0)}});
  CHECK(y[0].dims() == Dims{8, 6});
  CHECK(y[1].Doubles() ==
        std::vector<double>{2, 3, 2, 3, 3, 2, 3, 3, 2, 3, 3, 2, 2, 3, 2, 2, 3, 3});
}

TEST_CASE("constexpr_sparse_blockwise_shift_scale") {
  Tensor mask = Packed(DType::kUint1, {4, 4}, {1, 1, 0, 0, 1, 1, 1, 0, 0, 0, 1, 1, 1, 1, 0, 0});
  std::vector<Tensor> y =
      EvaluateAll("constexpr_sparse_blockwise_shift_scale",
                  {{"data_mask", mask},
                   {"nonzero_data", Tensor::Vector<int8_t>({10, 11, 3, 4, 5, 6, 7, 8, 9})},
                   {"scale", F32({1, 4}, {0.1f, 0.2f, 0.3f, 0.4f})},
                   {"offset", Tensor::Of<int8_t>({1, 4}, {1, 2, 3, 4})}});
  CHECK(Near(y[1].Doubles(), {0.9, 1.8, 0.2, 0.4, 0.6, 0.9, 1.2, 0.7, 1.4}, 1e-6));
}

TEST_CASE("constexpr_cast") {
  Tensor y = Evaluate("constexpr_cast", {{"source_val", F16({2}, {0.5, 65504})},
                                         {"output_dtype", Tensor::String("fp32")}});
  CHECK(y.dtype() == DType::kFp32);
  CHECK(y.Doubles() == std::vector<double>{0.5, 65504});
}

TEST_CASE("constexpr: range rules are sound", "[traits]") {
  CheckRange("constexpr_affine_dequantize", [](Draw& draw, DType dtype) -> Case {
    return {{"quantized_data", draw.Between({4, 3}, DType::kInt8, -128, 127)},
            {"zero_point", draw.Between({4}, DType::kInt8, -128, 127)},
            {"scale", draw.Between({4}, dtype, -2, 2)},
            {"axis", Number(0)}};
  });
  CheckRange("constexpr_blockwise_shift_scale", [](Draw& draw, DType dtype) -> Case {
    Case operands = {{"data", draw.Between({4, 6}, DType::kInt8, -128, 127)},
                     {"scale", draw.Between({2, 3}, dtype, -2, 2)}};
    if (draw.Coin()) operands.emplace_back("offset", draw.Between({2, 3}, DType::kInt8, -128, 127));
    return operands;
  });
  CheckRange("constexpr_cast", [](Draw& draw, DType) -> Case {
    Dims dims = draw.Sizes(1, 3);
    return {{"source_val", draw.Numbers(dims, DType::kFp16)}, {"output_dtype", Text("fp32")}};
  });
  CheckRange("constexpr_lut_to_dense", [](Draw& draw, DType dtype) -> Case {
    return {{"indices", draw.Between({4, 6}, DType::kUint8, 0, 3).Cast(DType::kUint2)},
            {"lut", draw.Numbers({1, 1, 4, 1}, dtype)}};
  });
  CheckRange("constexpr_lut_to_sparse", [](Draw& draw, DType dtype) -> Case {
    return {{"indices_mask", Tensor::Full(DType::kUint1, {4, 6}, 1)},
            {"indices_nonzero_data", draw.Between({24}, DType::kUint8, 0, 3).Cast(DType::kUint2)},
            {"lut", draw.Numbers({1, 1, 4, 1}, dtype)}};
  });
  CheckRange("constexpr_sparse_blockwise_shift_scale", [](Draw& draw, DType dtype) -> Case {
    return {{"data_mask", Tensor::Full(DType::kUint1, {4, 6}, 1)},
            {"nonzero_data", draw.Between({24}, DType::kInt8, -128, 127)},
            {"scale", draw.Between({2, 3}, dtype, -2, 2)},
            {"offset", draw.Between({2, 3}, DType::kInt8, -128, 127)}};
  });
  CheckRange("constexpr_sparse_to_dense", [](Draw& draw, DType dtype) -> Case {
    return {{"nonzero_data", draw.Numbers({3}, dtype)},
            {"mask", Tensor::Vector<uint8_t>({1, 0, 1, 0, 1, 0}).Cast(DType::kUint1)}};
  });
}

}  // namespace
}  // namespace mlc::test

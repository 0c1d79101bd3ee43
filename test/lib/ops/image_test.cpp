// Expected values without a stated source are from coremltools' tests
// (ops/tests/iOS14|iOS17/test_image_resizing.py).
#include "test/catch.h"
#include "test/lib/ops/evaluate.h"
#include "test/lib/ops/random_operands.h"

namespace mlc::test {
namespace {

Tensor Str(const char* text) { return Tensor::String(text); }
Tensor Num(int32_t value) { return Tensor::Scalar<int32_t>(value); }

TEST_CASE("resize_bilinear: sampling modes") {
  auto row = [](const char* mode, int32_t width) {
    return Evaluate("resize_bilinear", {{"x", F32({1, 1, 2}, {0, 1})},
                                        {"target_size_height", Num(1)},
                                        {"target_size_width", Num(width)},
                                        {"sampling_mode", Str(mode)}})
        .Doubles();
  };
  CHECK(Near(row("STRICT_ALIGN_CORNERS", 5), {0, 0.25, 0.5, 0.75, 1}, 1e-6));
  CHECK(Near(row("DEFAULT", 5), {0, 0.4, 0.8, 1, 1}, 1e-6));
  CHECK(Near(row("OFFSET_CORNERS", 5), {0.1, 0.3, 0.5, 0.7, 0.9}, 1e-6));
  CHECK(Near(row("UNALIGN_CORNERS", 5), {0, 0.1, 0.5, 0.9, 1}, 1e-6));
  // From the table in the operator's documentation.
  CHECK(Near(row("OFFSET_CORNERS", 6), {1 / 12., 3 / 12., 5 / 12., 7 / 12., 9 / 12., 11 / 12.},
             1e-6));
  CHECK(Near(row("ALIGN_CORNERS", 1), {0.5}, 1e-6));
  CHECK(Near(row("STRICT_ALIGN_CORNERS", 1), {0}, 1e-6));
}

TEST_CASE("resize: size from an operand") {
  In x{"x", F32({1, 1, 2, 1}, {-6.174f, 9.371f})},
      nearest{"interpolation_mode", Str("NEAREST_NEIGHBOR")};
  In two{"resized_dims", Tensor::Scalar<uint32_t>(2)};
  Tensor y = Evaluate("resize", {x, {"shape", I32({4}, {1, 1, 3, 2})}, two, nearest});
  CHECK(y.dims() == Dims{1, 1, 3, 2});
  CHECK(Near(y.Doubles(), {-6.174, -6.174, 9.371, 9.371, 9.371, 9.371}, 1e-6));
  Shape inherited = Infer("resize", {x, {"shape", I32({2}, {0, 7})}, two}).results[0].shape;
  CHECK(inherited == Shape{1, 1, 2, 7});
  Shape unknown =
      Infer("resize", {x, {"shape", Type::Tensor(DType::kInt32, {4})}, two}).results[0].shape;
  CHECK(unknown.size() == 4);
  CHECK_FALSE(unknown[2].is_constant());
}

TEST_CASE("upsampling by a fraction of a symbol") {
  Dim h = Dim::Symbol("h");
  Shape y =
      Infer("upsample_nearest_neighbor", {{"x", Type::Tensor(DType::kFp32, {1, 1, h, 4})},
                                          {"scale_factor_height", Tensor::Scalar<float>(1.5f)},
                                          {"scale_factor_width", Tensor::Scalar<float>(2)}})
          .results[0]
          .shape;
  CHECK(y[2] == FloorDiv(h * 3, 2));
  CHECK(y[3] == Dim(8));
}

TEST_CASE("crop: amounts and limits") {
  std::vector<float> values(16);
  for (int i = 0; i < 16; ++i) values[i] = static_cast<float>(i + 1);
  In x{"x", F32({1, 1, 4, 4}, values)};
  Tensor y =
      Evaluate("crop", {x, {"crop_height", I32({2}, {0, 1})}, {"crop_width", I32({2}, {1, 1})}});
  CHECK(y.Doubles() == std::vector<double>{2, 3, 6, 7, 10, 11});
  CHECK_THROWS_WITH(
      Infer("crop", {x, {"crop_height", I32({2}, {2, 2})}, {"crop_width", I32({2}, {0, 0})}}),
      ContainsSubstring("removes all elements"));
}

TEST_CASE("crop_resize: both forms") {
  std::vector<float> values(16);
  for (int i = 0; i < 16; ++i) values[i] = static_cast<float>(i + 1);
  In x{"x", F32({1, 1, 4, 4}, values)}, mode{"sampling_mode", Str("ALIGN_CORNERS")};
  auto crop = [&](In boxes, int32_t size, bool normalized) {
    return Evaluate("crop_resize", {x,
                                    mode,
                                    boxes,
                                    {"target_height", Num(size)},
                                    {"target_width", Num(size)},
                                    {"normalized_coordinates", Tensor::Scalar<bool>(normalized)}});
  };
  In roi{"roi", F32({1, 1, 4, 1, 1}, {1, 1, 2, 2})};
  CHECK(crop(roi, 2, false).dims() == Dims{1, 1, 1, 2, 2});
  CHECK(crop(roi, 2, false).Doubles() == std::vector<double>{6, 7, 10, 11});
  CHECK(Near(crop(roi, 4, false).Doubles(),
             {6, 19 / 3., 20 / 3., 7, 22 / 3., 23 / 3., 8, 25 / 3., 26 / 3., 9, 28 / 3., 29 / 3.,
              10, 31 / 3., 32 / 3., 11},
             1e-6));
  CHECK(crop(roi, 1, false).Doubles() == std::vector<double>{8.5});
  In indexed{"roi", F32({1, 1, 5, 1, 1}, {0, 0, 0, 1 / 3.f, 1 / 3.f})};
  CHECK(Near(crop(indexed, 2, true).Doubles(), {1, 2, 5, 6}, 1e-6));
  In backwards{"roi", F32({1, 1, 4, 1, 1}, {2, 2, 1, 1})};
  CHECK(crop(backwards, 2, false).Doubles() == std::vector<double>{11, 10, 7, 6});
  Tensor y = crop({"boxes", F32({1, 4}, {1, 1, 2, 2})}, 2, false);
  CHECK(y.dims() == Dims{1, 1, 2, 2});
  CHECK(y.Doubles() == std::vector<double>{6, 7, 10, 11});
}

TEST_CASE("resample: coordinates far outside the image") {
  Tensor x = F32({1, 1, 2, 2}, {1, 2, 3, 4});
  for (const char* padding : {"constant", "border", "reflection", "symmetric"})
    for (const char* sampling : {"bilinear", "nearest"}) {
      Tensor y = Evaluate("resample",
                          {{"x", x},
                           {"coordinates", F32({1, 1, 3, 2}, {1e30f, 0, NAN, 0, -INFINITY, 0})},
                           {"sampling_mode", Str(sampling)},
                           {"padding_mode", Str(padding)},
                           {"padding_value", Tensor::Scalar<float>(-7)},
                           {"coordinates_mode", Str("unnormalized")},
                           {"align_corners", Tensor::Scalar<bool>(true)}});
      if (std::string(padding) == "constant") CHECK(y.Doubles() == std::vector<double>{-7, -7, -7});
    }
}

TEST_CASE("image: range rules are sound", "[traits]") {
  CheckRange("affine", [](Draw& draw, DType dtype) -> Case {
    return {{"x", draw.Numbers({1, 2, 4, 4}, dtype)},
            {"transform_matrix", draw.Between({1, 6}, dtype, -2, 2)},
            {"output_height", Number(3)},
            {"output_width", Number(5)},
            {"sampling_mode", Text("bilinear")},
            {"padding_mode", Text("constant")},
            {"padding_value", draw.Between({}, dtype, 0, 0)},
            {"coordinates_mode", Text("normalized_minus_one_to_one")},
            {"align_corners", Truth(true)}};
  });
  CheckRange("crop", [](Draw& draw, DType) -> Case {
    return {{"x", draw.Image()}, {"crop_height", Ints32({1, 1})}, {"crop_width", Ints32({0, 1})}};
  });
  CheckRange("crop_resize", [](Draw& draw, DType dtype) -> Case {
    return {{"x", draw.Numbers({1, 2, 4, 4}, dtype)},
            {"boxes", draw.Between({3, 4}, dtype, -1, 6)},
            {"box_indices", Ints32({0, 0, 0})},
            {"target_height", Number(2)},
            {"target_width", Number(3)},
            {"pad_value", draw.Numbers({}, dtype)}};
  });
  CheckRange("resize", [](Draw& draw, DType) -> Case {
    return {
        {"x", draw.Image()},
        {"shape", Ints32({5, 3})},
        {"resized_dims", Tensor::Scalar<int32_t>(2).Cast(DType::kUint32)},
        {"interpolation_mode", Text(draw.Of<std::string_view>({"LINEAR", "NEAREST_NEIGHBOR"}))}};
  });
  CheckRange("upsample_bilinear", [](Draw& draw, DType) -> Case {
    return {{"x", draw.Image()},
            {"scale_factor_height", Number(2)},
            {"scale_factor_width", Number(3)},
            {"align_corners", Truth(draw.Coin())}};
  });
  CheckRange("upsample_nearest_neighbor", [](Draw& draw, DType) -> Case {
    return {
        {"x", draw.Image()}, {"scale_factor_height", Number(2)}, {"scale_factor_width", Number(3)}};
  });
  CheckRange("resample", [](Draw& draw, DType dtype) -> Case {
    return {{"x", draw.Numbers({1, 2, 4, 4}, dtype)},
            {"coordinates", draw.Between({1, 3, 3, 2}, DType::kFp32, -2, 6)},
            {"sampling_mode", Text(draw.Of<std::string_view>({"bilinear", "nearest"}))},
            {"padding_mode", Text(draw.Of<std::string_view>({"constant", "border", "reflection"}))},
            {"coordinates_mode", Text("unnormalized")},
            {"align_corners", Truth(true)},
            {"padding_value", draw.Numbers({}, dtype)}};
  });
  CheckRange("resize_bilinear", [](Draw& draw, DType) -> Case {
    return {
        {"x", draw.Image()}, {"target_size_height", Number(5)}, {"target_size_width", Number(3)}};
  });
  CheckRange("resize_nearest_neighbor", [](Draw& draw, DType) -> Case {
    return {
        {"x", draw.Image()}, {"target_size_height", Number(5)}, {"target_size_width", Number(3)}};
  });
}

}  // namespace
}  // namespace mlc::test

#include "lib/compress/quantisers.h"

#include <cmath>
#include <limits>
#include <random>

#include "lib/ir/encoding.h"
#include "test/catch.h"

using namespace mlc;
using namespace mlc::compress;

namespace {

Tensor Drawn(Dims dims, unsigned seed = 3, float scale = 0.02F) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal(0, scale);
  std::vector<float> values(static_cast<size_t>(ElementCount(dims)));
  for (float& value : values) value = normal(random);
  return Tensor::Of(std::move(dims), values);
}

Tensor Quantised(std::string_view name, const Tensor& weights) {
  const Quantiser* quantiser = FindQuantiser(name);
  REQUIRE(quantiser);
  return quantiser->apply(weights);
}

}  // namespace

TEST_CASE("quantisers: int8 maps the largest magnitude of a row to 127, and keeps zero rows") {
  std::vector<float> values(2 * 4, 0);
  values[0] = -0.5F, values[1] = 0.249F, values[2] = 0.126F, values[3] = 0.001F;
  Tensor made = Quantised("int8", Tensor::Of<float>({2, 4}, values));
  const Encoding* e = made.encoding();
  REQUIRE(e);
  CHECK(e->scale.dims() == Dims{2, 1});
  const double scale(Half(0.5F / 127));
  CHECK(e->scale.Doubles() == std::vector<double>{scale, 0});
  CHECK(e->data.Ints() == std::vector<int64_t>{-127, 63, 32, 0, 0, 0, 0, 0});
  CHECK(made.Double(0) == -127 * scale);
}

TEST_CASE("quantisers: int4 is exact for 4-bit values, with the larger side at -8") {
  std::vector<float> values;
  for (int i = 0; i < 64; ++i) values.push_back(static_cast<float>(i % 16 - 8) * 0.125F);
  for (int i = 0; i < 64; ++i) values.push_back(static_cast<float>(8 - i % 16) * 0.25F);
  Tensor weights = Tensor::Of<float>({2, 64}, values), made = Quantised("int4", weights);
  CHECK(made.Doubles() == weights.Doubles());
  CHECK(made.encoding()->scale.Doubles() == std::vector<double>{0.125, 0.125, -0.25, -0.25});
  CHECK(made.encoding()->data.dtype() == DType::kInt4);
}

// reference/compression.md, section 6: 1.5 dB better than scaling the extremes of a block of 32 to
// 7.
TEST_CASE("quantisers: int4 has less error than scaling the maximum to 7") {
  Tensor weights = Drawn({64, 256}), made = Quantised("int4", weights);
  std::vector<double> x = weights.Doubles();
  double errors = 0, squares = 0;
  for (size_t block = 0; block < x.size(); block += 32) {
    double greatest = 0;
    for (size_t i = block; i < block + 32; ++i) greatest = std::max(greatest, std::fabs(x[i]));
    for (size_t i = block; i < block + 32; ++i) {
      double off = std::nearbyint(x[i] / greatest * 7) * greatest / 7 - x[i];
      errors += off * off, squares += x[i] * x[i];
    }
  }
  const double plain = std::sqrt(errors / squares), ours = RelativeError(made, weights);
  INFO(plain << " " << ours);
  CHECK(20 * std::log10(plain / ours) > 1.3);
}

TEST_CASE("quantisers: lut4 is exact for 16 values, and better than uniform steps for others") {
  std::vector<float> values;
  for (int i = 0; i < 64 * 40; ++i)
    values.push_back(static_cast<float>((i * 7 % 16) * (i * 7 % 16)) / 64);
  Tensor few = Tensor::Of<float>({64, 40}, values);
  CHECK(Quantised("lut4", few).SameBytes(few));

  Tensor weights = Drawn({48, 512}), made = Quantised("lut4", weights);
  CHECK(made.encoding()->table.dims() ==
        Dims{2, 1, 16, 1});  // 24 is the largest divisor of 48 up to 32
  CHECK(RelativeError(made, weights) <
        0.105);  // 4 bits for normally distributed numbers: 0.0975 (Max 1960, table I)
  CHECK(RelativeError(made, weights) > 0.09);
}

TEST_CASE("quantisers: partial reads agree with a full read") {
  Tensor weights = Drawn({3, 32, 40});
  for (const Quantiser& quantiser : Quantisers()) {
    INFO(quantiser.name);
    Tensor made = quantiser.apply(weights);
    CHECK(made.dims() == weights.dims());
    CHECK(made.dtype() == weights.dtype());
    std::vector<double> all = made.Doubles();
    for (int64_t first : {int64_t{0}, int64_t{8}, int64_t{1272}, int64_t{3832}}) {
      std::vector<float> part(8);
      made.Read(first, 8, reinterpret_cast<std::byte*>(part.data()));
      for (int64_t i = 0; i < 8; ++i) CHECK(part[i] == static_cast<float>(all[first + i]));
    }
  }
}

TEST_CASE("quantisers: NaN stays NaN and affects only its block") {
  for (std::string_view name : {"int8", "int4", "lut4"}) {
    for (float bad : {std::numeric_limits<float>::infinity(), std::nanf("")}) {
      std::vector<float> values(64 * 64, 1);
      values[32] = bad;
      Tensor made = Quantised(name, Tensor::Of<float>({64, 64}, values));
      INFO(name);
      CHECK(!std::isfinite(made.Double(32)));
      CHECK(made.Double(33 * 64) == Approx(1).epsilon(1e-3));
    }
  }
}

// Scaling by powers of two is exact, so the relative error must be the same at every magnitude.
TEST_CASE("quantisers: the relative error does not depend on the magnitude of weights") {
  const Tensor usual = Drawn({32, 64}, 1);
  for (std::string_view name : {"int8", "int4", "lut4"}) {
    const double wanted = RelativeError(Quantised(name, usual), usual);
    for (int exponent : {-50, -40, -24, -14, -10, -5, 5, 20, 22, 30, 50}) {
      INFO(name << " 2^" << exponent);
      std::vector<double> values = usual.Doubles();
      for (double& value : values) value = std::ldexp(value, exponent);
      const Tensor scaled = Tensor::Of({32, 64}, values).Cast(DType::kFp32);
      const Tensor made = Quantised(name, scaled);
      CHECK(RelativeError(made, scaled) == Approx(wanted).epsilon(name == "lut4" ? 1e-3 : 1e-6));
      for (double value : made.Doubles()) CHECK(std::isfinite(value));
    }
  }
}

TEST_CASE("quantisers: values around the fp16 maximum") {
  for (std::string_view name : {"int8", "int4", "lut4"})
    for (float greatest : {65503.0F, 65504.0F, 65519.0F, 65520.0F, 1e5F, 8.4e6F, 1e30F}) {
      INFO(name << " " << greatest);
      std::vector<float> values(64 * 64, 1);
      values[32] = greatest;
      values[33] = -greatest;
      Tensor made = Quantised(name, Tensor::Of<float>({64, 64}, values));
      CHECK(made.Double(32) == Approx(static_cast<double>(greatest)).epsilon(0.2));
      for (double value : made.Doubles()) CHECK(std::isfinite(value));
    }
}

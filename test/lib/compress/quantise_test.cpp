#include "lib/compress/quantise.h"

#include <cmath>
#include <limits>
#include <random>

#include "lib/ir/encoding.h"
#include "test/catch.h"

using namespace mlc;
using namespace mlc::compress;

namespace {

std::vector<float> Normal(int64_t count, float scale = 0.02F, unsigned seed = 3) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal(0, scale);
  std::vector<float> values(static_cast<size_t>(count));
  for (float& value : values) value = normal(random);
  return values;
}
Tensor Drawn(const Dims& dims, DType dtype = DType::kFp16, float scale = 0.02F) {
  return Tensor::Of(dims, Normal(ElementCount(dims), scale)).Cast(dtype).InMemory();
}

Quantised Made(std::string_view scheme, const Tensor& weight, int threads = 1, bool half = true) {
  return Quantise(
      weight,
      {.scheme = ParseScheme(scheme), .axes = {"weight", 0, 1}, .half = half, .threads = threads});
}

double SquaredError(const Tensor& a, const Tensor& b) {
  const std::vector<double> x = a.Doubles(), y = b.Doubles();
  double sum = 0;
  for (size_t i = 0; i < x.size(); ++i) sum += (x[i] - y[i]) * (x[i] - y[i]);
  return sum;
}

constexpr const char* kSchemes[] = {"int8",
                                    "int8:asym",
                                    "int8:block=tensor",
                                    "int8:block=16,asym",
                                    "int4",
                                    "int4:block=row",
                                    "int4:asym",
                                    "int4:block=tensor",
                                    "pal1",
                                    "pal2",
                                    "pal3",
                                    "pal4",
                                    "pal6",
                                    "pal8",
                                    "pal4:group=8",
                                    "pal3:group=4,axis=in",
                                    "pal2:vec=2",
                                    "pal3:group=8,vec=4",
                                    "pal4:scale=row",
                                    "pal4:lut=int8",
                                    "pal4:group=4,lut=int8",
                                    "sparse:0.75",
                                    "sparse:2:4",
                                    "sparse:0.5+int8",
                                    "sparse:0.6+int4",
                                    "sparse:1:2+pal4",
                                    "sparse:0.75+pal3:group=8"};

}  // namespace

TEST_CASE("quantise: the reported error and size are those of the encoding") {
  for (const char* scheme : kSchemes)
    for (const Dims& dims : {Dims{24, 64, 3, 3}, Dims{17, 37}, Dims{40, 36}})
      for (const DType dtype : {DType::kFp16, DType::kFp32}) {
        INFO(scheme << " of " << dims.size() << " dimensions, " << Name(dtype));
        const Tensor weight = Drawn(dims, dtype);
        const Quantised made = Made(scheme, weight, 1, dtype == DType::kFp16);
        REQUIRE(made.refused.empty());
        REQUIRE(made.tensor.encoding());
        CHECK(made.tensor.dtype() == dtype);
        CHECK(made.tensor.dims() == dims);
        const double error = SquaredError(Dense(made.tensor), weight);
        // A result in fp16 is rounded once more.
        const double rounding = dtype == DType::kFp16 ? 3e-7 * made.energy : 1e-12 * made.energy;
        CHECK(std::fabs(error - made.error) <= 0.01 * error + rounding);
        CHECK(made.energy == Approx(SquaredError(weight, Tensor::Full(dtype, dims, 0))));
      }
}

TEST_CASE("quantise: results do not depend on the number of threads") {
  const Tensor weight = Drawn({96, 80, 3, 3});
  for (const char* scheme : kSchemes) {
    INFO(scheme);
    const Quantised one = Made(scheme, weight, 1), eight = Made(scheme, weight, 8);
    CHECK(Dense(one.tensor).SameBytes(Dense(eight.tensor)));
    CHECK(one.error == eight.error);
  }
}

TEST_CASE("quantise: channels of zeros and of tiny numbers are safe") {
  constexpr int64_t kRow = 96;
  std::vector<float> values = Normal(8 * kRow);
  std::fill_n(values.begin() + kRow, kRow, 0.0F);
  for (int64_t i = 0; i < kRow; ++i) values[3 * kRow + i] *= 1e-5F;
  for (const DType dtype : {DType::kFp16, DType::kFp32})
    for (const char* scheme : kSchemes) {
      INFO(scheme << " in " << Name(dtype));
      const Tensor weight = Tensor::Of<float>({8, kRow}, values).Cast(dtype);
      const Quantised made = Made(scheme, weight);
      const Tensor decoded = Dense(made.tensor);
      CHECK(!decoded.range().nan);
      CHECK(decoded.range().finite());
      if (scheme[0] != 'i') continue;
      for (int64_t i = kRow; i < 2 * kRow; ++i) REQUIRE(decoded.Double(i) == 0);
      // No scale is 0 or subnormal in fp16.
      for (const double scale : made.tensor.encoding()->scale.Doubles())
        CHECK(std::fabs(scale) >= 0x1p-14);
    }
}

TEST_CASE("quantise: weights of any magnitude keep their relative error in fp32") {
  for (const char* scheme : {"int8", "int4", "int4:asym", "pal4", "pal4:group=8", "pal2:vec=2"}) {
    const double usual = Made(scheme, Drawn({32, 64}, DType::kFp32)).error /
                         Made(scheme, Drawn({32, 64}, DType::kFp32)).energy;
    for (const float scale : {1e-7F, 1e-4F, 1e3F, 1e7F}) {
      INFO(scheme << " at " << scale);
      if (std::string_view(scheme) == "pal2:vec=2" && scale != 1e3F) continue;
      const Quantised made = Made(scheme, Drawn({32, 64}, DType::kFp32, scale));
      CHECK(made.error / made.energy == Approx(usual).epsilon(0.05));
    }
  }
}

TEST_CASE("quantise: weights that are not finite are refused, and unchanged") {
  for (const float bad :
       {std::numeric_limits<float>::infinity(), -std::numeric_limits<float>::infinity(),
        std::numeric_limits<float>::quiet_NaN()})
    for (const char* scheme : kSchemes) {
      INFO(scheme << " of " << bad);
      std::vector<float> values = Normal(16 * 40);
      values[333] = bad;
      const Tensor weight = Tensor::Of<float>({16, 40}, values);
      const Quantised made = Made(scheme, weight);
      CHECK(!made.refused.empty());
      CHECK(made.tensor.SameBytes(weight));
    }
}

TEST_CASE("quantise: int8 maps the extreme of a row to 127 or less, int4 to -8") {
  std::vector<float> values(2 * 40, 0);
  for (int i = 0; i < 40; ++i) values[i] = static_cast<float>(i - 20) * 0.125F;
  const Quantised made = Made("int8", Tensor::Of<float>({2, 40}, values));
  for (const int64_t q : made.tensor.encoding()->data.Ints()) CHECK(std::abs(q) <= 127);
  std::vector<float> steps;
  for (int i = 0; i < 64; ++i) steps.push_back(static_cast<float>(i % 16 - 8) * 0.125F);
  for (int i = 0; i < 64; ++i) steps.push_back(static_cast<float>(8 - i % 16) * 0.25F);
  const Tensor exact = Tensor::Of<float>({2, 64}, steps);
  const Quantised four = Made("int4", exact);
  CHECK(four.error == 0);
  CHECK(Dense(four.tensor).Doubles() == exact.Doubles());
  CHECK(four.tensor.encoding()->scale.Doubles() == std::vector<double>{0.125, 0.125, -0.25, -0.25});
}

// reference/compression.md, section 6: 1.5 dB better than scaling the extremes of a block of 32 to
// 7, 2.6 to 3.7 dB for a row of 1024.
TEST_CASE("quantise: int4 has less error than scaling the maximum to 7") {
  for (const auto& [scheme, block, gain] :
       {std::tuple("int4", 32, 1.3), std::tuple("int4:block=row", 1024, 2.4)}) {
    const Tensor weight = Drawn({64, 1024}, DType::kFp32);
    const std::vector<double> x = weight.Doubles();
    double errors = 0;
    for (size_t at = 0; at < x.size(); at += block) {
      double greatest = 0;
      for (size_t i = at; i < at + block; ++i) greatest = std::max(greatest, std::fabs(x[i]));
      for (size_t i = at; i < at + block; ++i) {
        const double off = std::nearbyint(x[i] / greatest * 7) * greatest / 7 - x[i];
        errors += off * off;
      }
    }
    CHECK(10 * std::log10(errors / Made(scheme, weight).error) > gain);
  }
}

TEST_CASE("quantise: a palette is exact for as many values as it has entries") {
  std::vector<float> values;
  for (int i = 0; i < 64 * 40; ++i)
    values.push_back(static_cast<float>((i * 7 % 16) * (i * 7 % 16)) / 64);
  const Tensor few = Tensor::Of<float>({64, 40}, values);
  for (const char* scheme : {"pal4", "pal6", "pal4:group=16"}) {
    const Quantised made = Made(scheme, few);
    CHECK(made.error == 0);
    CHECK(Dense(made.tensor).Doubles() == few.Doubles());
  }
}

TEST_CASE("quantise: tables are ascending, and every entry that is used is in its place") {
  const Quantised made = Made("pal3:group=8", Drawn({24, 64}));
  const std::vector<double> table = made.tensor.encoding()->table.Doubles();
  REQUIRE(table.size() == 24);
  for (size_t i = 0; i < table.size(); i += 8)
    CHECK(std::is_sorted(table.begin() + i, table.begin() + i + 8));
}

TEST_CASE("quantise: sparsity keeps the largest, and exactly as many as asked for") {
  std::vector<float> values(16 * 32);
  for (size_t i = 0; i < values.size(); ++i)
    values[i] = (i % 2 ? -1.0F : 1.0F) * static_cast<float>(1 + i * 7 % 512);
  const Tensor weight = Tensor::Of<float>({16, 32}, values);
  auto zeros = [](const Quantised& made) {
    const std::vector<double> all = Dense(made.tensor).Doubles();
    return std::count(all.begin(), all.end(), 0.0);
  };
  const Quantised share = Made("sparse:0.75", weight);
  CHECK(zeros(share) == 384);
  for (const double x : Dense(share.tensor).Doubles()) CHECK((x == 0 || std::fabs(x) > 384));
  // Of equal magnitudes, the first become zero.
  const Quantised equal = Made("sparse:0.5", Tensor::Full(DType::kFp32, {16, 32}, 3));
  CHECK(zeros(equal) == 256);
  CHECK(Dense(equal.tensor).Double(255) == 0);
  const std::vector<double> few = Dense(Made("sparse:3:4", weight).tensor).Doubles();
  for (size_t i = 0; i < few.size(); i += 4)
    CHECK(std::count(few.begin() + i, few.begin() + i + 4, 0.0) == 3);
  // Kernels: of the inputs at each place.
  const Quantised conv = Made("sparse:2:4", Drawn({4, 8, 3, 3}, DType::kFp32));
  const std::vector<double> taps = Dense(conv.tensor).Doubles();
  for (int out = 0; out < 4; ++out)
    for (int k = 0; k < 9; ++k)
      for (int in = 0; in < 8; in += 4) {
        int count = 0;
        for (int i = 0; i < 4; ++i) count += taps[(out * 8 + in + i) * 9 + k] == 0 ? 1 : 0;
        CHECK(count == 2);
      }
}

TEST_CASE("quantise: importance moves the error to unimportant inputs") {
  const Tensor weight = Drawn({64, 64}, DType::kFp32);
  std::vector<float> importance(64, 1);
  for (size_t i = 0; i < 8; ++i) importance[i] = 100;
  const InputStatistics inputs{
      .columns = 64, .count = 1, .mean = std::vector<float>(64), .square = importance};
  for (const char* scheme : {"int4:block=row", "pal2", "pal2:group=16", "sparse:0.5"}) {
    INFO(scheme);
    auto error_of = [&](const Quantised& made) {
      const std::vector<double> x = Dense(made.tensor).Doubles(), y = weight.Doubles();
      double sum = 0;
      for (size_t i = 0; i < x.size(); ++i)
        sum += static_cast<double>(importance[i % 64]) * (x[i] - y[i]) * (x[i] - y[i]);
      return sum;
    };
    Request request{.scheme = ParseScheme(scheme), .axes = {"weight", 0, 1}, .half = false};
    const double plain = error_of(Quantise(weight, request));
    request.inputs = &inputs;
    const Quantised made = Quantise(weight, request);
    CHECK(error_of(made) < 0.999 * plain);
    CHECK(made.output_error == Approx(error_of(made)).epsilon(1e-3));
  }
}

TEST_CASE("quantise: sizes that do not divide are stepped to legal ones") {
  auto legal = [](std::string_view scheme, Dims dims) {
    std::string why;
    const Scheme made = LegalScheme(ParseScheme(scheme), dims, {"weight", 0, 1}, &why);
    return Text(made) + (why.empty() ? "" : " (" + why + ")");
  };
  CHECK(legal("int4:block=32", {8, 64}) == "int4:block=32");
  CHECK(legal("int4:block=32", {8, 48}) ==
        "int4:block=24 (blocks of 24, because 32 does not divide 48 inputs)");
  CHECK(legal("int4:block=32", {8, 32}) == "int4:block=row");
  CHECK(legal("int4:block=32", {8, 37}) ==
        "int4:block=row (one scale per row, because blocks of 32 do not divide 37 inputs)");
  CHECK(legal("pal4:group=16", {1000, 8}) ==
        "pal4:group=10 (groups of 10, because 16 does not divide 1000 channels)");
  CHECK(legal("pal4:group=16", {17, 8}) ==
        "pal4 (one table, because groups of 16 do not divide 17 channels)");
  CHECK(legal("pal4:group=16", {16, 8}) == "pal4");
  CHECK(legal("pal4:group=4,axis=in", {17, 8}) == "pal4:group=4,axis=in");
  CHECK(legal("pal4:vec=4", {18, 8}) ==
        "pal4:vec=2 (vectors of 2, because 4 does not divide 18 outputs)");
}

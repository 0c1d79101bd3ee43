#include "lib/compress/latent_weight.h"

#include <cmath>

#include "lib/compress/quantise.h"
#include "lib/compress/scheme.h"
#include "test/catch.h"

using namespace mlc;
using namespace mlc::compress;

namespace {

Tensor Source(const Dims& dims) {
  std::vector<float> numbers(static_cast<size_t>(ElementCount(dims)));
  for (size_t i = 0; i < numbers.size(); ++i)
    numbers[i] = std::sin(static_cast<float>(i * i % 1013)) * (1 + static_cast<float>(i % 7));
  return Tensor::Of(dims, numbers);
}

Tensor Compressed(const Tensor& source, const std::string& scheme) {
  const Request request{.scheme = ParseScheme(scheme),
                        .axes = {.param = "weight", .output = 0, .input = 1},
                        .half = true,
                        .target = Opset::kIos18};
  const Quantised made = Quantise(source, request);
  REQUIRE(made.refused.empty());
  REQUIRE(made.tensor.encoding());
  return made.tensor;
}

double ErrorOf(const std::vector<double>& values, const std::vector<double>& wanted) {
  double sum = 0;
  for (size_t i = 0; i < values.size(); ++i) {
    const double d = values[i] - wanted[i];
    sum += d * d;
  }
  return sum;
}

}  // namespace

TEST_CASE("latent weights express what their encodings can") {
  const Tensor source = Source({32, 64});
  for (const char* scheme : {"pal4", "pal2:group=8", "pal4:vec=2", "pal3:scale=row",
                             "int8:block=row", "int4:block=32", "int4:block=32,asym"}) {
    INFO(scheme);
    const Tensor encoded = Compressed(source, scheme);
    auto weight = LatentWeight::Of(encoded, source);
    REQUIRE(weight);
    // Assigned to the nearest value, the error is that of the quantiser or less.
    const std::vector<float> values = weight->Values();
    const std::vector<double> wanted = source.Doubles(), own(values.begin(), values.end());
    CHECK(ErrorOf(own, wanted) <= ErrorOf(Dense(encoded).Doubles(), wanted) * 1.0001);
    // What is written is read as these values, in the same form.
    const Tensor written = weight->Encoded();
    CHECK(written.dtype() == encoded.dtype());
    CHECK(written.dims() == encoded.dims());
    const std::vector<double> read = Dense(written).Doubles();
    for (size_t i = 0; i < read.size(); ++i)
      REQUIRE(read[i] == Approx(own[i]).epsilon(1e-3).margin(1e-6));
    REQUIRE(written.encoding());
    CHECK(written.encoding()->form == encoded.encoding()->form);
    CHECK(written.encoding()->data.dtype() == encoded.encoding()->data.dtype());
  }
}

TEST_CASE("latent weights follow gradients") {
  const Tensor source = Source({16, 32});
  for (const char* scheme : {"pal3", "pal3:group=4", "pal4:vec=2", "pal3:scale=row",
                             "int8:block=row", "int4:block=32"}) {
    INFO(scheme);
    auto weight = LatentWeight::Of(Compressed(source, scheme), source);
    REQUIRE(weight);
    // Other tables and scales can express the values that are wanted.
    std::vector<double> wanted;
    for (const float x : weight->Values()) wanted.push_back(1.05 * static_cast<double>(x));
    double first = 0, last = 0;
    for (int step = 0; step < 200; ++step) {
      const std::vector<float> values = weight->Values();
      last = ErrorOf({values.begin(), values.end()}, wanted);
      if (step == 0) first = last;
      std::vector<float> gradient(values.size());
      for (size_t i = 0; i < values.size(); ++i)
        gradient[i] = 2 * (values[i] - static_cast<float>(wanted[i]));
      weight->Step(gradient, 0.01 * (1 - step / 200.0));
    }
    CHECK(last < 0.2 * first);
    CHECK(ErrorOf(Dense(weight->Encoded()).Doubles(), wanted) < 0.25 * first);
  }
}

TEST_CASE("latent weights refuse forms that they do not know") {
  const Tensor source = Source({32, 64});
  CHECK_FALSE(LatentWeight::Of(source, source));
  CHECK_FALSE(LatentWeight::Of(Compressed(source, "sparse:0.5"), source));
  CHECK_FALSE(LatentWeight::Of(Compressed(source, "sparse:0.5+int8"), source));
  CHECK_FALSE(LatentWeight::Of(Compressed(source, "pal4:lut=int8"), source));
}

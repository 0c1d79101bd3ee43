// Tests that weights read as fp32 are bit-identical to the tensor's own decoding.
#include "lib/engine/product_weights.h"

#include <array>
#include <atomic>
#include <new>
#include <thread>

#include "lib/ir/concat_slice.h"
#include "test/catch.h"
#include "test/lib/ir/encodings.h"

namespace mlc::test {
using namespace engine;
namespace {

void CheckReading(const Tensor& tensor, const Weights& weights) {
  Pin<float> expected = tensor.Cast(DType::kFp32).data<float>();
  for (int64_t first : {0, 1, 7, 32, 1000, 1025})
    for (int64_t count : {1, 2, 31, 64, 1024, 3001}) {
      INFO(first << " +" << count);
      std::vector<float> read(static_cast<size_t>(count));
      weights.Read(first, count, read.data());
      CHECK(std::memcmp(read.data(), expected.data() + first, read.size() * sizeof(float)) == 0);
    }
}

void CheckAllWays(const Tensor& tensor) {
  REQUIRE(tensor.size() > 4096);
  CheckReading(tensor, Weights::AsTheyAre(tensor));
  CheckReading(tensor, Weights::Expanded(tensor));
  CHECK(Weights::Expanded(tensor).data() != nullptr);
}

TEST_CASE("Weights reads encoded weights like the tensor") {
  int encoded = 0;
  for (DType dtype : {DType::kFp32, DType::kFp16})
    for (const EncodingSample& sample : EncodingSamples(dtype)) {
      INFO(sample.name << " of " << Name(dtype));
      Tensor one = Tensor::Encoded(sample.encoding);
      Tensor tensor = Join({one, one, one}, 0);
      encoded += tensor.is_lazy() && tensor.encoding();
      CheckAllWays(tensor);
      CheckAllWays(tensor.Cast(DType::kFp16));
      CheckAllWays(tensor.Cast(DType::kFp32));
      const Encoding* e = tensor.encoding();  // palettes of vectors are decoded once
      if (e && !(e->form == Encoding::Form::kPalette && e->vector() > 1))
        CHECK(Weights::AsTheyAre(tensor).data() == nullptr);
    }
  CHECK(encoded >= 30);
}

// For multiples of 16 the levels are scaled, otherwise the elements.
TEST_CASE("Weights reads blocks of any length like the tensor") {
  FixedDraw draw;
  for (DType dtype : {DType::kInt4, DType::kUint4})
    for (int64_t block : {1, 8, 15, 16, 24, 32, 240, 480}) {
      INFO(Name(dtype) << " in blocks of " << block);
      CheckAllWays(Tensor::Encoded({.dtype = DType::kFp16,
                                    .data = draw.Integers(dtype, {16, 480}),
                                    .scale = draw.Scales({16, 480 / block}, DType::kFp16),
                                    .offset = draw.Integers(dtype, {16, 480 / block})}));
    }
}

TEST_CASE("Weights keeps fp16 tensors that were converted to fp32") {
  FixedDraw draw;
  Tensor half = draw.Floats({96, 64}, DType::kFp16).InMemory();
  for (const Tensor& tensor : {half, half.Cast(DType::kFp32), half.Transposed({1, 0}),
                               half.Cast(DType::kFp32).Transposed({1, 0})}) {
    CHECK(IsNarrow(tensor));
    CheckAllWays(tensor);
    CHECK(Weights::AsTheyAre(tensor).data() == nullptr);
  }
  Tensor single = draw.Floats({96, 64}).InMemory();
  CHECK_FALSE(IsNarrow(single));
  CHECK(Weights::AsTheyAre(single).data() ==
        reinterpret_cast<const float*>(single.InPlace(0, 1).data()));
  CheckAllWays(single.Transposed({1, 0}));
}

TEST_CASE("PreparedWeights prepares a constant once") {
  FixedDraw draw;
  Tensor tensor = Tensor::Encoded({.dtype = DType::kFp16,
                                   .data = draw.Integers(DType::kInt8, {64, 128}),
                                   .scale = draw.Scales({64, 1}, DType::kFp16)});
  PreparedWeights prepared;
  int made = 0;
  auto get = [&](const Tensor& of, std::string_view form) {
    return prepared.Get<int>(of, form, [&] { return std::make_shared<const int>(++made); });
  };
  CHECK(*get(tensor, "a") == 1);
  CHECK(*get(Tensor::Encoded(*tensor.encoding()), "a") == 1);
  CHECK(*get(tensor, "b") == 2);
  CHECK(*get(tensor.Cast(DType::kFp32), "a") == 3);
  CHECK(*get(tensor.Reshaped({128, 64}), "a") == 4);
  CHECK(*get(tensor.InMemory(), "a") == 5);
  CHECK(*get(tensor, "a") == 1);
}

TEST_CASE("PreparedWeights distinguishes types of the same bytes", "[prepared]") {
  constexpr int64_t kSize = 1 << 16;  // large enough for a lazy cast
  const std::vector<std::byte> bytes(kSize, std::byte{255});
  PreparedWeights prepared;
  auto first = [&](DType dtype) {
    const Tensor tensor = Tensor::Borrowed(dtype, {kSize}, bytes, [] {}).Cast(DType::kFp32);
    REQUIRE(tensor.is_lazy());
    return *prepared.Get<double>(
        tensor, "first", [&] { return std::make_shared<const double>(tensor.Doubles()[0]); });
  };
  CHECK(first(DType::kInt8) == -1);
  CHECK(first(DType::kUint8) == 255);
}

TEST_CASE("PreparedWeights prepares different constants in parallel", "[prepared]") {
  FixedDraw draw;
  const std::array<Tensor, 2> tensors{draw.Floats({4}).InMemory(), draw.Floats({4}).InMemory()};
  PreparedWeights prepared;
  std::atomic<int> making = 0, made = 0;
  auto get = [&](const Tensor& tensor) {
    prepared.Get<int>(tensor, "form", [&] {
      ++making;
      while (making < 2) std::this_thread::yield();  // wait for the other thread
      return std::make_shared<const int>(++made);
    });
  };
  std::vector<std::thread> threads;
  for (int i = 0; i < 6; ++i) threads.emplace_back([&, i] { get(tensors[i % 2]); });
  for (std::thread& thread : threads) thread.join();
  CHECK(made == 2);
  auto fails = [&] {
    prepared.Get<int>(tensors[0], "other",
                      []() -> std::shared_ptr<const int> { throw std::bad_alloc(); });
  };
  for (int i = 0; i < 2; ++i) CHECK_THROWS_AS(fails(), std::bad_alloc);  // every call tries again
}

}  // namespace
}  // namespace mlc::test

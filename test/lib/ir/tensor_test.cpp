#include "lib/ir/tensor.h"

#include <sys/mman.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <limits>
#include <numeric>
#include <random>
#include <thread>
#include <type_traits>

#include "lib/ir/subbyte.h"
#include "lib/support/error.h"
#include "lib/support/mapped_file.h"
#include "test/catch.h"
#include "test/read_in_parts.h"

namespace mlc {
namespace {

std::vector<float> Iota(int64_t count, float step = 1) {
  std::vector<float> values(static_cast<size_t>(count));
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i) * step;
  return values;
}

template <class T>
std::vector<T> Values(const Tensor& tensor) {
  Pin<T> pin = tensor.data<T>();
  return {pin.begin(), pin.end()};
}

// Reference implementation of a transposition.
template <class T>
std::vector<T> TransposedByHand(const std::vector<T>& values, const Dims& dims,
                                const std::vector<int>& perm) {
  std::vector<T> result;
  Dims index(dims.size(), 0);
  for (size_t i = 0; i < values.size(); ++i) {
    Dims source(dims.size());
    for (size_t d = 0; d < dims.size(); ++d) source[perm[d]] = index[d];
    int64_t at = 0;
    for (size_t d = 0; d < dims.size(); ++d) at = at * dims[d] + source[d];
    result.push_back(values[at]);
    for (size_t d = dims.size(); d-- > 0;) {
      if (++index[d] < dims[perm[d]]) break;
      index[d] = 0;
    }
  }
  return result;
}

// A temporary file with these bytes, mapped into memory.
class File {
 public:
  explicit File(const std::vector<uint8_t>& bytes)
      : path_(std::filesystem::temp_directory_path() /
              ("tensor_test_" + std::to_string(getpid()))) {
    std::ofstream(path_, std::ios::binary)
        .write(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    mapped = MappedFile::Open(path_);
    in_parts = OpenInParts(path_);
  }
  ~File() { std::filesystem::remove(path_); }
  std::shared_ptr<const MappedFile> mapped, in_parts;

 private:
  std::filesystem::path path_;
};

TEST_CASE("tensor: element counts") {
  CHECK(ElementCount({}) == 1);
  CHECK(ElementCount({2, 0, 3}) == 0);
  CHECK(ElementCount({int64_t{1} << 62, 0, 8}) == 0);
  CHECK_THROWS_WITH(ElementCount({int64_t{1} << 32, int64_t{1} << 32}),
                    ContainsSubstring("resource-limit"));
  CHECK_THROWS_WITH(ElementCount({2, -1}), ContainsSubstring("dimension is -1"));
  CHECK(ByteCount(DType::kUint3, 9) == 4);
  CHECK(ByteCount(DType::kUint1, 9) == 2);
  CHECK(ByteCount(DType::kFp64, 3) == 24);
}

TEST_CASE("tensor: dtype names round trip") {
  for (int i = 1; i < kDTypeCount; ++i)
    CHECK(ParseDType(Name(static_cast<DType>(i))) == static_cast<DType>(i));
  CHECK(!ParseDType("none"));
  CHECK(Bits(DType::kUint6) == 6);
  CHECK((IsFloat(DType::kBf16) && IsSigned(DType::kInt4) && IsInteger(DType::kUint1) &&
         !IsInteger(DType::kBool)));
}

TEST_CASE("tensor: conversions follow the rules of Cast") {
  Tensor floats = Tensor::Vector<double>({2.9, -2.9, 300, -1, NAN, 1e30, -INFINITY});
  CHECK(Values<int8_t>(floats.Cast(DType::kInt8)) ==
        std::vector<int8_t>{2, -2, 127, -1, 0, 127, -128});
  CHECK(Values<uint8_t>(floats.Cast(DType::kUint8)) ==
        std::vector<uint8_t>{2, 0, 255, 0, 0, 255, 0});
  CHECK(floats.Cast(DType::kInt64).Ints()[5] == std::numeric_limits<int64_t>::max());
  CHECK(Values<uint8_t>(floats.Cast(DType::kBool)) == std::vector<uint8_t>{1, 1, 1, 1, 1, 1, 1});
  Tensor ints = Tensor::Vector<int64_t>({-1, 256, (int64_t{1} << 53) + 1, 0});
  CHECK(Values<uint8_t>(ints.Cast(DType::kUint8)) == std::vector<uint8_t>{255, 0, 1, 0});
  CHECK(ints.Cast(DType::kUint64).data<uint64_t>()[0] == std::numeric_limits<uint64_t>::max());
  CHECK(ints.Cast(DType::kBool).Ints() == std::vector<int64_t>{1, 1, 1, 0});
  CHECK(ints.Int(2) == (int64_t{1} << 53) + 1);
  // 2^62 + 2^54 is the midpoint of two bf16 values, and adding 1 breaks the tie, although a double
  // cannot represent the sum.
  Tensor half_way = Tensor::Vector<int64_t>(
      {(int64_t{1} << 62) + (int64_t{1} << 54), (int64_t{1} << 62) + (int64_t{1} << 54) + 1});
  CHECK(half_way.Cast(DType::kBf16).data<BFloat16>()[0].bits == 0x5E80);
  CHECK(half_way.Cast(DType::kBf16).data<BFloat16>()[1].bits == 0x5E81);
}

TEST_CASE("tensor: small values convert exactly between all byte-sized dtypes") {
  for (int from = 1; from < kDTypeCount; ++from) {
    for (int to = 1; to < kDTypeCount; ++to) {
      auto a = static_cast<DType>(from), b = static_cast<DType>(to);
      if (a == DType::kString || b == DType::kString) continue;
      CAPTURE(Name(a), Name(b));
      Tensor bits = Tensor::Vector<int32_t>({0, 1, 1, 0, 1, 0, 0, 0, 1, 1, 0});
      CHECK(bits.Cast(a).Cast(b).Ints() == bits.Ints());
      if (Bits(a) >= 3 && Bits(b) >= 3 && a != DType::kBool && b != DType::kBool) {
        Tensor small = Tensor::Vector<int32_t>({0, 1, 2, 3, 4, 5, 6, 7, 3, 1, 7});
        CHECK(small.Cast(a).Cast(b).Ints() == small.Ints());
      }
    }
  }
}

TEST_CASE("tensor: sub-byte types are packed from the lowest bit; conversions wrap or saturate") {
  Tensor packed = Tensor::Vector<int32_t>({1, 2, 3, 4}).Cast(DType::kUint3);
  CHECK(packed.byte_size() == 2);
  CHECK(packed.bytes()[0] == std::byte{0b11'010'001});
  CHECK(packed.bytes()[1] == std::byte{0b1000});
  CHECK(Tensor::Vector<int32_t>({9, -9, -8}).Cast(DType::kInt4).Ints() ==
        std::vector<int64_t>{-7, 7, -8});
  CHECK(Tensor::Vector<float>({9, -9, 3.9f}).Cast(DType::kInt4).Ints() ==
        std::vector<int64_t>{7, -8, 3});
  CHECK(Tensor::Full(DType::kInt4, {3}, -3).Ints() == std::vector<int64_t>{-3, -3, -3});
  Tensor six = Tensor::Vector<int32_t>({60, 1, 33, 7, 9, 63}).Cast(DType::kUint6).Reshaped({3, 2});
  CHECK(six.Transposed({1, 0}).Ints() == std::vector<int64_t>{60, 33, 9, 1, 7, 63});
  CHECK(six.Rows(1, 3).Ints() == std::vector<int64_t>{33, 7, 9, 63});
  CHECK(six.Int(4) == 9);
  Tensor other = Tensor::Owned(DType::kUint1, {3}, {std::byte{0b11111'101}});
  CHECK(other.SameBytes(Tensor::Vector<int32_t>({1, 0, 1}).Cast(DType::kUint1)));
}

TEST_CASE("tensor: large sub-byte conversions read in pieces") {
  std::vector<int32_t> values(200001);
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<int32_t>(i * 7 % 8);
  Tensor packed = Tensor::Vector(values).Cast(DType::kUint3);
  CHECK(packed.is_lazy());
  Tensor back = packed.Cast(DType::kInt32);
  std::vector<int32_t> part(70001);
  back.Read(99997, 70001, reinterpret_cast<std::byte*>(part.data()));
  CHECK(std::equal(part.begin(), part.end(), values.begin() + 99997));
  CHECK(back.SameBytes(Tensor::Vector(values)));
}

TEST_CASE("tensor: Full uses constant memory") {
  Tensor huge = Tensor::Full(DType::kFp16, {1 << 20, 1 << 20, 1 << 10}, 1.5);
  CHECK(huge.is_lazy());
  CHECK(huge.Double(int64_t{1} << 49) == 1.5);
  CHECK(huge.Cast(DType::kInt32).Transposed({2, 0, 1}).Rows(5, 9).Int(12345) == 1);
  CHECK(Tensor::Full(DType::kInt8, {2}, 1000).Ints() == std::vector<int64_t>{127, 127});
}

TEST_CASE("tensor: aligned and unaligned file slices") {
  std::vector<float> values = Iota(5000);
  std::vector<uint8_t> bytes(values.size() * 4 + 3);
  std::memcpy(bytes.data() + 3, values.data(), values.size() * 4);
  File file(bytes);
  Tensor slice = Tensor::FileSlice(file.mapped, 3, DType::kFp32, {50, 100});
  CHECK(slice.file_view().offset == 3);
  CHECK(!slice.is_lazy());
  CHECK(slice.Rows(10, 20).Double(7) == 1007);
  CHECK(slice.Rows(10, 20).file_view().offset == 4003);
  CHECK(Values<float>(slice) == values);
  Pin<std::byte> pin = slice.bytes();
  CHECK(reinterpret_cast<uintptr_t>(pin.data()) % 4 == 0);
  CHECK(Values<float>(slice.Transposed({1, 0}))[1] == 100);
  slice.Release(0, 5000);
  CHECK(slice.SameBytes(Tensor::Of<float>({50, 100}, values)));
  CHECK_THROWS_WITH(Tensor::FileSlice(file.mapped, 4, DType::kFp32, {5000}),
                    ContainsSubstring("bad-file"));
  CHECK_THROWS_WITH(Tensor::FileSlice(file.mapped, ~uint64_t{0}, DType::kFp32, {1}),
                    ContainsSubstring("bad-file"));
}

TEST_CASE("tensor: slices of an unmapped file") {
  std::vector<float> values = Iota(60'000);
  std::vector<uint8_t> bytes(values.size() * 4 + 4);
  std::memcpy(bytes.data() + 4, values.data(), values.size() * 4);
  File file(bytes);
  Tensor there = Tensor::FileSlice(file.mapped, 4, DType::kFp32, {200, 300});
  Tensor slice = Tensor::FileSlice(file.in_parts, 4, DType::kFp32, {200, 300});
  CHECK(slice.is_lazy() == file.in_parts->mapped().empty());
  CHECK(slice.file_view().offset == 4);
  CHECK(slice.Rows(10, 20).file_view().offset == 12004);
  CHECK(slice.Double(59'999) == 59'999);
  CHECK(Values<float>(slice) == values);
  CHECK(slice.SameBytes(there));
  CHECK(slice.hash() == there.hash());
  CHECK(slice.range().high == there.range().high);
  CHECK(slice.InMemory().InPlace(0, 60'000).size() == 240'000);
  for (const Tensor& tensor : {there, slice}) {
    Tensor turned = tensor.Transposed({1, 0}).Cast(DType::kFp16);
    CHECK(turned.Rows(7, 9).Doubles() ==
          there.Cast(DType::kFp16).Transposed({1, 0}).Rows(7, 9).Doubles());
    CHECK(turned.hash() == there.Transposed({1, 0}).Cast(DType::kFp16).hash());
  }
  slice.Release(0, 60'000);
  CHECK(slice.bytes()[4] == there.bytes()[4]);
  CHECK(Tensor::FileSlice(file.in_parts, 1, DType::kInt4, {480'000})
            .SameBytes(Tensor::FileSlice(file.mapped, 1, DType::kInt4, {480'000})));
  CHECK(Tensor::FileSlice(file.in_parts, 4, DType::kFp32, {0}).Ints().empty());
  CHECK_THROWS_WITH(Tensor::FileSlice(file.in_parts, 8, DType::kFp32, {60'000}),
                    ContainsSubstring("bad-file"));
}

TEST_CASE("tensor: transpositions of many shapes, read completely and in pieces") {
  std::mt19937 random(3);
  struct Case {
    Dims dims;
    std::vector<int> perm;
  };
  for (const Case& c : std::vector<Case>{{{70, 130}, {1, 0}},
                                         {{3, 3, 20, 40}, {3, 2, 0, 1}},
                                         {{5, 1, 33, 41}, {0, 3, 1, 2}},
                                         {{2, 50, 60}, {0, 2, 1}},
                                         {{40, 7, 30}, {1, 0, 2}},
                                         {{9, 8, 7, 6, 5}, {4, 2, 0, 3, 1}},
                                         {{1100, 37}, {1, 0}},
                                         {{33, 2100}, {1, 0}},
                                         {{4, 5}, {1, 0}}}) {
    CAPTURE(c.dims);
    std::vector<float> values = Iota(ElementCount(c.dims), 0.25f);
    std::vector<float> expected = TransposedByHand(values, c.dims, c.perm);
    Tensor source = Tensor::Of<float>(c.dims, values);
    Tensor lazy_source =
        Tensor::Lazy(DType::kFp32, c.dims, [&](int64_t first, int64_t count, std::byte* out) {
          std::memcpy(out, values.data() + first, static_cast<size_t>(count) * 4);
        });
    for (const Tensor& from : {source, lazy_source}) {
      Tensor result = from.Transposed(c.perm);
      Tensor narrow = from.Transposed(c.perm).Cast(DType::kFp16),
             other = from.Cast(DType::kFp16).Transposed(c.perm);
      for (int i = 0; i < 20; ++i) {
        int64_t first = random() % result.size(), count = 1 + random() % (result.size() - first);
        std::vector<float> part(count);
        std::vector<Half> halves(count), others(count);
        result.Read(first, count, reinterpret_cast<std::byte*>(part.data()));
        narrow.Read(first, count, reinterpret_cast<std::byte*>(halves.data()));
        other.Read(first, count, reinterpret_cast<std::byte*>(others.data()));
        REQUIRE(std::equal(part.begin(), part.end(), expected.begin() + first));
        for (int64_t k = 0; k < count; ++k) {
          if (halves[k].bits != Half(expected[first + k]).bits) FAIL(k);
          if (others[k].bits != halves[k].bits) FAIL(k);
        }
      }
      CHECK(Values<float>(result) == expected);
      CHECK(narrow.SameBytes(other));
      CHECK(narrow.SameBytes(Tensor::Of<float>(result.dims(), expected).Cast(DType::kFp16)));
    }
  }
}

TEST_CASE("tensor: transpositions of every element size") {
  std::vector<float> values = Iota(40 * 90, 1);
  for (float& value : values) value = std::fmod(value, 100.0f);
  Tensor numbers = Tensor::Of<float>({40, 90}, values);
  for (DType dtype : {DType::kUint8, DType::kInt16, DType::kFp32, DType::kFp64})
    CHECK(Values<float>(numbers.Cast(dtype).Transposed({1, 0}).Cast(DType::kFp32)) ==
          TransposedByHand(values, {40, 90}, {1, 0}));
}

TEST_CASE("tensor: the origin identifies stored elements and transform") {
  Tensor held = Tensor::Of<float>({300, 400}, Iota(120000, 1));
  CHECK(held.origin().plan.empty());
  Tensor half = held.Transposed({1, 0}).Cast(DType::kFp16);
  REQUIRE(half.is_lazy());
  CHECK(half.origin().held.SameBytes(held));
  CHECK(half.origin().plan == held.Cast(DType::kFp16).Transposed({1, 0}).origin().plan);
  CHECK(half.origin().plan == half.Reshaped({120000}).origin().plan);
  for (const Tensor& other : {held.Transposed({1, 0}), held.Cast(DType::kFp16),
                              held.Reshaped({400, 300}).Transposed({1, 0}).Cast(DType::kFp16)})
    CHECK(half.origin().plan != other.origin().plan);
  CHECK(half.InMemory().origin().plan.empty());
}

TEST_CASE("tensor: block sizes for sequential reading") {
  Tensor source = Tensor::Lazy(DType::kFp32, {1000, 8000}, [](int64_t, int64_t, std::byte*) {});
  CHECK(source.BlockElements(1 << 20) == 1 << 18);
  CHECK(source.Cast(DType::kFp16).BlockElements(1 << 20) == 1 << 19);
  // 1024 source elements share a page, so a block has as many rows.
  CHECK(source.Transposed({1, 0}).BlockElements(1 << 20) == 1024 * 1000);
  CHECK(source.Transposed({1, 0}).Cast(DType::kFp16).BlockElements(1) == 1024 * 1000);
  CHECK(source.Reshaped({80, 100, 1000}).Transposed({1, 0, 2}).BlockElements(1 << 20) == 1 << 18);
  Tensor wide = Tensor::Lazy(DType::kFp32, {1 << 20, 4096}, [](int64_t, int64_t, std::byte*) {});
  CHECK(wide.Transposed({1, 0}).BlockElements(1 << 20) * 4 == 32 << 20);
  CHECK(Tensor::Full(DType::kUint3, {100000}, 1).BlockElements(100) % 8 == 0);
}

TEST_CASE("tensor: transpositions compose and cancel") {
  Dims dims{30, 40, 50};
  Tensor source = Tensor::Of<float>(dims, Iota(60000));
  Tensor twice = source.Transposed({2, 0, 1}).Transposed({1, 2, 0});
  CHECK(!twice.is_lazy());
  CHECK(twice.SameBytes(source));
  Tensor mixed = source.Transposed({2, 0, 1}).Cast(DType::kFp64).Transposed({2, 1, 0});
  CHECK(mixed.SameBytes(source.Transposed({1, 0, 2}).Cast(DType::kFp64)));
  // With a reshape in between, the transpositions do not compose.
  Tensor folded = source.Transposed({2, 0, 1}).Reshaped({50, 1200}).Transposed({1, 0});
  CHECK(Values<float>(folded) ==
        TransposedByHand(Values<float>(source.Transposed({2, 0, 1})), {50, 1200}, {1, 0}));
  CHECK(source.Reshaped({30, 1, 2000}).Transposed({1, 0, 2}).dims() == Dims{1, 30, 2000});
  CHECK(!source.Reshaped({30, 1, 2000}).Transposed({1, 0, 2}).is_lazy());
}

TEST_CASE("tensor: fused conversions round once each") {
  std::vector<double> values(5000, 1 + 0x1p-11 + 0x1p-40);
  Tensor source = Tensor::Of<double>({50, 100}, values);
  CHECK(source.Cast(DType::kFp16).data<Half>()[0].bits == 0x3C01);
  CHECK(source.Cast(DType::kFp32).Cast(DType::kFp16).data<Half>()[0].bits == 0x3C00);
  CHECK(source.Cast(DType::kFp32).Transposed({1, 0}).Cast(DType::kFp16).data<Half>()[0].bits ==
        0x3C00);
}

TEST_CASE("tensor: narrowing a widened tensor restores it") {
  Tensor half = Tensor::Of<float>({50, 100}, Iota(5000)).Cast(DType::kFp16).InMemory();
  Tensor back = half.Cast(DType::kFp32).Reshaped({100, 50}).Cast(DType::kFp16);
  CHECK(back.dims() == Dims{100, 50});
  CHECK(back.InPlace(0, 1).data() == half.InPlace(0, 1).data());
  Tensor turned = half.Cast(DType::kFp32).Transposed({1, 0}).Cast(DType::kFp16);
  CHECK(turned.origin().plan == half.Transposed({1, 0}).origin().plan);
  CHECK(turned.SameBytes(half.Transposed({1, 0})));
  // bf16 represents numbers that fp16 does not.
  Tensor other = half.Cast(DType::kBf16).InMemory().Cast(DType::kFp32).Cast(DType::kFp16);
  CHECK(other.is_lazy());
}

TEST_CASE("tensor: Rows shares elements or is lazy") {
  Tensor source = Tensor::Of<float>({100, 80}, Iota(8000));
  Pin<float> part = source.Rows(50, 100).data<float>(), all = source.data<float>();
  CHECK(part.data() == all.data() + 4000);
  Tensor rows = source.Cast(DType::kInt32).Rows(20, 30);
  CHECK(rows.is_lazy());
  CHECK(rows.Int(5) == 1605);
  CHECK(rows.Rows(5, 6).Int(0) == 2000);
  CHECK(source.Rows(3, 3).size() == 0);
  Tensor names = Tensor::Strings({3}, {"a", "b", "c"});
  CHECK(names.Rows(1, 3).strings() == std::vector<std::string>{"b", "c"});
}

TEST_CASE("tensor: pinned elements are computed once across threads and then freed") {
  std::atomic<int> reads = 0;
  Tensor lazy =
      Tensor::Lazy(DType::kInt32, {10000}, [&](int64_t first, int64_t count, std::byte* out) {
        ++reads;
        for (int64_t i = 0; i < count; ++i) {
          auto value = static_cast<int32_t>(first + i);
          std::memcpy(out + i * 4, &value, 4);
        }
      });
  {
    Pin<std::byte> pins[4];
    std::vector<std::thread> threads;
    for (Pin<std::byte>& pin : pins) threads.emplace_back([&] { pin = lazy.bytes(); });
    for (std::thread& thread : threads) thread.join();
    CHECK(reads == 1);
    CHECK(pins[0].data() == pins[3].data());
  }
  CHECK(lazy.is_lazy());
  Tensor held = lazy.InMemory();
  CHECK(reads == 2);
  CHECK(!held.is_lazy());
  CHECK(held.Int(9999) == 9999);
  CHECK(reads == 2);
}

// The compiler rejects views that would outlive a temporary pin.
template <class From>
constexpr bool kGivesSpan = std::is_convertible_v<From, std::span<const float>> ||
                            std::is_constructible_v<std::span<const float>, From>;
static_assert(kGivesSpan<Pin<float>&> && kGivesSpan<const Pin<float>&>);
static_assert(!kGivesSpan<Pin<float>> && !kGivesSpan<const Pin<float>>);
template <class P>
constexpr bool kGivesData = requires(P pin) { std::forward<P>(pin).data(); };
static_assert(kGivesData<Pin<float>&> && !kGivesData<Pin<float>>);

TEST_CASE("tensor: a pin may outlive its tensor") {
  Pin<int32_t> pin = Tensor::Full(DType::kInt32, {100000}, 7).data<int32_t>();
  CHECK(pin[99999] == 7);
  int64_t sum = 0;
  for (int32_t value : Tensor::Vector<int32_t>({1, 2, 3}).data<int32_t>()) sum += value;
  CHECK(sum == 6);
}

TEST_CASE("tensor: range and hash are cached") {
  std::atomic<int> reads = 0;
  Tensor lazy =
      Tensor::Lazy(DType::kFp32, {3, 40000}, [&](int64_t first, int64_t count, std::byte* out) {
        ++reads;
        for (int64_t i = 0; i < count; ++i) {
          float value = first + i == 70000 ? NAN : static_cast<float>(first + i) - 5;
          std::memcpy(out + i * 4, &value, 4);
        }
      });
  Tensor::Range range = lazy.range();
  CHECK(range.low == -5);
  CHECK(range.high == 119994);
  CHECK(range.nan);
  Tensor copy = lazy.InMemory();
  CHECK(lazy.hash() == copy.hash());
  int before = reads;
  CHECK(lazy.Reshaped({120000}).range().high == 119994);
  CHECK(lazy.hash() == copy.hash());
  CHECK(reads == before);
  CHECK(Tensor::Vector<float>({}).range().low > 0);
}

TEST_CASE("tensor: every failing read throws") {
  Tensor lazy = Tensor::Lazy(DType::kInt32, {10000},
                             [](int64_t, int64_t, std::byte*) { throw Error("bad-file", "torn"); });
  CHECK_THROWS_AS(lazy.bytes(), Error);
  CHECK_THROWS_AS(lazy.Cast(DType::kFp32).bytes(), Error);
}

TEST_CASE("tensor: SameBytes compares bits") {
  Tensor zero = Tensor::Vector<float>({0.0f}), minus = Tensor::Vector<float>({-0.0f}),
         nan = Tensor::Vector<float>({NAN});
  CHECK(!zero.SameBytes(minus));
  CHECK(nan.SameBytes(Tensor::Vector<float>({NAN})));
  CHECK(!zero.SameBytes(zero.Reshaped({})));
  CHECK(Tensor().SameBytes(Tensor()));
  CHECK(!zero.SameBytes(Tensor()));
}

TEST_CASE(
    "tensor: elements of less than a byte go there and back, whatever their number and place") {
  for (DType dtype :
       {DType::kUint1, DType::kUint2, DType::kUint3, DType::kInt4, DType::kUint4, DType::kUint6}) {
    INFO(Name(dtype));
    const int64_t steps = int64_t{1} << Bits(dtype), low = IsSigned(dtype) ? -steps / 2 : 0;
    for (int64_t count : {1, 7, 8, 9, 100, 10000}) {
      std::vector<int8_t> values;
      for (int64_t i = 0; i < count; ++i)
        values.push_back(static_cast<int8_t>(low + i * i % 7919 % steps));
      Tensor packed = Tensor::Vector(values).Cast(dtype);
      std::vector<int8_t> back(values.size() + 1, 99);
      for (int64_t first : {int64_t{0}, count / 2, count - 1}) {
        ReadBytes(packed, first, count - first, reinterpret_cast<std::byte*>(back.data()));
        CHECK(std::equal(values.begin() + first, values.end(), back.begin()));
      }
      CHECK(back.back() == 99);
      CHECK(Values<int8_t>(packed.Cast(DType::kInt8)) == values);
      CHECK(packed.bytes().size() == ByteCount(dtype, count));
    }
  }
}

TEST_CASE("tensor: the range of fp16 tensors") {
  auto range = [](std::vector<uint16_t> bits) {
    std::vector<std::byte> bytes(bits.size() * 2);
    std::memcpy(bytes.data(), bits.data(), bytes.size());
    return Tensor::Owned(DType::kFp16, {std::ssize(bits)}, bytes).range();
  };
  // 1, -2, the smallest subnormal and -0 (IEEE 754, 3.6).
  CHECK(range({0x3C00, 0xC000, 0x0001, 0x8000}).low == -2);
  CHECK(range({0x3C00, 0xC000, 0x0001, 0x8000}).high == 1);
  CHECK(range({0x8001, 0x8400}).high == -0x1p-24);
  CHECK(range({0x8001, 0x8400}).low == -0x1p-14);
  CHECK(range({0x7C00, 0x0000}).high == std::numeric_limits<double>::infinity());
  CHECK(!range({0x7C00, 0xFC00}).nan);
  // NaN of either sign; signed infinities are not NaN.
  CHECK(range({0x7E00, 0xFC01, 0x3C00}).nan);
  CHECK(range({0x7E00, 0xFC01, 0x3C00}).low == 1);
  CHECK(range({0x7E00}).low > range({0x7E00}).high);
  // A single one, at any position.
  for (size_t at : {0, 31, 32, 40'000, 79'999}) {
    CAPTURE(at);
    std::vector<uint16_t> many(80'000, 0x3C00);
    many[at] = 0xBC00;
    CHECK(range(many).low == -1);
    CHECK(range(many).high == 1);
    many[at] = 0xFE00;
    CHECK(range(many).nan);
    CHECK(range(many).low == 1);
    many[at] = 0x4000;
    CHECK(!range(many).nan);
    CHECK(range(many).high == 2);
  }
}

TEST_CASE("tensor: Behind finds the file slice of elements") {
  File file(std::vector<uint8_t>(60'000));
  Tensor slice = Tensor::FileSlice(file.mapped, 4, DType::kFp16, {4, 50, 100});
  auto behind = [&](const Tensor& tensor, int64_t first, int64_t count) {
    Tensor::FileView view = tensor.Behind(first, count);
    CHECK(view.file == (view.size > 0 ? file.mapped.get() : nullptr));
    return std::pair(view.offset, view.size);
  };
  using Place = std::pair<uint64_t, uint64_t>;
  CHECK(behind(slice, 0, 20'000) == Place(4, 40'000));
  CHECK(behind(slice.Cast(DType::kFp32), 5000, 100) == Place(10'004, 200));
  // If dimensions below an unmoved dimension are moved, the slice covers all of them.
  CHECK(behind(slice.Transposed({0, 2, 1}), 5001, 2) == Place(10'004, 10'000));
  CHECK(behind(slice.Transposed({2, 0, 1}), 5001, 2) == Place(4, 40'000));
  Tensor half = Tensor::Lazy(
      DType::kFp32, {10'000}, [](int64_t, int64_t, std::byte*) {}, slice);
  CHECK(behind(half, 10, 5) == Place(44, 20));
  CHECK(behind(Tensor::Full(DType::kFp32, {10'000}, 1), 0, 10) == Place(0, 0));
  CHECK(behind(Tensor::Vector(Iota(10'000)).Cast(DType::kFp16), 0, 10) == Place(0, 0));
}

TEST_CASE("tensor: Release is proportional for a source of another size") {
  // Two elements per three bytes of the file; a page has at least 4096 bytes.
  std::filesystem::path path = std::filesystem::temp_directory_path() /
                               fmt::format("mlc_tensor_{}.bin", static_cast<int>(getpid()));
  constexpr int64_t kBytes = 3 << 20;
  std::ofstream(path, std::ios::binary) << std::string(kBytes, '\1');
  auto file = MappedFile::Open(path);
  std::filesystem::remove(path);
  Tensor bytes = Tensor::FileSlice(file, 0, DType::kUint8, {kBytes});
  Tensor lazy = Tensor::Lazy(
      DType::kUint8, {kBytes / 3 * 2},
      [bytes](int64_t first, int64_t count, std::byte* out) {
        for (int64_t i = 0; i < count; ++i) bytes.Read((first + i) * 3 / 2, 1, out + i);
      },
      bytes);
  auto resident = [&] {
    std::span<const std::byte> all = file->bytes();
    std::ifstream map("/proc/self/smaps");
    std::string line;
    const std::string address = fmt::format("{:x}-", reinterpret_cast<uintptr_t>(all.data()));
    int64_t kilobytes = -1;
    for (bool found = false; std::getline(map, line);) {
      found = found || line.starts_with(address);
      if (found && line.starts_with("Rss:")) {
        kilobytes = std::stoll(line.substr(4));
        break;
      }
    }
    return kilobytes;
  };
  if (resident() < 0) return;  // not available on this system
  std::vector<std::byte> out(static_cast<size_t>(lazy.size()));
  lazy.Read(0, lazy.size(), out.data());
  CHECK(resident() == kBytes / 1024);
  lazy.Release(0, lazy.size());
  lazy.MapIn(0, lazy.size());
#ifdef MADV_POPULATE_READ
  CHECK(resident() == kBytes / 1024);
#endif
  lazy.Read(0, lazy.size(), out.data());
  lazy.Release(0, lazy.size() / 2);
  CHECK(resident() > 0);
  CHECK(resident() <= kBytes / 1024 / 2);  // smaller pages than the system's would lower it further
  lazy.Release(lazy.size() / 2, lazy.size() / 2);
  CHECK(resident() == 0);
}

TEST_CASE("tensor: borrowed memory is released once, after the last view") {
  std::vector<float> values = Iota(12);
  int released = 0;
  for (size_t skipped : {0, 2}) {  // in bytes; not every address is aligned
    CAPTURE(skipped);
    std::vector<std::byte> bytes(skipped + values.size() * sizeof(float));
    std::memcpy(bytes.data() + skipped, values.data(), values.size() * sizeof(float));
    released = 0;
    Tensor tensor = Tensor::Borrowed(DType::kFp32, {3, 4}, std::span(bytes).subspan(skipped),
                                     [&] { ++released; });
    Tensor row = tensor.Rows(1, 2), turned = tensor.Transposed({1, 0});
    CHECK(Values<float>(row) == std::vector<float>{4, 5, 6, 7});
    CHECK(Values<float>(turned)[1] == 4);
    tensor = {};
    turned = {};
    CHECK(released == 0);
    row = {};
    CHECK(released == 1);
  }
  released = 0;
  CHECK_THROWS_AS(
      Tensor::Borrowed(DType::kFp32, {2}, std::as_bytes(std::span(values)), [&] { ++released; }),
      Error);
  CHECK(released == 0);
}

TEST_CASE("tensor: a tensor of the source stays one when it is rounded or reshaped") {
  using Names = std::vector<std::string>;
  for (int64_t size : {4, 128}) {  // computed at once, and lazily
    CAPTURE(size);
    const Tensor w = Tensor::Of({size, size}, Iota(size * size)).From({{"w"}, true});
    for (const Tensor& same : {w.Cast(DType::kFp16), w.Reshaped({size * size}), w.InMemory(),
                               w.Cast(DType::kFp16).Cast(DType::kFp32), w.Rows(0, size)})
      CHECK((same.provenance() && same.provenance()->unchanged &&
             same.provenance()->sources == Names{"w"}));
    for (const Tensor& other :
         {w.Transposed({1, 0}), w.Cast(DType::kInt32), w.Transposed({1, 0}).Cast(DType::kFp16)})
      CHECK((other.provenance() && !other.provenance()->unchanged &&
             other.provenance()->sources == Names{"w"}));
    const Tensor both = w.ComputedFrom(Tensor::Scalar(1.f).From({{"a"}, true}));
    CHECK(both.provenance()->sources == Names{"a", "w"});
    CHECK_FALSE(both.provenance()->unchanged);
    CHECK(w.ComputedFrom(Tensor::Scalar(1.f)).provenance()->unchanged);
  }
  // Turned twice, a large tensor is the source again.
  const Tensor large = Tensor::Of({128, 128}, Iota(128 * 128)).From({{"w"}, true});
  CHECK(large.Transposed({1, 0}).Transposed({1, 0}).provenance()->unchanged);
  CHECK_FALSE(large.Rows(1, 3).provenance()->unchanged);
}

}  // namespace
}  // namespace mlc

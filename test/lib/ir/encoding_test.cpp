// Reference implementations of the definitions in lib/ir/encoding.h, compared with the library's
// decoding.
#include "lib/ir/encoding.h"

#include <fmt/ranges.h>

#include <cmath>
#include <cstring>
#include <fstream>
#include <iterator>

#include "lib/ir/concat_slice.h"
#include "lib/ir/npy.h"
#include "lib/support/error.h"
#include "test/catch.h"
#include "test/lib/ir/encodings.h"
#include "test/paths.h"

namespace mlc::test {
namespace {

using Form = Encoding::Form;

std::vector<int64_t> IndexOf(int64_t i, const Dims& dims) {
  std::vector<int64_t> index(dims.size());
  for (size_t d = dims.size(); d-- > 0; i /= dims[d]) index[d] = i % dims[d];
  return index;
}

// The grid element that applies to `index` of a tensor of `dims`.
int64_t Cell(const std::vector<int64_t>& index, const Dims& dims, const Dims& grid) {
  int64_t at = 0;
  for (size_t d = 0; d < dims.size(); ++d) at = at * grid[d] + index[d] / (dims[d] / grid[d]);
  return at;
}

double Rounded(double value, DType dtype) { return Tensor::Scalar(value).Cast(dtype).Double(0); }

std::vector<double> ByHand(const Encoding& e, DType dtype);

std::vector<double> ValuesOf(const Tensor& tensor) {
  return tensor.encoding() ? ByHand(*tensor.encoding(), tensor.dtype()) : tensor.Doubles();
}

std::vector<double> ByHand(const Encoding& e, DType dtype) {
  std::vector<double> data = ValuesOf(e.data), result;
  Dims served = e.mask ? e.mask.dims() : e.data.dims();
  std::vector<int64_t> places;  // index of the data element per value
  for (int64_t i = 0; i < ElementCount(served); ++i)
    if (!e.mask || e.mask.Int(i) == 1) places.push_back(i);
  REQUIRE(places.size() == data.size());
  if (e.form == Form::kSparse) {
    result.assign(static_cast<size_t>(ElementCount(served)), 0.0);
    for (size_t k = 0; k < places.size(); ++k) result[places[k]] = data[k];
    return result;
  }
  if (e.form == Form::kAffine) {
    std::vector<double> scale = ValuesOf(e.scale);
    for (size_t k = 0; k < places.size(); ++k) {
      int64_t cell = Cell(IndexOf(places[k], served), served, e.scale.dims());
      double offset = e.offset ? e.offset.Double(cell) : 0;
      double value = scale[cell] * (data[k] - offset);
      if (e.bias) value = scale[cell] * data[k] + e.bias.Double(cell);
      result.push_back(Rounded(value, dtype));
    }
    return result;
  }
  std::vector<double> table = ValuesOf(e.table);
  Dims grid(e.table.dims().begin(), e.table.dims().end() - 2), dims = served;
  const int64_t vector = e.vector();
  dims[e.vector_axis] *= vector;
  std::vector<double> of_place(static_cast<size_t>(ElementCount(served)), -1);
  for (size_t k = 0; k < places.size(); ++k) of_place[places[k]] = data[k];
  for (int64_t i = 0; i < ElementCount(dims); ++i) {
    std::vector<int64_t> index = IndexOf(i, dims);
    int64_t element = index[e.vector_axis] % vector, at = 0;
    index[e.vector_axis] /= vector;
    for (size_t d = 0; d < served.size(); ++d) at = at * served[d] + index[d];
    if (of_place[at] < 0) continue;
    int64_t entry = Cell(index, served, grid) * e.entries() + static_cast<int64_t>(of_place[at]);
    result.push_back(table[entry * vector + element]);
  }
  return result;
}

// The same constant without its encoding.
Tensor Plain(const Tensor& tensor) {
  std::byte* out = nullptr;
  Tensor plain = Tensor::Allocate(tensor.dtype(), tensor.dims(), &out);
  tensor.Read(0, tensor.size(), out);
  return plain;
}

bool IsDecoded(const Tensor& tensor) {
  return tensor.Doubles() == ByHand(*tensor.encoding(), tensor.encoding()->dtype);
}

TEST_CASE("encoding: every form decodes by its definition from any offset") {
  auto dtype = GENERATE(DType::kFp32, DType::kFp16);
  for (const EncodingSample& sample : EncodingSamples(dtype)) {
    INFO(sample.name << " in " << Name(dtype));
    Tensor tensor = Tensor::Encoded(sample.encoding);
    CHECK(tensor.dtype() == dtype);
    std::vector<double> expected = ByHand(sample.encoding, dtype);
    CHECK(tensor.Doubles() == expected);
    for (int64_t i : {0, 1, 777, 2047, 3071}) CHECK(tensor.Double(i) == expected[i]);
  }
}

TEST_CASE("encoding: transposition preserves the form") {
  for (const EncodingSample& sample : EncodingSamples()) {
    INFO(sample.name);
    Tensor tensor = Tensor::Encoded(sample.encoding);
    std::vector<int> perm = tensor.rank() == 2 ? std::vector{1, 0} : std::vector{2, 0, 1};
    Tensor moved = tensor.Transposed(perm);
    CHECK(moved.SameBytes(Plain(tensor).Transposed(perm)));
    // The mask of sparse vectors is that of the indices, which become dense.
    CHECK((moved.encoding() != nullptr) == (sample.name != "sparse vectors"));
    if (moved.encoding()) CHECK(IsDecoded(moved));
  }
}

TEST_CASE("encoding: slices along block boundaries preserve it") {
  struct {
    int axis;
    int64_t begin, end;
  } cuts[] = {{0, 8, 24}, {0, 0, 4}, {0, 4, 5}, {1, 32, 64}, {1, 4, 8}, {1, 5, 7}, {2, 8, 24}};
  for (const EncodingSample& sample : EncodingSamples()) {
    Tensor tensor = Tensor::Encoded(sample.encoding);
    for (auto [axis, begin, end] : cuts) {
      if (axis >= tensor.rank() || end > tensor.dims()[axis]) continue;
      INFO(sample.name << ", axis " << axis << " from " << begin << " to " << end);
      Tensor part = Slice(tensor, axis, begin, end);
      CHECK(part.SameBytes(Slice(Plain(tensor), axis, begin, end)));
      if (part.encoding()) CHECK(IsDecoded(part));
      if (axis == 0) CHECK(tensor.Rows(begin, end).SameBytes(part));
    }
  }
  auto keeps = [](Encoding encoding, int axis, int64_t begin, int64_t end) {
    return Slice(Tensor::Encoded(std::move(encoding)), axis, begin, end).encoding() != nullptr;
  };
  FixedDraw draw;
  Encoding blocks{.data = draw.Integers(DType::kInt4, {4, 96}), .scale = draw.Scales({4, 3})};
  CHECK(keeps(blocks, 0, 1, 2));
  CHECK(keeps(blocks, 1, 32, 96));
  CHECK(keeps(blocks, 1, 40, 50));   // within a block
  CHECK(!keeps(blocks, 1, 40, 70));  // splits two blocks
  CHECK(!keeps(blocks, 1, 0, 40));
  Encoding vectors{.form = Form::kPalette,
                   .data = draw.Integers(DType::kUint2, {4, 8}),
                   .table = draw.Floats({1, 1, 4, 3}),
                   .vector_axis = 1};
  CHECK(keeps(vectors, 1, 3, 9));
  CHECK(!keeps(vectors, 1, 3, 8));
}

TEST_CASE("encoding: concatenation of equal blocks preserves it") {
  for (const EncodingSample& sample : EncodingSamples()) {
    Tensor tensor = Tensor::Encoded(sample.encoding);
    for (int axis = 0; axis < tensor.rank(); ++axis) {
      INFO(sample.name << ", axis " << axis);
      Tensor joined = Join({tensor, tensor, tensor}, axis), plain = Plain(tensor);
      CHECK(joined.SameBytes(Join({plain, plain, plain}, axis)));
      CHECK((joined.encoding() != nullptr) == (sample.name != "sparse vectors"));
      if (joined.encoding()) CHECK(IsDecoded(joined));
    }
  }
  FixedDraw draw;
  auto rows = [&](int64_t count, int64_t scales) {
    return Tensor::Encoded(
        {.data = draw.Integers(DType::kInt8, {count, 8}), .scale = draw.Scales({scales, 1})});
  };
  Tensor a = rows(4, 4), b = rows(6, 6), c = rows(4, 1), d = rows(6, 1);
  CHECK(Join({a, b}, 0).encoding());
  CHECK(!Join({a, c}, 0).encoding());  // blocks of 1 and 4
  CHECK(!Join({c, d}, 0).encoding());
  CHECK(!Join({a, Plain(b)}, 0).encoding());
  CHECK(Join({a, c}, 0).SameBytes(Join({Plain(a), Plain(c)}, 0)));
}

TEST_CASE("encoding: reshapes that keep blocks preserve it") {
  FixedDraw draw;
  Tensor blocks =
      Tensor::Encoded({.data = draw.Integers(DType::kInt4, {4, 96}), .scale = draw.Scales({4, 3})});
  struct {
    Dims dims, grid;  // empty: dense
  } cases[] = {{{4, 1, 96, 1}, {4, 1, 3, 1}},
               {{1, 4, 96}, {1, 4, 3}},
               {{384}, {12}},
               {{2, 2, 96}, {2, 2, 3}},
               {{12, 32}, {12, 1}},
               {{4, 3, 32}, {4, 3, 1}},
               {{4, 6, 16}, {4, 3, 1}},
               {{24, 16}, {12, 1}},
               {{8, 48}, {}},
               {{96, 4}, {12, 1}},
               {{4, 5 + 1, 4, 4}, {4, 3, 1, 1}}};
  for (const auto& c : cases) {
    INFO(fmt::format("[{}]", fmt::join(c.dims, ", ")));
    Tensor reshaped = blocks.Reshaped(c.dims);
    CHECK(reshaped.Doubles() == blocks.Doubles());
    REQUIRE((reshaped.encoding() != nullptr) == !c.grid.empty());
    if (!reshaped.encoding()) continue;
    CHECK(reshaped.encoding()->scale.dims() == c.grid);
    CHECK(IsDecoded(reshaped));
  }
  for (const EncodingSample& sample : EncodingSamples()) {
    INFO(sample.name);
    Tensor tensor = Tensor::Encoded(sample.encoding);
    Dims longer = tensor.dims();
    longer.insert(longer.begin() + 1, 1);
    Tensor reshaped = tensor.Reshaped(longer);
    CHECK(reshaped.Doubles() == tensor.Doubles());
    if (sample.name == "sparse vectors") continue;
    REQUIRE(reshaped.encoding());
    CHECK(IsDecoded(reshaped));
    CHECK(reshaped.Reshaped(tensor.dims()).encoding());
  }
}

TEST_CASE("encoding: exact conversions preserve it") {
  FixedDraw draw;
  Tensor tensor = Tensor::Encoded(
      {.data = draw.Integers(DType::kInt8, {64, 96}), .scale = draw.Scales({64, 1})});
  Tensor half = tensor.Cast(DType::kFp16);
  CHECK(half.encoding());
  CHECK(half.Transposed({1, 0}).SameBytes(Plain(tensor).Cast(DType::kFp16).Transposed({1, 0})));
  CHECK(half.Transposed({1, 0}).encoding());
  CHECK(tensor.Cast(DType::kFp64).Cast(DType::kFp16).encoding());
  CHECK(!half.Cast(DType::kFp32).encoding());  // rounded
  CHECK(!tensor.Cast(DType::kInt32).encoding());
  CHECK(half.InMemory().encoding());
}

TEST_CASE("encoding: inconsistent parts are rejected") {
  FixedDraw draw;
  Tensor data = draw.Integers(DType::kInt8, {4, 6}), mask = draw.Mask({4, 6});
  Encoding bad[] = {
      {.data = data, .scale = draw.Scales({4, 4})},
      {.data = data, .scale = draw.Scales({4})},
      {.data = data, .scale = draw.Scales({4, 1}), .offset = draw.Integers(DType::kInt8, {1, 1})},
      {.form = Form::kPalette, .data = data, .table = draw.Floats({1, 1, 16, 1})},
      {.form = Form::kPalette,
       .data = draw.Integers(DType::kUint4, {4, 6}),
       .table = draw.Floats({1, 1, 8, 1})},
      {.form = Form::kSparse, .data = draw.Floats({CountSet(mask, 0, 24) + 1}), .mask = mask},
      {.form = Form::kSparse, .data = draw.Floats({24}), .mask = mask.Cast(DType::kUint8)},
  };
  for (const Encoding& encoding : bad) CHECK_THROWS_AS(Tensor::Encoded(encoding), Error);
}

// ggml's blocks decoded by the definitions in its sources, and the values computed by gguf-py.
struct Blocks {
  std::vector<int64_t> q;
  std::vector<float> scale, bias;  // of `part` elements each
};
float Fp16(const uint8_t* at) {
  Half half;
  std::memcpy(&half.bits, at, 2);
  return static_cast<float>(half);
}
constexpr int kIq4[16] = {-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113};
int Nibble(const uint8_t* q, int j) { return j < 16 ? q[j] & 15 : q[j - 16] >> 4; }
int Bit(const uint8_t* bits, int j) { return bits[j / 8] >> (j % 8) & 1; }

void Q4_0(const uint8_t* b, Blocks& to) {
  for (int j = 0; j < 32; ++j) to.q.push_back(Nibble(b + 2, j) - 8);
  to.scale.push_back(Fp16(b));
}
void Q4_1(const uint8_t* b, Blocks& to) {
  for (int j = 0; j < 32; ++j) to.q.push_back(Nibble(b + 4, j));
  to.scale.push_back(Fp16(b));
  to.bias.push_back(Fp16(b + 2));
}
void Q5_0(const uint8_t* b, Blocks& to) {
  for (int j = 0; j < 32; ++j) to.q.push_back((Nibble(b + 6, j) | Bit(b + 2, j) << 4) - 16);
  to.scale.push_back(Fp16(b));
}
void Q5_1(const uint8_t* b, Blocks& to) {
  for (int j = 0; j < 32; ++j) to.q.push_back(Nibble(b + 8, j) | Bit(b + 4, j) << 4);
  to.scale.push_back(Fp16(b));
  to.bias.push_back(Fp16(b + 2));
}
void Q8_0(const uint8_t* b, Blocks& to) {
  for (int j = 0; j < 32; ++j) to.q.push_back(static_cast<int8_t>(b[2 + j]));
  to.scale.push_back(Fp16(b));
}
void Q2_K(const uint8_t* b, Blocks& to) {
  float d = Fp16(b + 80), least = Fp16(b + 82);
  for (int i = 0; i < 256; ++i)
    to.q.push_back(b[16 + i / 128 * 32 + i % 32] >> (i % 128 / 32 * 2) & 3);
  for (int s = 0; s < 16; ++s) {
    to.scale.push_back(d * static_cast<float>(b[s] & 15));
    to.bias.push_back(-(least * static_cast<float>(b[s] >> 4)));
  }
}
void Q3_K(const uint8_t* b, Blocks& to) {
  float d = Fp16(b + 108);
  for (int i = 0; i < 256; ++i) {
    int low = b[32 + i / 128 * 32 + i % 32] >> (i % 128 / 32 * 2) & 3;
    to.q.push_back(low - (b[i % 32] >> (i / 32) & 1 ? 0 : 4));
  }
  const uint8_t* s = b + 96;
  for (int k = 0; k < 16; ++k) {
    int low = s[k % 8] >> (k / 8 * 4) & 15, high = s[8 + k % 4] >> (k / 4 * 2) & 3;
    to.scale.push_back(d * static_cast<float>((low | high << 4) - 32));
  }
}
// The 6-bit scales and minima of Q4_K and Q5_K.
void ScalesK(const uint8_t* b, Blocks& to) {
  float d = Fp16(b), least = Fp16(b + 2);
  const uint8_t* s = b + 4;
  for (int k = 0; k < 8; ++k) {
    int scale = k < 4 ? s[k] & 63 : (s[k + 4] & 15) | s[k - 4] >> 6 << 4;
    int minimum = k < 4 ? s[k + 4] & 63 : s[k + 4] >> 4 | s[k] >> 6 << 4;
    to.scale.push_back(d * static_cast<float>(scale));
    to.bias.push_back(-(least * static_cast<float>(minimum)));
  }
}
void Q4_K(const uint8_t* b, Blocks& to) {
  for (int i = 0; i < 256; ++i)
    to.q.push_back(b[16 + i / 64 * 32 + i % 32] >> (i / 32 % 2 * 4) & 15);
  ScalesK(b, to);
}
void Q5_K(const uint8_t* b, Blocks& to) {
  for (int i = 0; i < 256; ++i)
    to.q.push_back((b[48 + i / 64 * 32 + i % 32] >> (i / 32 % 2 * 4) & 15) |
                   (b[16 + i % 32] >> (i / 32) & 1) << 4);
  ScalesK(b, to);
}
void Q6_K(const uint8_t* b, Blocks& to) {
  float d = Fp16(b + 208);
  for (int i = 0; i < 256; ++i) {
    int half = i / 128, quarter = i % 128 / 32, l = i % 32;
    int low = b[half * 64 + quarter % 2 * 32 + l] >> (quarter / 2 * 4) & 15;
    int high = b[128 + half * 32 + l] >> (quarter * 2) & 3;
    to.q.push_back((low | high << 4) - 32);
  }
  for (int k = 0; k < 16; ++k)
    to.scale.push_back(d * static_cast<float>(static_cast<int8_t>(b[192 + k])));
}
// The indices of table entries.
void Iq4Nl(const uint8_t* b, Blocks& to) {
  for (int j = 0; j < 32; ++j) to.q.push_back(Nibble(b + 2, j));
  to.scale.push_back(Fp16(b));
}
void Iq4Xs(const uint8_t* b, Blocks& to) {
  float d = Fp16(b);
  int high = b[2] | b[3] << 8;
  for (int k = 0; k < 8; ++k) {
    for (int j = 0; j < 32; ++j) to.q.push_back(Nibble(b + 8 + 16 * k, j));
    int scale = (b[4 + k / 2] >> (k % 2 * 4) & 15) | (high >> (2 * k) & 3) << 4;
    to.scale.push_back(d * static_cast<float>(scale - 32));
  }
}
void Tq2_0(const uint8_t* b, Blocks& to) {
  for (int i = 0; i < 256; ++i)
    to.q.push_back((b[i / 128 * 32 + i % 32] >> (i % 128 / 32 * 2) & 3) - 1);
  to.scale.push_back(Fp16(b + 64));
}

TEST_CASE("encoding: ggml blocks are represented exactly") {
  std::optional<std::filesystem::path> folder = Corpus("gguf/blocks", "ggml's blocks");
  if (!folder) return;
  struct {
    const char* name;
    int elements, bytes, part;
    DType data;
    void (*take)(const uint8_t*, Blocks&);
  } types[] = {
      {"Q4_0", 32, 18, 32, DType::kInt4, Q4_0},     {"Q4_1", 32, 20, 32, DType::kUint4, Q4_1},
      {"Q5_0", 32, 22, 32, DType::kInt8, Q5_0},     {"Q5_1", 32, 24, 32, DType::kUint8, Q5_1},
      {"Q8_0", 32, 34, 32, DType::kInt8, Q8_0},     {"Q2_K", 256, 84, 16, DType::kUint2, Q2_K},
      {"Q3_K", 256, 110, 16, DType::kInt4, Q3_K},   {"Q4_K", 256, 144, 32, DType::kUint4, Q4_K},
      {"Q5_K", 256, 176, 32, DType::kUint8, Q5_K},  {"Q6_K", 256, 210, 16, DType::kInt8, Q6_K},
      {"IQ4_NL", 32, 18, 32, DType::kUint4, Iq4Nl}, {"IQ4_XS", 256, 136, 32, DType::kUint4, Iq4Xs},
      {"TQ2_0", 256, 66, 256, DType::kInt4, Tq2_0}};
  for (const auto& type : types) {
    INFO(type.name);
    Tensor expected = ReadNpy(*folder / (std::string(type.name) + ".npy"));
    std::ifstream file(*folder / (std::string(type.name) + ".gguf"), std::ios::binary);
    std::vector<uint8_t> bytes(std::istreambuf_iterator<char>(file), {});
    int64_t count = expected.size() / type.elements;
    const int64_t last = (count * type.bytes + 31) / 32 * 32;  // the file size is a multiple of 32
    REQUIRE(std::ssize(bytes) > last);
    const uint8_t* block = bytes.data() + bytes.size() - last;
    Blocks blocks;
    for (int64_t i = 0; i < count; ++i, block += type.bytes) type.take(block, blocks);
    Dims dims = expected.dims(), grid = {dims[0], dims[1] / type.part};
    Tensor data = Tensor::Of(dims, blocks.q).Cast(type.data);
    if (type.take == Iq4Nl || type.take == Iq4Xs) {
      std::vector<int8_t> table(std::begin(kIq4), std::end(kIq4));
      data = Tensor::Encoded(
          {.form = Form::kPalette, .data = data, .table = Tensor::Of({1, 1, 16, 1}, table)});
    }
    Encoding encoding{.data = data, .scale = Tensor::Of(grid, blocks.scale)};
    if (!blocks.bias.empty()) encoding.bias = Tensor::Of(grid, blocks.bias);
    Tensor tensor = Tensor::Encoded(encoding);
    CHECK(tensor.SameBytes(expected));
    CHECK(tensor.Transposed({1, 0}).SameBytes(expected.Transposed({1, 0})));
    CHECK(tensor.Transposed({1, 0}).encoding());
    CHECK(tensor.Rows(1, 3).SameBytes(expected.Rows(1, 3)));
    CHECK(tensor.Rows(1, 3).encoding());
    CHECK(Slice(tensor, 1, 256, 512).SameBytes(Slice(expected, 1, 256, 512)));
    CHECK(Slice(tensor, 1, 256, 512).encoding());
    CHECK(Join({tensor, tensor}, 1).SameBytes(Join({expected, expected}, 1)));
    CHECK(Join({tensor, tensor}, 1).encoding());
  }
}

}  // namespace
}  // namespace mlc::test

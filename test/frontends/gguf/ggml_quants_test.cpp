// Tests that blocks decode to gguf-py's values (the corpus) or to values calculated by hand from
// the layout, and that their integers and scales are those of the file.
#include "frontends/gguf/ggml_quants.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <iostream>
#include <set>

#include "frontends/gguf/file.h"
#include "lib/ir/encoding.h"
#include "lib/ir/npy.h"
#include "lib/ir/subbyte.h"
#include "test/catch.h"
#include "test/frontends/gguf/writer.h"
#include "test/paths.h"

namespace fs = std::filesystem;

namespace mlc::test {
using namespace gguf;
namespace {

const BlockType& Type(std::string_view name) {
  auto row = std::ranges::find(BlockTypes(), name, &BlockType::name);
  REQUIRE(row != BlockTypes().end());
  return *row;
}

std::vector<uint32_t> BitsOf(const Tensor& values) {
  Pin<float> all = values.Cast(DType::kFp32).data<float>();
  std::vector<uint32_t> bits;
  for (float value : all) bits.push_back(std::bit_cast<uint32_t>(value));
  return bits;
}

// Returns the constant of blocks that are given as bytes.
Tensor Constant(std::string_view type, const std::vector<uint8_t>& bytes) {
  const BlockType& row = Type(type);
  int64_t elements = std::ssize(bytes) / row.bytes * row.elements;
  return FromBlocks(row, Tensor::Vector(bytes), {elements});
}

TEST_CASE("gguf: block types are sorted and consistent") {
  uint32_t before = 0;
  std::set<std::string_view> names;
  for (const BlockType& type : BlockTypes()) {
    INFO(type.name);
    CHECK((type.id > before || type.id == 0));
    before = type.id;
    CHECK(names.insert(type.name).second);
    CHECK(FindBlockType(type.id) == &type);
    if (type.plain != DType::kNone) {
      CHECK(type.bytes * 8 == Bits(type.plain));
      continue;
    }
    CHECK(type.elements % type.cell == 0);
    CHECK(type.elements * Bits(type.integers) % 8 == 0);
    CHECK((type.scale_at >= 0) == (type.scales == nullptr));
    CHECK((type.scale_at < 0 || type.cell == type.elements));
    if (!type.palette.empty()) CHECK(std::ssize(type.palette) == int64_t{1} << Bits(type.integers));
  }
  for (uint32_t id : {4u, 9u, 15u, 31u, 99u}) CHECK(FindBlockType(id) == nullptr);
}

TEST_CASE("gguf: blocks decode to the values of gguf-py, bit for bit") {
  auto folder = Corpus("gguf/blocks", "gguf blocks");
  if (!folder) return;
  int types = 0;
  int64_t values = 0;
  for (const fs::directory_entry& entry : fs::directory_iterator(*folder)) {
    fs::path expected = entry.path();
    expected.replace_extension(".npy");
    if (entry.path().extension() != ".gguf" || !fs::exists(expected)) continue;
    INFO(entry.path().stem().string());
    GgufFile file = GgufFile::Open(entry.path());
    REQUIRE(file.tensors().size() == 1);
    const GgufTensor& tensor = file.tensors()[0];
    CHECK(tensor.type->name == entry.path().stem().string());
    Tensor wanted = ReadNpy(expected), found = file.Constant(tensor.name);
    CHECK(found.dims() == wanted.dims());
    CHECK(BitsOf(found) == BitsOf(wanted));
    ++types;
    values += found.size();
  }
  CHECK(types == 24);
  std::cout << "# gguf blocks: " << types << " types, " << values << " values equal gguf-py's\n";
}

TEST_CASE("gguf: MXFP4 and NVFP4 decode to values calculated by hand") {
  // OCP Microscaling Formats 1.0, 5.3.3: the values of E2M1 are 0, 0.5, 1, 1.5, 2, 3, 4, 6 and
  // their negatives; 5.4: E8M0 is 2^(e - 127). Low nibbles are elements 0 to 15, high nibbles 16 to
  // 31.
  std::vector<uint8_t> block = {128};
  for (int i = 0; i < 16; ++i) block.push_back(static_cast<uint8_t>(i | (15 - i) << 4));
  const std::vector<double> e2m1 = {0, 0.5, 1, 1.5, 2, 3, 4, 6, 0, -0.5, -1, -1.5, -2, -3, -4, -6};
  std::vector<double> wanted;
  for (double value : e2m1) wanted.push_back(2 * value);
  for (int i = 15; i >= 0; --i) wanted.push_back(2 * e2m1[i]);
  CHECK(Constant("MXFP4", block).Doubles() == wanted);
  // The extreme exponents are 2^-127 and 2^127; 6 times the latter overflows.
  block[0] = 0;
  CHECK(Constant("MXFP4", block).Double(7) == 6 * 0x1p-127);
  CHECK(Constant("MXFP4", block).Double(1) == 0x1p-128);
  block[0] = 254;
  CHECK(Constant("MXFP4", block).Double(2) == 0x1p127);
  block[0] = 255;
  CHECK(std::isinf(Constant("MXFP4", block).Double(7)));

  // Four cells of 16 with scales of unsigned E4M3: 1, 1.125, the smallest number, and 0.
  std::vector<uint8_t> four = {0x38, 0x39, 0x01, 0x7F};
  for (int i = 0; i < 32; ++i) four.push_back(0x72);  // 1 and 6
  std::vector<double> values = Constant("NVFP4", four).Doubles();
  CHECK(values.size() == 64);
  CHECK(values[0] == 1);
  CHECK(values[8] == 6);
  CHECK(values[16] == 1.125);
  CHECK(values[24] == 6.75);
  CHECK(values[32] == 0x1p-9);
  CHECK(values[48] == 0);
}

TEST_CASE("gguf: one-bit and two-bit blocks decode to values calculated by hand") {
  // Values of ggml's dequantize_row_q1_0: d or -d; of dequantize_row_q2_0: -d, 0, d, 2 d. 0x3800 is
  // 0.5.
  std::vector<uint8_t> one = {0x00, 0x38, 0b00000101};
  one.resize(18);
  std::vector<double> values = Constant("Q1_0", one).Doubles();
  CHECK(values.size() == 128);
  CHECK(std::vector(values.begin(), values.begin() + 4) == std::vector{0.5, -0.5, 0.5, -0.5});
  std::vector<uint8_t> two = {0x00, 0x38, 0b11100100};
  two.resize(18);
  values = Constant("Q2_0", two).Doubles();
  CHECK(values.size() == 64);
  CHECK(std::vector(values.begin(), values.begin() + 5) == std::vector{-0.5, 0.0, 0.5, 1.0, -0.5});
}

TEST_CASE("gguf: integers of a block are kept, in the order of the elements") {
  // Elements i and 16 + i share a byte.
  std::vector<uint8_t> q4 = {0x00, 0x3C};
  for (int i = 0; i < 16; ++i) q4.push_back(static_cast<uint8_t>(i | (15 - i) << 4));
  Tensor constant = Constant("Q4_0", q4);
  REQUIRE(constant.encoding());
  const Encoding& e = *constant.encoding();
  CHECK(e.data.dtype() == DType::kInt4);
  CHECK(e.scale.dtype() == DType::kFp16);
  CHECK(!e.offset);
  CHECK(!e.bias);
  std::vector<int64_t> wanted;
  for (int i = 0; i < 16; ++i) wanted.push_back(i - 8);
  for (int i = 0; i < 16; ++i) wanted.push_back(15 - i - 8);
  CHECK(e.data.Ints() == wanted);
  CHECK(e.scale.Doubles() == std::vector<double>{1});

  std::vector<uint8_t> q8 = {0x00, 0x40};
  for (int i = 0; i < 32; ++i) q8.push_back(static_cast<uint8_t>(i * 8 - 128));
  constant = Constant("Q8_0", q8);
  CHECK(constant.encoding()->data.dtype() == DType::kInt8);
  CHECK(constant.encoding()->data.Int(0) == -128);
  CHECK(constant.encoding()->data.Int(31) == 120);
  CHECK(constant.encoding()->scale.Double(0) == 2);

  // Q5_0 stores the fifth bits of all elements, lowest first; 5-bit integers need a palette of 32
  // entries.
  std::vector<uint8_t> q5 = {0x00, 0x3C, 0x01, 0x00, 0x00, 0x80};
  q5.resize(22, 0);
  constant = Constant("Q5_0", q5);
  CHECK(constant.encoding()->data.Int(0) == 0);
  CHECK(constant.encoding()->data.Int(1) == -16);
  CHECK(constant.encoding()->data.Int(31) == 0);
  REQUIRE(constant.encoding()->data.encoding());
  CHECK(constant.encoding()->data.encoding()->data.dtype() == DType::kUint6);
}

// Returns blocks of pseudorandom bytes, seeded by the type; scales may be infinite or NaN.
Tensor MadeUp(const BlockType& type, int64_t rows, int64_t blocks) {
  std::vector<uint8_t> bytes(static_cast<size_t>(rows * blocks * type.bytes));
  uint32_t state = 12345 + type.id;
  for (uint8_t& byte : bytes) {
    state = state * 1664525 + 1013904223;
    byte = static_cast<uint8_t>(state >> 24);
  }
  return FromBlocks(type, Tensor::Vector(bytes), {rows, blocks * type.elements});
}

TEST_CASE("gguf: integers and scales support random access") {
  for (const BlockType& type : BlockTypes()) {
    if (type.plain != DType::kNone) continue;
    INFO(type.name);
    Tensor constant = MadeUp(type, 5, 3);
    const Encoding& e = *constant.encoding();
    for (const Tensor* part : {&e.data, &e.scale, &e.bias}) {
      if (!*part) continue;
      const DType bytes = InBytes(part->dtype());
      const int64_t width = Bits(bytes) / 8;
      std::vector<std::byte> all(ByteCount(bytes, part->size())), some(all.size());
      ReadBytes(*part, 0, part->size(), all.data());
      bool equal = true;
      for (int64_t first = 0; first < part->size(); first += 7)
        for (int64_t count : {1, 5, 40, 300}) {
          count = std::min(count, part->size() - first);
          ReadBytes(*part, first, count, some.data());
          equal &=
              std::equal(some.begin(), some.begin() + count * width, all.begin() + first * width);
        }
      CHECK(equal);
    }
  }
}

TEST_CASE("gguf: slices along blocks keep the encoding") {
  Tensor constant = MadeUp(Type("Q4_0"), 8, 4);
  Tensor rows = constant.Rows(2, 6);
  REQUIRE(rows.encoding());
  CHECK(rows.encoding()->scale.dims() == Dims{4, 4});
  std::vector<double> all = constant.encoding()->data.Doubles();
  CHECK(rows.encoding()->data.Doubles() ==
        std::vector<double>(all.begin() + 2 * 128, all.begin() + 6 * 128));
}

}  // namespace
}  // namespace mlc::test

// Quantized weights are written to the package unchanged.
#include "backends/coreml/write_package.h"
#include "frontends/coreml/coreml.h"
#include "lib/passes/pass.h"
#include "test/backends/coreml/package_files.h"
#include "test/catch.h"
#include "test/frontends/onnx/run.h"

namespace mlc::test {
using namespace onnx;
namespace {

constexpr int kUint8 = 2, kInt8 = 3, kFloat4 = 23, kE4M3Fnuz = 18, kInt2 = 26;

std::vector<uint8_t> Pattern(int64_t count, int step = 37) {
  std::vector<uint8_t> bytes(static_cast<size_t>(count));
  for (int64_t i = 0; i < count; ++i) bytes[i] = static_cast<uint8_t>(i * step + i / 13);
  return bytes;
}
std::vector<float> Scales(int64_t count) {
  std::vector<float> scales(static_cast<size_t>(count));
  for (int64_t i = 0; i < count; ++i) scales[i] = static_cast<float>(i % 7 + 1) / 64;
  return scales;
}

// Compiles a model and reads its package back.
Program Packaged(const std::string& bytes, passes::PassContext::Precision precision,
                 mlc::Opset target) {
  Program program = ImportBytes(bytes);
  Diagnostics diagnostics;
  passes::PassContext context{diagnostics, precision, target};
  passes::RunPasses(program, passes::DefaultPipeline(), context);
  ScratchFolder folder;
  coreml::WritePackage(program, folder / "m.mlpackage", {.target = target}, diagnostics);
  return coreml::ImportCoreml(folder / "m.mlpackage", diagnostics);
}

const Operation* Only(const Program& program, std::string_view name) {
  const Operation* found = nullptr;
  int count = 0;
  for (const auto& op : program.main()->body.operations())
    if (op->is(name)) {
      found = op;
      ++count;
    }
  CHECK(count == 1);
  return found;
}

constexpr int64_t kN = 64, kK = 96, kBlock = 32, kBlocks = kK / kBlock;

std::string MatMulNBits(int bits, const std::vector<uint8_t>& weight,
                        const std::vector<float>& scales, const std::vector<uint8_t>& zeros) {
  std::vector<std::string> inputs = {"x", "w", "s"},
                           constants = {
                               Proto("w", kUint8, {kN, kBlocks, kBlock * bits / 8}, Raw(weight)),
                               Proto("s", {kN, kBlocks}, scales)};
  if (!zeros.empty()) {
    inputs.emplace_back("z");
    constants.push_back(Proto("z", kUint8, {static_cast<int64_t>(zeros.size())}, Raw(zeros)));
  }
  return Model({Node("MatMulNBits", inputs, {"y"},
                     {Int("K", kK), Int("N", kN), Int("bits", bits), Int("block_size", kBlock)},
                     "com.microsoft")},
               {Info("x", kFloat, {2, static_cast<int>(kK)})}, {Info("y")}, constants, 17,
               Opset(1, "com.microsoft"));
}

// Unpacks elements of `bits` bits, low bits first; every row of `row` elements begins at a byte.
std::vector<int64_t> Unpacked(const std::vector<uint8_t>& bytes, int bits, int64_t row) {
  std::vector<int64_t> values;
  int64_t per_row = (row * bits + 7) / 8;
  for (size_t i = 0; i < bytes.size(); i += per_row)
    for (int64_t k = 0; k < row; ++k)
      values.push_back(bytes[i + k * bits / 8] >> (k * bits % 8) & ((1 << bits) - 1));
  return values;
}

}  // namespace

TEST_CASE("MatMulNBits: integers, scales and zero points are written to the package unchanged") {
  for (int bits : {4, 8})
    for (bool zero : {false, true})
      for (auto precision :
           {passes::PassContext::Precision::kFp32, passes::PassContext::Precision::kFp16}) {
        INFO(bits << " bits");
        std::vector<uint8_t> weight = Pattern(kN * kK * bits / 8), zeros;
        std::vector<float> scales = Scales(kN * kBlocks);
        if (zero) zeros = Pattern(kN * ((kBlocks * bits + 7) / 8), 11);
        Program program =
            Packaged(MatMulNBits(bits, weight, scales, zeros), precision, mlc::Opset::kIos18);
        const Operation* op = Only(program, "constexpr_blockwise_shift_scale");
        REQUIRE(op);
        DType stored = bits == 4 ? DType::kUint4 : DType::kUint8;
        CHECK(op->constant("data").dtype() == stored);
        CHECK(op->constant("data").dims() == Dims{kN, kK});
        CHECK(op->constant("data").Ints() == Unpacked(weight, bits, kK));
        CHECK(op->constant("scale").dims() == Dims{kN, kBlocks});
        // These scales are representable in fp16.
        CHECK(op->constant("scale").Doubles() == std::vector<double>(scales.begin(), scales.end()));
        CHECK(op->constant("offset").dtype() == stored);
        CHECK(op->constant("offset").Ints() ==
              (zero ? Unpacked(zeros, bits, kBlocks)
                    : std::vector<int64_t>(kN * kBlocks, 1 << (bits - 1))));
      }
}

// Signed integers are stored unsigned (lib/passes/encoded_constants.cpp).
TEST_CASE(
    "DequantizeLinear of a weight: integers plus 128, and scales are written to the package") {
  std::vector<uint8_t> weight = Pattern(64 * 48);
  std::vector<float> scales = Scales(48);
  std::string model = Model({Node("DequantizeLinear", {"w", "s", "z"}, {"d"}, {Int("axis", 1)}),
                             Node("MatMul", {"x", "d"}, {"y"})},
                            {Info("x", kFloat, {2, 64})}, {Info("y")},
                            {Proto("w", kInt8, {64, 48}, Raw(weight)), Proto("s", {48}, scales),
                             Proto("z", kInt8, {48}, std::string(48, '\3'))});
  Program program = Packaged(model, passes::PassContext::Precision::kFp32, mlc::Opset::kIos16);
  const Operation* op = Only(program, "constexpr_affine_dequantize");
  REQUIRE(op);
  Tensor data = op->constant("quantized_data");
  // The product becomes a linear operation, whose weight is transposed.
  bool turned = data.dims() == Dims{48, 64};
  std::vector<int64_t> expected;
  for (int64_t i = 0; i < 64 * 48; ++i)
    expected.push_back(static_cast<int8_t>(weight[turned ? i % 64 * 48 + i / 64 : i]) + 128);
  CHECK(data.Ints() == expected);
  CHECK(op->constant("axis").Int(0) == (turned ? 0 : 1));
  CHECK(op->constant("scale").Doubles() == std::vector<double>(scales.begin(), scales.end()));
  CHECK(op->constant("zero_point").Ints() == std::vector<int64_t>(48, 3 + 128));
}

// Expected values follow the definitions of the element types in the specification.
TEST_CASE("constants of sub-byte and 8-bit float types keep their values") {
  auto dequantized = [](int type, const Dims& dims, const std::string& raw) {
    std::string model =
        Model({Node("DequantizeLinear", {"w", "s"}, {"d"}), Node("Add", {"x", "d"}, {"y"})},
              {Info("x", kFloat, {1})}, {Info("y")},
              {Proto("w", type, dims, raw), Proto("s", {}, std::vector<float>{2})}, 23);
    return RunOnnx(model, {{"x", Tensor::Vector<float>({0})}}).Doubles();
  };
  CHECK(dequantized(kInt2, {6}, "\x1b\x0e") == std::vector<double>{-2, -4, 2, 0, -4, -2});
  CHECK(dequantized(kFloat4, {4}, "\x72\xf9") == std::vector<double>{2, 12, -1, -12});
  CHECK(dequantized(kE4M3Fnuz, {3}, "\x7f\x40\xc0") == std::vector<double>{480, 2, -2});
}

}  // namespace mlc::test

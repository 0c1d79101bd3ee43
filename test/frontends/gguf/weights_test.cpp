// Tests that a package contains each of the source's integers once, with scales and offsets that
// reproduce gguf-py's values.
#include <algorithm>
#include <cmath>
#include <iostream>
#include <map>

#include "backends/coreml/write_package.h"
#include "frontends/coreml/coreml.h"
#include "frontends/gguf/file.h"
#include "lib/ir/encoding.h"
#include "lib/ir/npy.h"
#include "lib/passes/pass.h"
#include "test/backends/coreml/package_files.h"
#include "test/catch.h"
#include "test/lib/ir/encoded_constant_program.h"
#include "test/paths.h"

namespace fs = std::filesystem;

namespace mlc::test {
using namespace gguf;
namespace {

// From ../shared/reference/gguf-and-llm.md: the storage of integers for iOS18, the elements per
// block, the bits per weight in the package, and the error of fp16 arithmetic. Types that are
// missing in the table are stored in the next larger type, of four or eight bits.
struct Row {
  DType stored;
  int block;
  double bits, error;
  int low, high;  // range of the integers
};
const std::map<std::string, Row> kRows = {
    {"Q4_0", {DType::kInt4, 32, 4.5, 1.6e-4, -8, 7}},
    {"Q8_0", {DType::kInt8, 32, 8.5, 2.1e-4, -128, 127}},
    {"Q5_0", {DType::kInt8, 32, 8.5, 1.8e-4, -16, 15}},
    {"IQ4_NL", {DType::kInt8, 32, 8.5, 2.1e-4, -127, 113}},
    {"IQ4_XS", {DType::kInt8, 32, 8.5, 2.9e-4, -127, 113}},
    {"Q4_1", {DType::kUint4, 32, 5.0, 4.9e-4, 0, 15}},
    {"Q5_1", {DType::kUint8, 32, 9.0, 5.1e-4, 0, 31}},
    {"Q4_K", {DType::kUint4, 32, 5.0, 5.4e-4, 0, 15}},
    {"Q5_K", {DType::kUint8, 32, 9.0, 5.6e-4, 0, 31}},
    {"Q6_K", {DType::kInt8, 16, 9.0, 2.8e-4, -32, 31}},
    {"Q3_K", {DType::kInt4, 16, 5.0, 2.4e-4, -4, 3}},
    {"Q2_K", {DType::kUint4, 16, 6.0, 4.6e-4, 0, 3}},
    {"TQ2_0", {DType::kInt4, 256, 4.0625, 0, -1, 2}},
    {"TQ1_0", {DType::kInt4, 256, 4.0625, 0, -1, 1}},
};

struct Packaged {
  Program program;
  uint64_t weight_bytes;
  std::vector<std::string> encodings;  // the decisions about encodings
};

// Returns the package of a program with two copies of the constant.
Packaged Package(const Tensor& constant, Opset target) {
  Program program(&Ops());
  Function* main = program.Add("main");
  Diagnostics diagnostics;
  std::vector<Value*> made;
  const Type row = Type::Tensor(DType::kFp32, ToShape({1, constant.dims().back()}));
  Value *x = main->AddInput("x", row), *y = main->AddInput("y", row);
  Builder b(main->body, diagnostics);
  made.push_back(b.Make("linear", {{"x", x}, {"weight", b.Const(constant, "w")}}));
  made.push_back(
      b.Make("matmul", {{"x", y}, {"y", b.Const(constant, "twin")}, {"transpose_y", true}}));
  main->body.SetOutputs(made);
  main->inputs.resize(2);
  main->outputs.resize(2);
  for (int i = 0; i < 2; ++i) {
    main->inputs[i].name = i == 0 ? "x" : "y";
    main->outputs[i].name = made[i]->name;
  }
  passes::PassContext context{diagnostics, passes::PassContext::Precision::kFp16, target};
  passes::RunPasses(program, passes::DefaultPipeline(), context);
  ScratchFolder folder;
  coreml::WritePackage(program, folder / "m.mlpackage", {.target = target}, diagnostics);
  auto weights = folder / "m.mlpackage" / "Data" / "com.apple.CoreML" / "weights" / "weight.bin";
  Packaged packaged{
      coreml::ImportCoreml(folder / "m.mlpackage", diagnostics), fs::file_size(weights), {}};
  for (const Decision& decision : diagnostics.decisions())
    if (decision.kind == "encoding") packaged.encodings.push_back(decision.reason);
  return packaged;
}

std::vector<const Operation*> All(const Program& program, std::string_view name) {
  std::vector<const Operation*> found;
  for (const auto& op : program.main()->body.operations())
    if (op->is(name)) found.push_back(op);
  return found;
}

TEST_CASE("gguf: a package contains the source's integers once") {
  auto folder = Corpus("gguf/blocks", "gguf weights in packages");
  if (!folder) return;
  int types = 0;
  for (const auto& [name, row] : kRows) {
    INFO(name);
    GgufFile file = GgufFile::Open(*folder / (name + ".gguf"));
    Tensor constant = file.Constant(file.tensors().at(0));
    Tensor values = ReadNpy(*folder / (name + ".npy"));
    Packaged packaged = Package(constant, Opset::kIos18);
    auto ops = All(packaged.program, "constexpr_blockwise_shift_scale");
    REQUIRE(!ops.empty());
    Tensor data = ops[0]->constant("data"), scale = ops[0]->constant("scale");
    CHECK(data.dtype() == row.stored);
    CHECK(scale.dtype() == DType::kFp16);
    CHECK(data.dims().back() / scale.dims().back() == row.block);

    // The integers reproduce gguf-py's values exactly with the source's scales and biases.
    const Encoding& e = *constant.encoding();
    std::vector<int64_t> q = data.Ints();
    CHECK(*std::ranges::min_element(q) >= row.low);
    CHECK(*std::ranges::max_element(q) <= row.high);
    int64_t wrong = 0;
    for (int64_t i = 0; i < values.size(); ++i) {
      const int64_t cell = i / row.block;
      const double s = e.scale.Double(cell), bias = e.bias ? e.bias.Double(cell) : 0;
      wrong += static_cast<float>(s * static_cast<double>(q[i]) + bias) !=
               static_cast<float>(values.Double(i));
      if (s != 0) wrong += q[i] != e.data.Int(i);
    }
    CHECK(wrong == 0);

    // The error of the values that fp16 arithmetic computes.
    double error = 0, size = 0;
    for (int64_t i = 0; i < values.size(); ++i) {
      auto half = [](double x) { return static_cast<double>(Half(x)); };
      const int64_t cell = i / row.block;
      Tensor offset = ops[0]->constant("offset");
      const double shift = offset ? offset.Double(cell) : 0;
      const double made = half(half(static_cast<double>(q[i]) - shift) * scale.Double(cell));
      error += std::pow(made - values.Double(i), 2);
      size += std::pow(values.Double(i), 2);
    }
    CHECK(std::sqrt(error / size) <= row.error + 1e-4);
    REQUIRE(!packaged.encodings.empty());
    const std::string& reason = packaged.encodings[0];
    INFO(reason);
    REQUIRE(reason.find("an error of ") != std::string::npos);
    CHECK(std::stod(reason.substr(reason.find("an error of ") + 12)) ==
          Approx(std::sqrt(error / size)).epsilon(0.06).margin(1e-9));

    // The data are stored once: both constants have the same offset. Records are aligned to 64
    // bytes and preceded by a header of 64 bytes.
    const auto bytes = static_cast<uint64_t>(static_cast<double>(values.size()) * row.bits / 8);
    CHECK(packaged.weight_bytes >= bytes);
    CHECK(packaged.weight_bytes < bytes + 64 + 3 * 128);
    ++types;
  }
  std::cout << "# gguf: the integers of " << types << " types are in packages as they are\n";
}

TEST_CASE("gguf: a package contains the integers of MXFP4") {
  // Calculated by hand: the palette entries are twice the E2M1 values, the scale is 2^(e - 128).
  const std::vector<int64_t> entries = {0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12};
  std::vector<uint8_t> bytes;
  std::vector<int64_t> wanted;
  std::vector<double> scales;
  for (int block = 0; block < 128; ++block) {
    bytes.push_back(static_cast<uint8_t>(116 + block % 16));
    scales.push_back(std::ldexp(1, 116 + block % 16 - 128));
    std::vector<int64_t> high;
    for (int i = 0; i < 16; ++i) {
      const int low = (i + block) % 16, upper = (3 * i + block) % 16;
      bytes.push_back(static_cast<uint8_t>(low | upper << 4));
      wanted.push_back(entries[low]);
      high.push_back(entries[upper]);
    }
    wanted.insert(wanted.end(), high.begin(), high.end());
  }
  Packaged packaged =
      Package(FromBlocks(*FindBlockType(39), Tensor::Vector(bytes), {64, 64}), Opset::kIos18);
  auto ops = All(packaged.program, "constexpr_blockwise_shift_scale");
  REQUIRE(!ops.empty());
  CHECK(ops[0]->constant("data").dtype() == DType::kInt8);
  CHECK(ops[0]->constant("data").Ints() == wanted);
  CHECK(ops[0]->constant("scale").Doubles() == scales);
  CHECK(packaged.weight_bytes < 4096 + 256 + 64 + 3 * 128);
}

TEST_CASE("gguf: iOS26 packages use palettes for widths between types") {
  auto folder = Corpus("gguf/blocks", "gguf palettes in packages");
  if (!folder) return;
  // From the same table: bits per weight.
  for (auto [name, bits] :
       {std::pair("Q5_0", 6.5), {"IQ4_NL", 4.5}, {"IQ4_XS", 4.5}, {"Q6_K", 7.0}}) {
    INFO(name);
    GgufFile file = GgufFile::Open(*folder / (std::string(name) + ".gguf"));
    Packaged packaged = Package(file.Constant(file.tensors().at(0)), Opset::kIos26);
    CHECK(!All(packaged.program, "constexpr_lut_to_dense").empty());
    CHECK(!All(packaged.program, "constexpr_blockwise_shift_scale").empty());
    CHECK(packaged.weight_bytes < static_cast<uint64_t>(2048 * bits / 8) + 64 + 4 * 128);
  }
}

}  // namespace
}  // namespace mlc::test

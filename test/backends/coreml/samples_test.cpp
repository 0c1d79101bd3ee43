// Writes packages and manifests that samples_test.py checks with other tools. Hidden: runs only
// when selected by its tag.
#include <cstdlib>
#include <fstream>
#include <limits>

#include "backends/coreml/manifest.h"
#include "backends/coreml/write_package.h"
#include "lib/ir/concat_slice.h"
#include "lib/ir/npy.h"
#include "lib/passes/pass.h"
#include "test/backends/coreml/sample_programs.h"
#include "test/catch.h"
#include "test/lib/ir/encoded_constant_program.h"
#include "test/lib/ir/encodings.h"

using namespace mlc;
using namespace mlc::coreml;

namespace {

// Writes the parts of an encoding as .npy files and describes them in JSON; encoded parts are
// nested objects.
class Parts {
 public:
  explicit Parts(std::filesystem::path stem) : stem_(std::move(stem)) {}
  std::string Json(const Tensor& tensor) {
    if (tensor.encoding()) return Json(*tensor.encoding());
    std::filesystem::path file = fmt::format("{}.{}.npy", stem_.string(), count_++);
    WriteNpy(file, tensor);
    return fmt::format("\"{}\"", file.filename().string());
  }
  std::string Json(const Encoding& e) {
    constexpr std::string_view kForms[] = {"affine", "palette", "sparse"};
    std::string json = fmt::format(R"({{"form": "{}", "dtype": "{}", "vector_axis": {})",
                                   kForms[static_cast<int>(e.form)], Name(e.dtype), e.vector_axis);
    for (auto [name, part] : {std::pair("data", &e.data),
                              {"scale", &e.scale},
                              {"offset", &e.offset},
                              {"bias", &e.bias},
                              {"table", &e.table},
                              {"mask", &e.mask}})
      if (*part) json += fmt::format(R"(, "{}": {})", name, Json(*part));
    return json + "}";
  }

 private:
  std::filesystem::path stem_;
  int count_ = 0;
};

}  // namespace

// Every form of encoding: its parts; its values unchanged, transposed, sliced and concatenated; and
// packages for each generation of operators, for encodings_test.py.
TEST_CASE("encoding samples for encodings_test.py", "[.][encoding-samples]") {
  const char* folder = std::getenv("MLC_SAMPLES");
  REQUIRE(folder);
  int number = 0;
  for (const test::EncodingSample& sample : test::EncodingSamples()) {
    std::filesystem::path stem = std::filesystem::path(folder) / fmt::format("{:02}", number++);
    auto file = [&](std::string_view end) { return stem.string() + std::string(end); };
    Tensor constant = Tensor::Encoded(sample.encoding);
    std::ofstream(file(".json")) << fmt::format(R"({{"name": "{}", "encoding": {}}})", sample.name,
                                                Parts(stem).Json(sample.encoding));
    std::vector<int> backwards;
    for (int axis = constant.rank(); axis-- > 0;) backwards.push_back(axis);
    WriteNpy(file(".values.npy"), constant);
    WriteNpy(file(".transposed.npy"), constant.Transposed(backwards));
    WriteNpy(file(".rows.npy"), constant.Rows(4, 8));
    WriteNpy(file(".joined.npy"), Join({constant, constant.Rows(4, 8)}, 0));
    for (Opset target : {Opset::kIos16, Opset::kIos18, Opset::kIos26}) {
      Program program = test::AddsConstant(constant);
      Diagnostics diagnostics;
      passes::PassContext context{diagnostics, passes::PassContext::Precision::kFp32, target};
      passes::kEncodedConstants.run(program, context);
      WritePackage(program, file(fmt::format("_{}.mlpackage", TargetName(target))),
                   {.target = target}, diagnostics);
    }
  }
}

TEST_CASE("samples for samples_test.py", "[.][coreml-samples]") {
  const char* folder = std::getenv("MLC_SAMPLES");
  REQUIRE(folder);
  auto write = [&](const Program& program, const std::string& name, PackageOptions options = {}) {
    Diagnostics diagnostics;
    return WritePackage(program, std::filesystem::path(folder) / (name + ".mlpackage"), options,
                        diagnostics);
  };
  for (Opset target : {Opset::kIos15, Opset::kIos16, Opset::kIos17, Opset::kIos18, Opset::kIos26}) {
    std::string suffix = "_" + std::string(TargetName(target));
    write(test::SmallNetwork(), "network_fp32" + suffix, {.target = target});
    if (target > Opset::kIos15)
      write(test::SmallNetwork(DType::kFp16), "network_fp16" + suffix, {.target = target});
    write(test::TopK(true), "topk_both" + suffix, {.target = target});
    write(test::TopK(false), "topk_values" + suffix, {.target = target});
  }
  write(test::Flexible(), "range");
  write(test::Flexible({2, 4, 9}), "enumerated");
  write(test::OddOutputs(), "odd_outputs");

  Program program = test::Flexible();
  Manifest manifest;
  manifest.mlc_version = "1.2.3";
  manifest.source.name = "model.onnx";
  manifest.package = write(program, "described");
  std::ofstream(std::filesystem::path(folder) / "least.json")
      << ManifestJson(manifest, program, {});

  manifest.source.format = "onnx";
  manifest.source.xxh3_128 = std::string(32, 'a');
  manifest.source.sha256 = std::string(64, 'b');
  manifest.source.facts = {{"opset", "17"}};
  manifest.source.files = {{"model.onnx", 3, std::string(32, 'c'), ""},
                           {"model.data", 4, std::string(32, 'd'), std::string(64, 'e')}};
  manifest.tokenizer = {"json", 5, std::string(32, 'e')};
  manifest.precision = "fp16";
  manifest.fp16_share = 0.75;
  manifest.fp16_segments = 2;
  manifest.no_fp16_form_share = 0.25;
  manifest.measured_on = "generated inputs: N(0, 1)";
  manifest.exceeded = {{"y", 2e-2, 1e-2}};
  manifest.mixed_share = 0.1;
  manifest.options = {{"--dim", {"batch=1", "n=1..8"}}, {"--sha256", {}}};
  manifest.passes = {{"dead-code", true, 0.5, {{"add", 2}}, {{"add", 1}}}};
  manifest.parity = {{"y", 1e-3, std::numeric_limits<double>::infinity(), 1e-2, 1e-3, false}};
  compress::Compression compression{.rules = compress::ParseRules("pal4;first=none")};
  compression.weights = {{.name = "w",
                          .consumer = "y",
                          .op = "conv",
                          .dims = {8, 512},
                          .asked = "none",
                          .used = "none",
                          .weight = true,
                          .bytes_before = 8192,
                          .bytes_after = 8192,
                          .reason = "it is named"},
                         {.name = "v",
                          .consumer = "z",
                          .op = "linear",
                          .dims = {8, 512},
                          .asked = "pal4",
                          .used = "pal4",
                          .weight = true,
                          .compressed = true,
                          .bytes_before = 8192,
                          .bytes_after = 2080,
                          .error = 0.5,
                          .energy = 8}};
  manifest.compression = &compression;
  Port port;
  port.name = "x";
  port.source_name = "input \xff";  // not UTF-8
  port.source_dtype = DType::kFp64;
  port.source_shape = {Dim::Symbol("n"), Dim(4)};
  program.main()->inputs = {port};
  Diagnostics diagnostics;
  diagnostics.Decide("fp32", "softmax \"y\"", "overflows");
  diagnostics.Warn(Error("bad-graph", "unused input"));
  diagnostics.Note("target raised");
  WriteManifest(std::filesystem::path(folder) / "full.mlpackage", manifest, program, diagnostics);
}

// Writes packages and manifests for samples_test.py, which has others judge them. Hidden: runs when
// asked for by its tag.
#include <cstdlib>
#include <fstream>
#include <limits>

#include "backends/coreml/manifest.h"
#include "test/backends/coreml/sample_programs.h"
#include "test/catch.h"

using namespace mlc;

TEST_CASE("samples", "[.][coreml-samples]") {
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
  manifest.precision = "fp16";
  manifest.options = {{"--dim", {"batch=1", "n=1..8"}}, {"--sha256", {}}};
  manifest.passes = {{"dead-code", true, 0.5, {{"add", 2}}, {{"add", 1}}}};
  manifest.parity = {{"y", 1e-3, std::numeric_limits<double>::infinity(), 1e-2, 1e-3, false}};
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

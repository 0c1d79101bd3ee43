// Runs the default pipeline on real models: every program is valid after every pass, a second run
// changes nothing, and channels-last exports keep only the transposes that their borders require.
#include <iostream>
#include <map>

#include "backends/coreml/lower.h"
#include "frontends/onnx/onnx.h"
#include "lib/passes/pass.h"
#include "test/catch.h"
#include "test/paths.h"

namespace mlc::test {
using namespace passes;
namespace {

// Maximum number of remaining transposes, which are required by reshapes and detection heads.
const std::map<std::string, int64_t> kMostTransposes = {{"basic_pitch_nmp", 2},
                                                        {"deeplab_v3_mnv2", 2},
                                                        {"oww_embedding", 0},
                                                        {"oww_melspectrogram", 0},
                                                        {"stm_mobilenetv2_035_128", 0},
                                                        {"stm_yamnet256", 1},
                                                        {"dtln_2", 4}};

}  // namespace

TEST_CASE("the pipeline is valid and idempotent on real models", "[corpus]") {
  std::optional<std::filesystem::path> folder = Corpus("onnx-models", "pipeline");
  if (!folder) return;
  int models = 0, refused = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(*folder)) {
    if (entry.path().extension() != ".onnx") continue;
    std::string name = entry.path().parent_path().filename().string();
    Diagnostics diagnostics;
    std::optional<Program> program;
    try {
      program = onnx::ImportOnnx(entry.path(), {}, diagnostics);
    } catch (const std::exception&) {
      ++refused;  // other tests check the reasons
      continue;
    }
    for (auto precision : {PassContext::Precision::kFp32, PassContext::Precision::kFp16}) {
      INFO(entry.path().string() << (precision == PassContext::Precision::kFp16 ? ", fp16" : ""));
      Program copy = Clone(*program);
      PassContext context{diagnostics, precision,
                          coreml::LowestTarget(copy, DefaultPipeline(), precision, diagnostics)};
      PipelineOptions options;
      options.verify_each = true;
      try {
        RunPasses(copy, DefaultPipeline(), context, options);
        std::map<std::string, int64_t> operators = Histogram(copy);
        for (const PassRun& run : RunPasses(copy, DefaultPipeline(), context)) {
          INFO(run.name << " changes something again");
          CHECK(!run.changed);
        }
        if (auto most = kMostTransposes.find(name); most != kMostTransposes.end())
          CHECK(operators["transpose"] <= most->second);
      } catch (const std::exception& error) {
        FAIL_CHECK(error.what());
      }
    }
    ++models;
  }
  std::cout << "# pipeline: " << models << " real models, run twice in fp32 and fp16 (" << refused
            << " are refused)\n";
}

}  // namespace mlc::test

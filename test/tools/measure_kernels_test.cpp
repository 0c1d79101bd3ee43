// The choices made by measuring do not depend on kernels: every value it uses equals that of the
// `eval` of the operator rows.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <sstream>

#include "backends/coreml/lower.h"
#include "lib/analysis/generated_inputs.h"
#include "lib/ir/text.h"
#include "lib/ops/row.h"
#include "lib/precision/measure.h"
#include "test/catch.h"
#include "test/paths.h"
#include "tools/driver/import.h"
#include "tools/driver/run_passes.h"

namespace mlc::test {
using namespace driver;
namespace {

std::string Chosen(const std::function<Program()>& read, engine::EngineOptions::Kernels kernels) {
  Diagnostics diagnostics;
  Program program = read();
  const std::vector<const passes::PassDef*> passes = passes::DefaultPipeline();
  passes::PassContext context{
      diagnostics, passes::PassContext::Precision::kFp16,
      coreml::LowestTarget(program, passes, passes::PassContext::Precision::kFp16, diagnostics)};
  precision::MeasureOptions options{
      .inputs = precision::MakeUpMeasureInputs(program), .source = read, .kernels = kernels};
  options.passes = {std::find(passes.begin(), passes.end(), &passes::kFp16Precision), passes.end()};
  context.measure = [&](const Program& wide, passes::PassContext& into) {
    CHECK(MeasureFp16(wide, into, options).not_measured == "");
  };
  RunPipeline(program, read, passes, context, {});
  return PrintText(program, {.inline_limit = 8, .max_elements = 32});
}

void CheckKernels(const std::function<Program()>& read) {
  CHECK(Chosen(read, engine::EngineOptions::Kernels::kReproducible) ==
        Chosen(read, engine::EngineOptions::Kernels::kEval));
}

// Returns the results of every executed operation, in order.
std::vector<std::string> Seen(const Function& function,
                              const std::vector<verify::StepInputs>& steps,
                              engine::EngineOptions::Kernels kernels) {
  std::vector<std::string> seen;
  engine::EngineOptions options{.kernels = kernels};
  options.observe = [&](const Operation& op, std::span<Tensor> results) {
    for (const Tensor& result : results)
      seen.push_back(fmt::format("{} {} {}", op.def->name, op.result()->name,
                                 result.dtype() == DType::kString ? "" : result.hash()));
  };
  const engine::Engine engine(function, options);
  engine::States states;
  for (const verify::StepInputs& inputs : steps) engine.Run(inputs, states);
  return seen;
}

// The program before measuring, in fp32 and in fp16.
Program BeforeMeasuring(const std::filesystem::path& model,
                        passes::PassContext::Precision precision) {
  Diagnostics ignored;
  Program program = Import(model, {}, ignored, nullptr);
  const std::vector<const passes::PassDef*> passes = passes::DefaultPipeline();
  passes::PassContext context{ignored, precision,
                              coreml::LowestTarget(program, passes, precision, ignored)};
  RunPipeline(program, [] { return Program(&Ops()); }, passes, context, {});
  return program;
}

}  // namespace

// MLC_EVAL_WORK sets the maximum number of multiply-adds of the programs that are run.
TEST_CASE("kernels used for measuring give the same bits as eval", "[corpus]") {
  const auto models = Corpus("onnx-models", "bits of eval");
  if (!models) return;
  const char* most = std::getenv("MLC_EVAL_WORK");
  int ran = 0, left = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(*models)) {
    const std::filesystem::path& model = entry.path();
    if (model.extension() != ".onnx") continue;
    INFO(model.string());
    try {
      Diagnostics ignored;
      Import(model, {}, ignored, nullptr);
    } catch (const Errors&) {
      continue;  // mlc refuses this model
    }
    for (auto precision :
         {passes::PassContext::Precision::kFp32, passes::PassContext::Precision::kFp16}) {
      const Program program = BeforeMeasuring(model, precision);
      const precision::MeasureInputs inputs = precision::MakeUpMeasureInputs(program);
      const double limit = most ? std::atof(most) : 2e7;
      for (const auto& function : program.functions) {
        auto steps = inputs.steps.find(function->name);
        if (steps == inputs.steps.end() ||
            analysis::CostOf(*function, analysis::GeneratedSizes(*function, steps->second[0], {}))
                    .multiply_adds > limit) {
          ++left;
          continue;
        }
        std::vector<verify::StepInputs> first(steps->second.begin(), steps->second.begin() + 1);
        const auto fast = Seen(*function, first, engine::EngineOptions::Kernels::kReproducible),
                   eval = Seen(*function, first, engine::EngineOptions::Kernels::kEval);
        REQUIRE(fast.size() == eval.size());
        for (size_t i = 0; i < eval.size(); ++i) CHECK(fast[i] == eval[i]);
        ++ran;
      }
    }
  }
  std::fprintf(stderr, "bits of eval: %d programs ran, %d are larger\n", ran, left);
  CHECK(ran > 0);
}

// MLC_EVAL_MODELS names folders of the corpus to use instead of the fast default ones.
TEST_CASE("measuring with eval only chooses the same operations for models", "[corpus]") {
  const auto models = Corpus("onnx-models", "measuring with eval alone");
  if (!models) return;
  const char* given = std::getenv("MLC_EVAL_MODELS");
  std::istringstream names(given ? given : "mnist8 dtln_2 ezkl_lstm_large zoo_loop_if ten_vad");
  for (std::string name; names >> name;) {
    CAPTURE(name);
    CheckKernels([&] {
      Diagnostics ignored;
      return Import(*models / name / "model.onnx", {}, ignored, nullptr);
    });
  }
}

TEST_CASE("measuring with eval only chooses the same operations for graphs harmed by fp16") {
  for (const std::string harm :
       {"harm = mul(x = most, y = 2e4);\nback = mul(x = harm, y = 5e-5);",
        "harm = add(x = most, y = 3000.0);\nback = sub(x = harm, y = 3000.0);",
        "harm = mul(x = most, y = 1e-7);\nback = mul(x = harm, y = 1e7);"}) {
    CAPTURE(harm);
    CheckKernels([&] {
      return ParseText(
          "func main<ios16>(tensor<fp32, [1, 8, 32, 32]> x) {\n"
          "rows = reshape(x = x, shape = [128, 64]);\n"
          "products = matmul(x = rows, y = rows, transpose_y = true);\n"
          "parts = softmax(x = products, axis = -1);\n"
          "most = matmul(x = parts, y = rows);\n" +
              harm + "\ny = tanh(x = back);\n} -> (y);",
          "test.mil", Ops());
    });
  }
}

}  // namespace mlc::test

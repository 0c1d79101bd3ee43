// What measuring chooses hangs on no kernel: by the rows' `eval` alone it is the same program.
#include <algorithm>

#include "backends/coreml/lower.h"
#include "lib/ir/text.h"
#include "lib/ops/row.h"
#include "lib/verify/measure.h"
#include "test/catch.h"
#include "test/paths.h"
#include "tools/driver/import.h"
#include "tools/driver/pipeline.h"

namespace mlc::test {
namespace {

std::string Chosen(const std::function<Program()>& read, EngineOptions::Kernels kernels) {
  Diagnostics diagnostics;
  Program program = read();
  const std::vector<const PassDef*> passes = DefaultPipeline();
  PassContext context{diagnostics, PassContext::Precision::kFp16,
                      LowestTarget(program, passes, PassContext::Precision::kFp16, diagnostics)};
  context.fp32_tail = true;
  MeasureOptions options{
      .inputs = MakeUpMeasureInputs(program), .source = read, .kernels = kernels};
  options.passes = {std::find(passes.begin(), passes.end(), &kFp16Precision), passes.end()};
  context.measure = [&](const Program& wide, PassContext& into) {
    CHECK(MeasureFp16(wide, into, options).not_measured == "");
  };
  RunPipeline(program, read, passes, context, {});
  return PrintText(program, {.inline_limit = 8, .max_elements = 32});
}

void CheckKernels(const std::function<Program()>& read) {
  CHECK(Chosen(read, EngineOptions::Kernels::kReproducible) ==
        Chosen(read, EngineOptions::Kernels::kEval));
}

}  // namespace

TEST_CASE("measuring with eval alone chooses the same for small models", "[corpus]") {
  const auto models = Corpus("onnx-models", "measuring with eval alone");
  if (!models) return;
  for (const std::string name : {"mnist8", "dtln_2", "ezkl_lstm_large", "zoo_loop_if"}) {
    CAPTURE(name);
    CheckKernels([&] {
      Diagnostics ignored;
      return Import(*models / name / "model.onnx", {}, ignored, nullptr);
    });
  }
}

TEST_CASE("measuring with eval alone chooses the same for what does harm") {
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

// Runs every case of test/golden/passes: passes must preserve results and be valid, report changes
// correctly, and change nothing the second time. golden_test.py compares the golden files
// themselves.
#include <fstream>
#include <iostream>
#include <set>
#include <sstream>

#include "backends/coreml/lower.h"
#include "lib/ir/text.h"
#include "lib/ops/row.h"
#include "lib/passes/pass.h"
#include "lib/verify/check_pass.h"
#include "test/catch.h"
#include "test/paths.h"

namespace mlc::test {
using namespace passes;
namespace {

// A row that is entirely masked has equal probabilities only after rounding to fp16.
constexpr std::string_view kOnlyInFp16 = "safe-masks.mil, case 2";

struct Case {
  std::string where, passes, text;
  bool fp16 = false;
  std::optional<analysis::Unit> optimize_for;
};

PassContext::Precision PrecisionOf(const Case& c) {
  return c.fp16 ? PassContext::Precision::kFp16 : PassContext::Precision::kFp32;
}

Opset TargetOf(const Program& program, const Case& c) {
  Diagnostics diagnostics;
  return coreml::LowestTarget(program, ParsePasses(c.passes), PrecisionOf(c), diagnostics);
}

std::string WordAfter(const std::string& line, const std::string& flag) {
  std::istringstream words(line);
  for (std::string word; words >> word;)
    if (word == flag && words >> word) return word;
  return "";
}

std::vector<Case> Cases() {
  std::vector<Case> cases;
  for (const auto& entry : std::filesystem::directory_iterator(SourcePath("test/golden/passes"))) {
    std::ifstream file(entry.path());
    Case next;
    bool input = true;
    int number = 0;
    auto finish = [&] {
      next.where = entry.path().filename().string() + ", case " + std::to_string(++number);
      cases.push_back(next);
      next.text.clear();
      input = true;
    };
    for (std::string line; std::getline(file, line);) {
      if (line.starts_with("// RUN: ")) {
        next.passes = WordAfter(line, "--passes");
        next.fp16 = WordAfter(line, "--precision") == "fp16";
        next.optimize_for = analysis::UnitNamed(WordAfter(line, "--optimize-for"));
      } else if (line == "// ----") {
        finish();
      } else if (line == "// CHECK") {
        input = false;
      } else if (input) {
        next.text += line + '\n';
      }
    }
    finish();
  }
  return cases;
}

// Moves the operations from `first` on into a branch that is taken; the other returns zeros.
// Returns false if the outputs are not computed there or have no static type.
bool MoveIntoBranch(Program& program, Operation* first) {
  Function& main = *program.main();
  Diagnostics diagnostics;
  std::vector<Operation*> moved;
  for (Operation* op = first; op; op = main.body.Next(op)) moved.push_back(op);
  std::vector<Value*> outputs = main.body.outputs();
  for (Value* output : outputs)
    if (!output->def || !output->type.is_tensor() || !IsStatic(output->type.shape) ||
        std::find(moved.begin(), moved.end(), output->def) == moved.end())
      return false;
  Value* choice = main.AddInput("choice", Type::Tensor(DType::kFp32, {}));
  Port port;
  port.name = choice->name;
  main.inputs.push_back(port);
  Builder builder(main.body, diagnostics, first);
  Value* pred = builder.Make("less", {{"x", choice}, {"y", 100.0}});

  std::vector<std::unique_ptr<Block>> blocks;
  std::vector<Value*> zeros;
  for (int i = 0; i < 2; ++i) {
    blocks.push_back(std::make_unique<Block>());
    blocks[i]->function = &main;
  }
  main.body.SetOutputs({});
  for (Operation* op : moved) blocks[0]->MoveBefore(op, nullptr);
  blocks[0]->SetOutputs(outputs);
  Builder zero(*blocks[1], diagnostics);
  for (Value* output : outputs)
    zeros.push_back(
        zero.Const(Tensor::Full(output->type.dtype, StaticDims(output->type.shape), 0)));
  blocks[1]->SetOutputs(zeros);
  for (Value* output : outputs) main.Rename(output, output->name + "_inside");
  Builder end(main.body, diagnostics);
  std::vector<Value*> results = end.MakeNested("cond", {{"pred", pred}}, std::move(blocks));
  main.body.SetOutputs(results);
  for (size_t i = 0; i < results.size(); ++i) main.Rename(results[i], main.outputs[i].name);
  return true;
}

}  // namespace

TEST_CASE("passes preserve results and are idempotent", "[passes]") {
  int compared = 0;
  for (const Case& c : Cases()) {
    INFO(c.where << "\n" << c.text);
    try {
      Program program = ParseText(c.text, c.where, Ops()), before = Clone(program);
      Diagnostics diagnostics;
      PassContext context{diagnostics, PrecisionOf(c), TargetOf(program, c), c.optimize_for};
      auto passes = ParsePasses(c.passes);
      bool changed = false;
      for (const PassRun& run : RunPasses(program, passes, context, {.verify_each = true}))
        changed = changed || run.changed;
      std::string printed = PrintText(program);
      CHECK(changed == (printed != PrintText(before)));
      for (const PassRun& run : RunPasses(program, passes, context)) {
        INFO(run.name << " changes something again");
        CHECK(!run.changed);
      }
      CHECK(PrintText(program) == printed);
      if (c.where == kOnlyInFp16) continue;
      verify::CheckSame(before, program, 1, c.passes);
      ++compared;
    } catch (const std::exception& error) {
      FAIL_CHECK(error.what());
    }
  }
  std::cout << "# passes: " << compared << " programs compute the same before and after\n";
}

TEST_CASE("passes preserve results across block boundaries", "[passes]") {
  int split = 0;
  for (const Case& c : Cases()) {
    size_t count = ParseText(c.text, c.where, Ops()).main()->body.operations().size();
    // Half of the operations in the branch, then all except the last outside.
    for (size_t at : std::set<size_t>{count / 2, count - 1}) {
      Program program = ParseText(c.text, c.where, Ops());
      const Block::Operations& operations = program.main()->body.operations();
      if (!MoveIntoBranch(program, *std::next(operations.begin(), at))) continue;
      INFO(c.where << "\n" << PrintText(program, {.inline_limit = 8}));
      ++split;
      try {
        Verify(program);
        for (const std::string& passes : {c.passes, std::string("all")}) {
          Program copy = Clone(program);
          Diagnostics diagnostics;
          PassContext context{diagnostics, PrecisionOf(c), TargetOf(program, c), c.optimize_for};
          PipelineOptions options{.verify_each = true};
          if (c.where != kOnlyInFp16)
            options.check_each = [](const Program& before, const Program& after,
                                    std::string_view pass) {
              verify::CheckSame(before, after, 1, pass);
            };
          RunPasses(copy, passes == "all" ? DefaultPipeline() : ParsePasses(passes), context,
                    options);
        }
      } catch (const std::exception& error) {
        FAIL_CHECK(error.what());
      }
    }
  }
  std::cout << "# passes: " << split << " programs with a branch compute the same after each\n";
}

TEST_CASE("every pass has golden cases, and every golden file is named after a pass", "[passes]") {
  std::string all;
  for (const Case& c : Cases()) all += c.passes + ',';
  for (const PassDef* pass : AllPasses()) {
    INFO("no case of test/golden/passes runs " << pass->name);
    CHECK(all.find(std::string(pass->name) + ',') != std::string::npos);
    CHECK(!pass->summary.empty());  // shown by mlc opt --help
  }
}

}  // namespace mlc::test

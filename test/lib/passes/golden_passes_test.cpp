// Every case of test/golden/passes: the passes keep results and form, say truthfully whether they
// changed something, and change nothing the second time. The golden files themselves are compared
// by golden_test.py.
#include <fstream>
#include <iostream>
#include <sstream>

#include "lib/ir/text.h"
#include "lib/ops/row.h"
#include "lib/passes/pass.h"
#include "lib/verify/check_same.h"
#include "test/catch.h"
#include "test/paths.h"

namespace mlc::test {
namespace {

struct Case {
  std::string where, passes, text;
  bool fp16 = false;
};

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

}  // namespace

TEST_CASE("passes keep what a program computes and are done after one run", "[passes]") {
  int compared = 0;
  for (const Case& c : Cases()) {
    INFO(c.where << "\n" << c.text);
    try {
      Program program = ParseText(c.text, c.where, Ops()), before = Clone(program);
      Diagnostics diagnostics;
      PassContext context{diagnostics,
                          c.fp16 ? PassContext::Precision::kFp16 : PassContext::Precision::kFp32,
                          std::nullopt};
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
      // With random inputs an infinite mask or a thousandfold input says nothing in fp16.
      if (!c.fp16 && c.passes != "fold-constants,dead-code") {
        CheckSame(before, program, 1, c.passes);
        ++compared;
      }
    } catch (const std::exception& error) {
      FAIL_CHECK(error.what());
    }
  }
  std::cout << "# passes: " << compared << " programs compute the same before and after\n";
}

TEST_CASE("every golden folder case names a pass, and every pass has one", "[passes]") {
  std::string all;
  for (const Case& c : Cases()) all += c.passes + ',';
  for (const PassDef* pass : AllPasses()) {
    INFO(pass->name);
    CHECK(all.find(std::string(pass->name) + ',') != std::string::npos);
  }
}

TEST_CASE("lib/passes/README.md lists every pass with its summary", "[passes]") {
  std::ifstream file(SourcePath("lib/passes/README.md"));
  std::string text{std::istreambuf_iterator<char>(file), {}};
  for (const PassDef* pass : AllPasses()) {
    INFO(pass->name);
    CHECK(text.find("| " + std::string(pass->name) + " | " + std::string(pass->summary) + " |") !=
          std::string::npos);
  }
}

}  // namespace mlc::test

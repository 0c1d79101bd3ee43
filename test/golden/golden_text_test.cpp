// Every MIL text in a golden file, input or expectation, is the same after parse, print, parse,
// print. What commands do is checked by golden_test.py.
#include <fstream>
#include <iostream>
#include <iterator>

#include "lib/ir/text.h"
#include "lib/ops/row.h"
#include "test/catch.h"
#include "test/paths.h"

namespace mlc::test {
namespace {

// The parts of a golden file between its lines `// CHECK` and `// ----`.
std::vector<std::string> Parts(const std::filesystem::path& path) {
  std::vector<std::string> parts(1);
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    if (line == "// CHECK" || line == "// ----") {
      parts.emplace_back();
    } else {
      parts.back() += line + '\n';
    }
  }
  return parts;
}

std::string Print(const std::string& text, const std::string& name, int inline_limit) {
  Program program = ParseText(text, name, Ops());
  Verify(program);
  TextOptions options;
  options.inline_limit = inline_limit;
  return PrintText(program, options);
}

}  // namespace

TEST_CASE("golden: parse, print, parse, print", "[golden]") {
  int texts = 0;
  for (const auto& entry :
       std::filesystem::recursive_directory_iterator(SourcePath("test/golden"))) {
    if (entry.path().extension() != ".mil") continue;
    std::vector<std::string> parts = Parts(entry.path());
    for (size_t i = 0; i < parts.size(); ++i) {
      bool refused = i + 1 < parts.size() && parts[i + 1].starts_with("// exit");
      bool elided = parts[i].find("...") != std::string::npos;
      if (refused || elided || !IsMilText(parts[i])) continue;
      INFO(entry.path().string() << ", part " << i + 1 << "\n" << parts[i]);
      try {
        for (int inline_limit : {0, 8}) {
          std::string once = Print(parts[i], "golden", inline_limit);
          CHECK(Print(once, "printed", inline_limit) == once);
        }
        ++texts;
      } catch (const std::exception& error) {
        FAIL_CHECK(error.what());
      }
    }
  }
  std::cout << "# golden: " << texts << " texts are the same after parse, print, parse, print\n";
}

}  // namespace mlc::test

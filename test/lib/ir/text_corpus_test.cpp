// Apple's own model.mil files: parsing, verifying and printing reproduce the same bytes.
#include <fstream>
#include <iostream>
#include <iterator>
#include <set>

#include "lib/ir/text.h"
#include "lib/ops/row.h"
#include "test/catch.h"
#include "test/paths.h"

namespace mlc::test {
namespace {

std::string ReadAll(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

// The weight files are not available; references to them are preserved.
std::string RoundTrip(const std::string& text, const std::string& name) {
  Program program = ParseText(text, name, Ops());
  Verify(program);
  Verify(Clone(program));
  TextOptions options;
  options.dialect = DialectOf(text);
  options.blob = [](const Tensor& tensor) -> std::optional<TextOptions::Blob> {
    if (tensor.absent_file().empty()) return std::nullopt;
    return TextOptions::Blob{tensor.absent_file(), tensor.file_view().offset};
  };
  return PrintText(program, options);
}

}  // namespace

TEST_CASE("text: Apple's files round trip byte for byte", "[corpus]") {
  std::optional<std::filesystem::path> folder = Corpus("mlmodelc", "text");
  if (!folder) return;
  int files = 0, equal = 0;
  std::set<std::string> missing;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(*folder)) {
    if (entry.path().filename() != "model.mil") continue;
    ++files;
    INFO(entry.path().string());
    std::string text = ReadAll(entry.path());
    std::string printed;
    try {
      printed = RoundTrip(text, entry.path().string());
    } catch (const Error& error) {
      missing.insert(error.what());
      CHECK(error.id() == "unsupported-operator");  // the operator is not in the table yet
      continue;
    }
    if (text.ends_with('\n')) printed += '\n';
    CHECK(printed.size() == text.size());
    CHECK((printed == text));
    ++equal;
  }
  std::cout << "# text: " << equal << " of " << files
            << " model.mil files of Apple come back byte for byte\n";
  for (const std::string& message : missing) std::cout << "# text: " << message << "\n";
}

}  // namespace mlc::test

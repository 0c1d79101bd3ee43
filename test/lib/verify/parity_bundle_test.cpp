#include "lib/verify/parity_bundle.h"

#include <fstream>
#include <sstream>

#include "lib/support/hash.h"
#include "test/backends/coreml/package_files.h"
#include "test/catch.h"

namespace mlc::test {
using namespace verify;
namespace {

std::string Read(const std::filesystem::path& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

}  // namespace

TEST_CASE("parity bundles: other format versions are rejected") {
  ScratchFolder scratch;
  std::filesystem::path package = scratch / "p.mlpackage", folder = scratch / "bundle";
  std::filesystem::create_directories(package);
  std::ofstream(package / "file") << "content";
  Tensor x = Tensor::Vector<float>({1, 2});
  Parity parity;
  parity.budgets = ParseBudgets("fp16");
  parity.budgets.outputs["y"].per_axis = 1;
  WriteParity(folder, package, parity,
              {{"main", {{{"x", x}}}, {{{{"y", x}, {"z", Tensor()}}, {}}}}});
  Parity read = ReadParity(folder);
  CHECK(read.inputs.at(0).file == "inputs/x.npy");
  REQUIRE(read.outputs.size() == 1);
  CHECK(read.outputs[0].function == "main");
  CHECK(read.budgets.of("y").per_axis == 1);
  CHECK(read.budgets.of("z").max_error == 1e-2);
  for (int version : {1, 2, 4}) {
    std::string text = Read(folder / "parity.json"), old = "\"version\": 3",
                field = "checksum\": \"";
    text.replace(text.find(old), old.size(), fmt::format("\"version\": {}", version));
    size_t at = text.find(field) + field.size();
    text.replace(at, 32, std::string(32, '0'));
    Xxh3 hash;
    hash.Update(text);
    text.replace(at, 32, hash.Hex());
    std::filesystem::create_directories(scratch / "other");
    std::ofstream(scratch / "other" / "parity.json") << text;
    CHECK_THROWS_WITH(ReadParity(scratch / "other"),
                      ContainsSubstring(fmt::format("format version {}", version)) &&
                          ContainsSubstring("expected: version 3"));
  }
}

TEST_CASE("parity bundles: reports survive a round trip") {
  Compared row{"f", "y", true, 2, {}, HiddenSlice{1, 3, 640, 0.5, 0.25}, false};
  row.comparison = Compare(Tensor::Of<float>({2, 2}, {1, 2, INFINITY, 3}),
                           Tensor::Of<float>({2, 2}, {1, 2, 4, 3}));
  Compared integers{"f", "z", false, 0, {}, {}, false};
  integers.comparison =
      Compare(Tensor::Vector<int32_t>({1, 2}), Tensor::Vector<int32_t>({1, 2, 4}));
  Compared missing = CompareTensor("f", "m", false, 0, {}, Tensor::Vector<float>({1}), {});
  std::vector<Compared> list = {row, integers, missing}, again = ReportFromJson(ReportJson(list));
  CHECK(ReportText(again) == ReportText(list));
  CHECK(ReportJson(again) == ReportJson(list));
  CHECK_THAT(ReportText(list), ContainsSubstring("worst at [1, 0]: inf, reference 4") &&
                                   ContainsSubstring("no such output"));
}

}  // namespace mlc::test

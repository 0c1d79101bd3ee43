// Compiled bundles: those of Apple's compiler are read and reproduced, those of mlc are written and
// read back.
#include <algorithm>
#include <nlohmann/json.hpp>

#include "backends/coreml/write_mlmodelc.h"
#include "backends/coreml/write_package.h"
#include "frontends/coreml/coreml.h"
#include "lib/coreml/mlmodelc_layout.h"
#include "lib/ir/builder.h"
#include "lib/ir/text.h"
#include "lib/support/hash.h"
#include "test/backends/coreml/package_files.h"
#include "test/backends/coreml/sample_programs.h"
#include "test/catch.h"
#include "test/expected_error.h"
#include "test/paths.h"

using namespace mlc;
using namespace mlc::coreml;
using namespace mlc::test;
namespace fs = std::filesystem;

namespace {

Program Import(const fs::path& path) {
  Diagnostics diagnostics;
  return ImportCoreml(path, diagnostics);
}

void Put(const fs::path& path, const std::string& bytes) {
  fs::create_directories(path.parent_path());
  std::ofstream(path, std::ios::binary) << bytes;
}

std::string Sha256Of(const std::string& bytes) {
  Sha256 hash;
  hash.Update(bytes);
  return hash.Hex();
}

// A bundle of SmallNetwork.
struct Bundle {
  Bundle() {
    Diagnostics diagnostics;
    WritePackage(SmallNetwork(), package, {}, diagnostics);
    WriteBundle(Import(package), package / "Data/com.apple.CoreML", path, {.class_name = "small"},
                diagnostics);
  }
  ScratchFolder folder;
  fs::path package = folder / "small.mlpackage", path = folder / "small.mlmodelc";
};

}  // namespace

TEST_CASE("bundle: written bundles read back as the same program") {
  Bundle bundle;
  Program from_package = Import(bundle.package), from_bundle = Import(bundle.path);
  Verify(from_bundle);
  CHECK(from_bundle.build_info.size() ==
        from_package.build_info.size() + 2);  // two entries of the compiler
  from_package.build_info = from_bundle.build_info;
  CHECK(PrintText(from_bundle) == PrintText(from_package));
  CHECK(from_bundle.interface.metadata == from_package.interface.metadata);
  CHECK(from_bundle.interface.specification_version ==
        from_package.interface.specification_version);
  for (size_t i = 0; i < from_package.main()->inputs.size(); ++i)
    CHECK(from_bundle.main()->inputs[i].name == from_package.main()->inputs[i].name);
  Diagnostics diagnostics;
  CHECK(BundleDataOf(from_bundle, diagnostics) == ContentsOf(bundle.path / kBundleData));
  CHECK(ContentsOf(bundle.path / kBundleWeights) ==
        ContentsOf(bundle.package / "Data/com.apple.CoreML/weights/weight.bin"));
  CHECK(BundleText(from_bundle, bundle.path, "", "") == ContentsOf(bundle.path / kBundleText));
}

TEST_CASE("bundle: metadata.json has the contents that Apple's compiler writes") {
  std::optional<fs::path> corpus = Corpus("mlmodelc", "metadata of bundles");
  if (!corpus) return;
  std::vector<std::pair<fs::path, fs::path>> pairs = {
      {*corpus / "pair/160ms/model.mlmodel", *corpus / "pair/160ms/metadata.json"}};
  for (const auto& entry : fs::directory_iterator(*corpus))
    if (entry.path().extension() == ".mlmodelc")
      pairs.emplace_back(entry.path(), entry.path() / "metadata.json");
  for (const auto& [model, file] : pairs) {
    INFO(model);
    nlohmann::json apple = nlohmann::json::parse(ContentsOf(file));
    CHECK(nlohmann::json::parse(BundleMetadata(
              Import(model), apple[0]["generatedClassName"].get<std::string>())) == apple);
  }
  printf("# bundles: metadata.json of %zu compared with Apple's\n", pairs.size());
}

TEST_CASE("bundle: a bare model file needs no weights to be printed") {
  Bundle bundle;
  fs::path model = bundle.folder / "alone/model.mlmodel";
  Put(model, ContentsOf(bundle.package / "Data/com.apple.CoreML/model.mlmodel"));
  CHECK(DetectCoreml(model) == CoremlFormat::kModel);
  Program program = Import(model);
  CHECK(BundleText(program, model.parent_path(), "", "") == ContentsOf(bundle.path / kBundleText));
  CHECK_THAT(
      BundleText(program, model.parent_path(), "1.2", "3.4"),
      ContainsSubstring("{\"coremlc-component-MIL\", \"3.4\"}, {\"coremlc-version\", \"1.2\"}"));
  Diagnostics diagnostics;
  CHECK_THROWS_AS(
      WriteBundle(program, model.parent_path(), bundle.folder / "no.mlmodelc", {}, diagnostics),
      Error);
  CHECK(!fs::exists(bundle.folder / "no.mlmodelc"));
  bool asked = false;
  ForEachOperation(*program.main(), [&](Operation* op) {
    if (!op->is("const") || op->val.absent_file().empty() || asked) return;
    asked = true;
    CHECK_THROWS_AS(op->val.bytes(), Error);
  });
  CHECK(asked);
}

TEST_CASE("bundle: damaged files are located errors") {
  Bundle bundle;
  std::string data = ContentsOf(bundle.path / kBundleData);
  auto refuse = [&](const std::string& bytes) {
    Put(bundle.path / kBundleData, bytes);
    return Refusal([&] { Import(bundle.path); });
  };
  CHECK_THAT(refuse(data.substr(0, 50)), ContainsSubstring("offset 43"));
  CHECK_THAT(refuse(data + "x"), ContainsSubstring("bytes"));
  std::string kind = data;
  kind[0] = static_cast<char>(500 & 0xFF);
  CHECK_THAT(refuse(kind), ContainsSubstring("neural network"));
  kind[0] = 7;
  CHECK_THAT(refuse(kind), ContainsSubstring("unknown model kind"));
  std::string reserved = data;
  reserved[0x33] = 1;
  CHECK_THAT(refuse(reserved), ContainsSubstring("offset 51"));
  std::string length = data;
  length[0x4B + 6] = 1;
  CHECK_THAT(refuse(length), ContainsSubstring("the description needs"));
  std::string version = data;
  version[0x2B] = 77;
  CHECK_THAT(refuse(version), ContainsSubstring("specification version 77"));
  for (size_t i = 0; i < data.size(); ++i) {
    std::string flipped = data;
    flipped[i] = static_cast<char>(flipped[i] ^ (1 << i % 8));
    Put(bundle.path / kBundleData, flipped);
    try {
      Import(bundle.path);
    } catch (const Error&) {
    }
  }
  Put(bundle.path / kBundleData, data);
  CHECK(Refusal([&] { Import(bundle.path); }).empty());
  std::string text = ContentsOf(bundle.path / kBundleText);
  Put(bundle.path / kBundleText, text.substr(0, text.size() / 2));
  CHECK_THAT(Refusal([&] { Import(bundle.path); }), ContainsSubstring("model.mil"));
  fs::remove(bundle.path / kBundleText);
  CHECK_THAT(Refusal([&] { Import(bundle.path); }), ContainsSubstring("model.mil"));
}

TEST_CASE("bundle: Apple's coremldata.bin is reproduced byte for byte", "[corpus]") {
  int bundles = 0;
  std::optional<fs::path> corpus = Corpus("mlmodelc", "bundles");
  if (!corpus) return;
  for (const fs::directory_entry& entry : fs::directory_iterator(*corpus)) {
    if (DetectCoreml(entry.path()) != CoremlFormat::kBundle) continue;
    INFO(entry.path());
    bool has_weights = fs::exists(entry.path() / kBundleWeights);
    Program program = Import(entry.path());
    Verify(program);
    Diagnostics diagnostics;
    CHECK(BundleDataOf(program, diagnostics) == ContentsOf(entry.path() / kBundleData));
    std::string text = ContentsOf(entry.path() / kBundleText);
    if (text.ends_with('\n')) text.pop_back();
    CHECK(BundleText(program, entry.path(), "", "") == text);
    ScratchFolder folder;
    WriteBundle(program, entry.path(), folder / "again.mlmodelc", {}, diagnostics);
    CHECK(fs::exists(folder / "again.mlmodelc" / kBundleWeights) == has_weights);
    CHECK(PrintText(Import(folder / "again.mlmodelc")) == PrintText(program));
    ++bundles;
  }
  printf("# bundles: %d of Apple read, coremldata.bin and model.mil come back byte for byte\n",
         bundles);
  CHECK(bundles >= 8);
}

TEST_CASE("bundle: a bare model file is compiled to the files that Apple's compiler wrote",
          "[corpus]") {
  std::optional<fs::path> corpus = Corpus("mlmodelc/pair/160ms", "a model and its bundle");
  if (!corpus) return;
  const fs::path& pair = *corpus;
  Program program = Import(pair / "model.mlmodel");
  Verify(program);
  std::string apple = ContentsOf(pair / kBundleText);
  CHECK((BundleText(program, pair, "3500.32.1", "3500.14.1") == apple));

  // The order of the metadata entries is not specified; exactly one permutation gives Apple's
  // bytes.
  auto entries = program.interface.metadata;
  std::sort(entries.begin(), entries.end());
  int found = 0, orders = 0;
  do {
    Program ordered = Clone(program);
    ordered.interface.metadata = entries;
    Diagnostics diagnostics;
    std::string data = BundleDataOf(ordered, diagnostics);
    CHECK(data.size() == 670);
    found += Sha256Of(data) == "0dfbafd824cd3b873c314f8522f80adf3c1fbdee7ca01f721bca219b9bdde8ea";
    ++orders;
  } while (std::next_permutation(entries.begin(), entries.end()));
  CHECK(orders == 6);
  CHECK(found == 1);

  // Printing, parsing and printing again gives the same text, also with an operation inserted by a
  // pass.
  for (bool insert : {false, true}) {
    Diagnostics diagnostics;
    if (insert) {
      Value* output = program.main()->body.outputs()[0];
      Builder builder(program.main()->body, diagnostics);
      Value* doubled = builder.Make("mul", {{"x", output}, {"y", 2.0}});
      program.main()->body.SetOutput(0, doubled);
      program.main()->outputs[0].name = doubled->name;
    }
    TextOptions options;
    options.blob = [](const Tensor& tensor) -> std::optional<TextOptions::Blob> {
      if (tensor.absent_file().empty()) return std::nullopt;
      return TextOptions::Blob{tensor.absent_file(), tensor.file_view().offset};
    };
    std::string text = PrintText(program, options);
    Program again = ParseText(text, "again.mil", *program.ops);
    Verify(again);
    CHECK((PrintText(again, options) == text));
  }
}

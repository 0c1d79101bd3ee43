// Compiled Core ML bundles: any bytes give a well-formed Program or an Error, and coremldata.bin is
// written back unchanged. Parts: coremldata.bin, or just the description that it holds; model.mil;
// weights/weight.bin.
#include "frontends/coreml/coreml.h"
#include "lib/coreml/mlmodelc_layout.h"
#include "lib/ir/text.h"
#include "test/fuzz/file_parts.h"

namespace {
constexpr size_t kParts = 3;

const mlc::ScratchFolder& Bundle() {
  static const mlc::ScratchFolder folder("mlmodelc_fuzz");
  return folder;
}

std::string DataFile(const std::string& part) {
  mlc::coreml::BundleData data;
  try {
    data = mlc::coreml::ReadBundleData(std::as_bytes(std::span(part)));
    MLC_CHECK(mlc::coreml::WriteBundleData(data) == part, "coremldata.bin is not written back");
    return part;
  } catch (const mlc::Error&) {
  }
  data.specification_version = 8;
  data.version = mlc::coreml::BundleVersion(8);
  data.description = part;
  return mlc::coreml::WriteBundleData(data);
}
}  // namespace

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t max_size,
                                          unsigned seed) {
  return mlc::MutateParts(data, size, max_size, seed, kParts);
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::vector<std::string> parts = mlc::SplitParts(data, size, kParts);
  Bundle().Write(mlc::coreml::kBundleData, DataFile(parts[0]));
  Bundle().Write(mlc::coreml::kBundleText, parts[1]);
  Bundle().Write(mlc::coreml::kBundleWeights, parts[2]);
  mlc::Diagnostics diagnostics;
  try {
    mlc::Program program = mlc::coreml::ImportCoreml(Bundle().path(), diagnostics);
    mlc::Verify(program);
    mlc::coreml::BundleText(program, Bundle().path(), "", "");
  } catch (const mlc::Error&) {
  } catch (const mlc::Errors&) {
  }
  return 0;
}

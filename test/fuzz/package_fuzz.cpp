// The Core ML reader of packages: any bytes give a well-formed Program or an Error. Parts:
// model.mlmodel, weights/weight.bin.
#include "frontends/coreml/coreml.h"
#include "lib/ir/text.h"
#include "test/fuzz/file_parts.h"

namespace {
constexpr size_t kParts = 2;

const mlc::ScratchFolder& Package() {
  static const mlc::ScratchFolder folder("package_fuzz");
  return folder;
}
}  // namespace

extern "C" int LLVMFuzzerInitialize(int*, char***) {
  Package().Write("Manifest.json",
                  R"({"fileFormatVersion": "1.0.0", "rootModelIdentifier": "model",)"
                  R"( "itemInfoEntries": {"model": {"path": "model.mlmodel"}}})");
  return 0;
}

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t max_size,
                                          unsigned seed) {
  return mlc::MutateParts(data, size, max_size, seed, kParts);
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::vector<std::string> parts = mlc::SplitParts(data, size, kParts);
  Package().Write("Data/model.mlmodel", parts[0]);
  Package().Write("Data/weights/weight.bin", parts[1]);
  mlc::Diagnostics diagnostics;
  try {
    mlc::Program program = mlc::coreml::ImportCoreml(Package().path(), diagnostics);
    mlc::Verify(program);
    mlc::PrintText(program);
  } catch (const mlc::Error&) {
  } catch (const mlc::Errors&) {
  }
  return 0;
}

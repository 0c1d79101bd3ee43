// The Core ML reader: any bytes give a well-formed Program or an Error. An input is the size of
// model.mlmodel (4 bytes, little endian), model.mlmodel, and weights/weight.bin.
#include <unistd.h>

#include <cstring>
#include <fstream>

#include "frontends/coreml/import.h"
#include "lib/ir/text.h"

namespace {

namespace fs = std::filesystem;

void Write(const fs::path& path, const char* data, size_t size) {
  std::ofstream(path, std::ios::binary).write(data, static_cast<std::streamsize>(size));
}

// A package in a folder of this process, in memory where the system has such a folder.
struct Package {
  fs::path path, model, weights;

  Package() {
    fs::path memory = "/dev/shm";
    path = (fs::exists(memory) ? memory : fs::temp_directory_path()) /
           ("package_fuzz-" + std::to_string(getpid()));
    model = path / "Data" / "model.mlmodel";
    weights = path / "Data" / "weights" / "weight.bin";
    fs::create_directories(weights.parent_path());
    std::string_view manifest = R"({"fileFormatVersion": "1.0.0", "rootModelIdentifier": "model",)"
                                R"( "itemInfoEntries": {"model": {"path": "model.mlmodel"}}})";
    Write(path / "Manifest.json", manifest.data(), manifest.size());
  }
  ~Package() {
    std::error_code ignored;
    fs::remove_all(path, ignored);
  }
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const Package package;
  uint32_t model_size = 0;
  if (size < sizeof model_size) return 0;
  std::memcpy(&model_size, data, sizeof model_size);
  const char* bytes = reinterpret_cast<const char*>(data) + sizeof model_size;
  size -= sizeof model_size;
  size_t split = std::min<size_t>(model_size, size);
  Write(package.model, bytes, split);
  Write(package.weights, bytes + split, size - split);
  mlc::Diagnostics diagnostics;
  try {
    mlc::Program program = mlc::ImportCoreml(package.path, diagnostics);
    mlc::Verify(program);
    mlc::PrintText(program);
  } catch (const mlc::Error&) {
  } catch (const mlc::Errors&) {
  }
  return 0;
}

// Hugging Face folders: any config.json and any weight file give tensors whose elements can all be
// read, or an Error. Parts: config.json, the index (may be empty), the weights.
#include "frontends/safetensors/folder.h"
#include "test/fuzz/file_parts.h"

namespace {
constexpr size_t kParts = 3;
}  // namespace

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t max_size,
                                          unsigned seed) {
  return mlc::MutateParts(data, size, max_size, seed, kParts);
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const mlc::ScratchFolder scratch("safetensors_fuzz");
  std::vector<std::string> parts = mlc::SplitParts(data, size, kParts);
  const std::filesystem::path path = scratch.path() / "model";
  std::filesystem::remove_all(path);
  scratch.Write("model/config.json", parts[0]);
  if (!parts[1].empty()) scratch.Write("model/model.safetensors.index.json", parts[1]);
  scratch.Write(parts[1].empty() ? "model/model.safetensors" : "model/a.safetensors", parts[2]);
  try {
    mlc::safetensors::Folder folder = mlc::safetensors::Folder::Open(path);
    folder.architecture();
    for (const std::string& name : folder.names()) {
      const bool good = folder.item(name).problem.empty();
      try {
        mlc::Tensor tensor = folder.tensor(name);
        MLC_CHECK(good && tensor.dims() == folder.item(name).dims, "another tensor than was said");
        mlc::Tensor values = tensor.Cast(mlc::DType::kFp64);
        const int64_t block = values.BlockElements(1 << 16);
        for (int64_t first = 0; first < values.size(); first += block) {
          int64_t count = std::min(block, values.size() - first);
          std::vector<std::byte> out(mlc::ByteCount(mlc::DType::kFp64, count));
          values.Read(first, count, out.data());
        }
      } catch (const mlc::Error&) {
        MLC_CHECK(!good, "a problem that was not told");
      }
    }
  } catch (const mlc::Error&) {
  }
  return 0;
}

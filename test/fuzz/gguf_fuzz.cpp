// GGUF files: any bytes give metadata and tensors that can be read completely, or an Error.
#include "frontends/gguf/file.h"
#include "lib/support/error.h"
#include "test/fuzz/file_parts.h"

namespace mlc {
namespace {

void ReadValue(const gguf::GgufFile& file, const gguf::GgufValue& value) {
  constexpr uint64_t kMost = 1 << 16;
  if (value.type == gguf::GgufType::kString) {
    MLC_CHECK(file.Text(value).size() == value.bytes, "a text of another length");
  } else if (value.type == gguf::GgufType::kArray) {
    for (const gguf::GgufValue& element : file.Elements(value, kMost)) ReadValue(file, element);
  } else {
    file.Number(value);
  }
}

template <class Get>
void Try(Get&& get) {
  try {
    get();
  } catch (const Error& error) {
    MLC_CHECK(error.id() == "bad-file", "{}", error.what());
  }
}

// Reads all elements block by block, and the integers of an encoding.
void ReadTensor(const Tensor& tensor) {
  const int64_t block = tensor.BlockElements(1 << 12);
  for (int64_t first = 0; first < tensor.size(); first += block) {
    const int64_t count = std::min(block, tensor.size() - first);
    std::vector<std::byte> out(ByteCount(tensor.dtype(), count));
    tensor.Read(first, count, out.data());
    tensor.Release(first, count);
  }
}

void ReadAll(const gguf::GgufFile& file) {
  for (const auto& [key, value] : file.metadata()) {
    MLC_CHECK(file.Has(key), "a key that is not found");
    ReadValue(file, value);
    Try([&] { file.Int(key); });
    Try([&] { file.Float(key); });
    Try([&] { file.Bool(key); });
    Try([&] { file.String(key); });
    Try([&] { file.Ints(key); });
    Try([&] { file.Floats(key); });
    Try([&] { file.Bools(key); });
    Try([&] { file.Strings(key); });
  }
  for (const gguf::GgufTensor& tensor : file.tensors()) {
    MLC_CHECK(file.FindTensor(tensor.name), "a tensor that is not found");
    ReadTensor(file.Constant(tensor));
  }
}

}  // namespace
}  // namespace mlc

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const mlc::ScratchFolder scratch("gguf_fuzz");
  scratch.Write("m.gguf", {reinterpret_cast<const char*>(data), size});
  try {
    mlc::ReadAll(mlc::gguf::GgufFile::Open(scratch.path() / "m.gguf"));
  } catch (const mlc::Error&) {
  }
  return 0;
}

// Weight files: any record that a program may refer to gives a tensor whose elements can all be
// read, or an Error. Parts: the reference in the program (offset, element type, dimensions); the
// file.
#include "lib/coreml/weight_blob.h"
#include "lib/support/error.h"
#include "lib/support/mapped_file.h"
#include "test/fuzz/file_parts.h"

namespace {
constexpr size_t kParts = 2;
}  // namespace

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t max_size,
                                          unsigned seed) {
  return mlc::MutateParts(data, size, max_size, seed, kParts);
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const mlc::ScratchFolder folder("weight_blob_fuzz");
  std::vector<std::string> parts = mlc::SplitParts(data, size, kParts);
  std::string_view said = parts[0];
  auto number = [&](auto value) {
    size_t count = std::min(sizeof value, said.size());
    if (count) std::memcpy(&value, said.data(), count);
    said.remove_prefix(count);
    return value;
  };
  auto offset = number(uint64_t{0});
  auto dtype = static_cast<mlc::DType>(number(uint8_t{0}) % mlc::kDTypeCount);
  mlc::Dims dims;
  while (!said.empty() && dims.size() < 8) dims.push_back(number(int64_t{0}));
  folder.Write("weight.bin", parts[1]);
  try {
    std::shared_ptr<const mlc::MappedFile> file =
        mlc::MappedFile::Open(folder.path() / "weight.bin");
    mlc::Tensor tensor = mlc::coreml::ReadBlob(file, offset, dtype, dims);
    MLC_CHECK(tensor.dims() == dims && tensor.dtype() == dtype, "another tensor than asked for");
    for (int64_t i = 0; i < tensor.size(); ++i) tensor.Double(i);
    mlc::coreml::BlobBlock block = mlc::coreml::BlobMetadata(dtype, tensor.size(), offset);
    if (tensor.size() && tensor.file_view().offset == offset + mlc::coreml::kBlobMetadataBytes)
      MLC_CHECK(std::memcmp(file->bytes().data() + offset, block.data(), 32) == 0,
                "the record is not written as it was read");
  } catch (const mlc::Error&) {
  }
  return 0;
}

#include "lib/coreml/weight_blob.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "lib/coreml/dtypes.h"
#include "lib/support/error.h"
#include "lib/support/mapped_file.h"

namespace mlc::coreml {

static_assert(std::endian::native == std::endian::little, "files have the byte order of memory");

namespace {
constexpr uint32_t kVersion = 2;
constexpr uint32_t kSentinel = 0xDEADBEEF;

struct Metadata {
  uint32_t sentinel, dtype;
  uint64_t bytes, data_offset, padding_bits;
};

uint64_t PaddingBits(DType dtype, int64_t elements) {
  return ByteCount(dtype, elements) * 8 - static_cast<uint64_t>(elements) * Bits(dtype);
}

[[noreturn]] void Fail(const MappedFile& file, uint64_t offset, std::string text) {
  throw Error("bad-file", std::move(text))
      .At({file.path().string(), fmt::format("offset {}", offset)});
}
}  // namespace

BlobBlock BlobHeader(uint32_t records) {
  BlobBlock block{};
  std::memcpy(block.data(), &records, 4);
  std::memcpy(block.data() + 4, &kVersion, 4);
  return block;
}

BlobBlock BlobMetadata(DType dtype, int64_t elements, uint64_t offset) {
  Metadata metadata{kSentinel, BlobDataType(dtype), ByteCount(dtype, elements),
                    offset + kBlobMetadataBytes, PaddingBits(dtype, elements)};
  BlobBlock block{};
  std::memcpy(block.data(), &metadata, sizeof metadata);
  return block;
}

Tensor ReadBlob(const std::shared_ptr<const MappedFile>& file, uint64_t offset, DType dtype,
                const Dims& dims) {
  uint32_t version = 0;
  if (file->size() >= kBlobMetadataBytes)
    file->Read(4, std::as_writable_bytes(std::span(&version, 1)));
  if (version != kVersion)
    Fail(*file, 0, "not a weight file of version 2: its 64-byte header is missing or different");
  if (offset < kBlobMetadataBytes || offset % kBlobAlignment || offset > file->size() ||
      file->size() - offset < kBlobMetadataBytes)
    Fail(*file, offset, "a constant refers to an invalid offset of the weight file");
  Metadata metadata;
  file->Read(offset, std::as_writable_bytes(std::span(&metadata, 1)));
  // Linux maps up to 2 MiB for the record if that much of the file is cached in one piece, which
  // would add up to the size of the file. No page is larger than this.
  constexpr uint64_t kLargestPage = 64 << 10;
  const uint64_t page = offset / kLargestPage * kLargestPage;
  file->Release(page, std::min(kLargestPage, file->size() - page));
  if (metadata.sentinel != kSentinel) Fail(*file, offset, "a weight record lacks its sentinel");
  std::optional<DType> stored = FromBlobDataType(metadata.dtype);
  if (!stored || *stored != dtype)
    Fail(*file, offset,
         fmt::format("a weight record has {}, but the program declares {}",
                     stored ? std::string(Name(*stored)) : fmt::format("type {}", metadata.dtype),
                     Name(dtype)));
  int64_t elements = ElementCount(dims);
  if (metadata.bytes != ByteCount(dtype, elements) ||
      metadata.padding_bits != PaddingBits(dtype, elements))
    Fail(*file, offset,
         fmt::format("a weight record has {} bytes, but the program declares {}", metadata.bytes,
                     ByteCount(dtype, elements)));
  return Tensor::FileSlice(file, metadata.data_offset, dtype, dims);
}

}  // namespace mlc::coreml

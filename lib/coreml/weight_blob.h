// lib/coreml/weight_blob.h - the layout of weights/weight.bin, shared by writer and reader.
//
// A header of 64 bytes (u32 count, u32 version 2, zeros), then records at offsets that are
// multiples of 64: 64 bytes of metadata (u32 0xDEADBEEF, u32 type, u64 bytes, u64 data offset, u64
// padding bits of a sub-byte type, zeros) and the data. A constant names its record by the offset
// of the metadata. Little endian. From coremltools, mlmodel/src/MILBlob/Blob.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "lib/ir/tensor.h"

namespace mlc {

inline constexpr uint64_t kBlobAlignment = 64;
inline constexpr uint64_t kBlobMetadataBytes = 64;
inline constexpr uint64_t AlignBlob(uint64_t offset) {
  return (offset + kBlobAlignment - 1) / kBlobAlignment * kBlobAlignment;
}

using BlobBlock = std::array<std::byte, kBlobMetadataBytes>;
BlobBlock BlobHeader(uint32_t records);
// Metadata of a record at `offset` that holds `elements` of dtype.
BlobBlock BlobMetadata(DType dtype, int64_t elements, uint64_t offset);

// The tensor whose metadata stands at `offset`, as a slice of the file. Error "bad-file" when the
// header, the metadata or the data is not whole, or when the record is not of this type and size.
Tensor ReadBlob(const std::shared_ptr<const MappedFile>& file, uint64_t offset, DType dtype,
                const Dims& dims);

}  // namespace mlc

// lib/coreml/weight_blob.h - the layout of weights/weight.bin, shared by writer and reader.
//
// A 64-byte header (u32 count, u32 version 2, zeros) is followed by records at multiples of 64: 64
// bytes of metadata (u32 0xDEADBEEF, u32 type, u64 bytes, u64 data offset, u64 padding bits of a
// sub-byte type, zeros), then the data. A constant refers to its record by the offset of the
// metadata. Little-endian. Source: coremltools, mlmodel/src/MILBlob/Blob.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "lib/ir/tensor.h"
#include "lib/support/mapped_file.h"

namespace mlc::coreml {

inline constexpr uint64_t kBlobAlignment = 64;
inline constexpr uint64_t kBlobMetadataBytes = 64;
inline constexpr uint64_t AlignBlob(uint64_t offset) {
  return (offset + kBlobAlignment - 1) / kBlobAlignment * kBlobAlignment;
}

using BlobBlock = std::array<std::byte, kBlobMetadataBytes>;
BlobBlock BlobHeader(uint32_t records);
// The metadata of a record at `offset` with `elements` elements of dtype.
BlobBlock BlobMetadata(DType dtype, int64_t elements, uint64_t offset);

// The tensor whose metadata is at `offset`, as a slice of the file. Error "bad-file" if the header,
// the metadata or the data is truncated, or the record has another type or size.
Tensor ReadBlob(const std::shared_ptr<const MappedFile>& file, uint64_t offset, DType dtype,
                const Dims& dims);

}  // namespace mlc::coreml

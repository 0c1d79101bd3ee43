// lib/support/byte_window.h - random access to bytes in memory or in a file: directly if they are
// in memory, otherwise by parts.
#pragma once

#include <algorithm>
#include <vector>

#include "lib/support/mapped_file.h"

namespace mlc {

class ByteWindow {
 public:
  ByteWindow(std::span<const std::byte> bytes) : part_(bytes), size_(bytes.size()) {}
  // Does not keep the file alive.
  explicit ByteWindow(const MappedFile& file)
      : file_(&file), part_(file.mapped()), size_(file.size()) {}
  ByteWindow(ByteWindow&&) = default;

  uint64_t size() const { return size_; }
  // Bytes [offset, offset + size), which must exist; valid until the next call. Throws the errors
  // of MappedFile::Read.
  std::span<const std::byte> At(uint64_t offset, size_t size) {
    if (offset < begin_ || offset + size > begin_ + part_.size()) Move(offset, size);
    return part_.subspan(offset - begin_, size);
  }
  std::byte operator[](uint64_t offset) { return At(offset, 1)[0]; }
  // At most `most` bytes from the beginning.
  std::span<const std::byte> Head(size_t most) {
    return At(0, static_cast<size_t>(std::min<uint64_t>(size_, most)));
  }

 private:
  void Move(uint64_t offset, size_t size) {
    constexpr size_t kLeast = 1 << 16;
    part_ = {};
    buffer_.resize(std::min<uint64_t>(std::max(size, kLeast), size_ - offset));
    file_->Read(offset, buffer_);
    begin_ = offset, part_ = buffer_;
  }

  const MappedFile* file_ = nullptr;
  std::vector<std::byte> buffer_;
  std::span<const std::byte> part_;  // bytes from begin_ on
  uint64_t begin_ = 0, size_;
};

}  // namespace mlc

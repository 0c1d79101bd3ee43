// lib/support/mapped_file.h - a read-only file mapped into memory, shared by everything that refers
// into it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>

namespace mlc {

// Immutable; unmapped when the last owner lets go. What was read stays resident until Release. The
// limit: reading what another process has cut off raises SIGBUS (lib/support/regular_file.h).
class MappedFile {
 public:
  // Throws Error "file-io" when the file cannot be opened or mapped. An empty file maps to an empty
  // span.
  static std::shared_ptr<const MappedFile> Open(const std::filesystem::path& path);
  ~MappedFile();
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  std::span<const std::byte> bytes() const { return {data_, size_}; }
  const std::filesystem::path& path() const { return path_; }
  // Gives the pages that lie wholly inside [offset, offset + size) back to the system; later reads
  // bring them in again.
  void Release(size_t offset, size_t size) const;

 private:
  MappedFile(std::filesystem::path path, const std::byte* data, size_t size)
      : path_(std::move(path)), data_(data), size_(size) {}
  std::filesystem::path path_;
  const std::byte* data_;
  size_t size_;
};

}  // namespace mlc

// lib/support/mapped_file.h - a read-only file mapped into memory, with shared ownership.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>

namespace mlc {

// Immutable; unmapped when the last owner releases it. Pages stay resident until Release. Reading
// bytes that another process has truncated raises SIGBUS (lib/support/regular_file.h).
//
// If the address space is limited (ulimit -v) and the file would take a large part of it, the file
// stays open instead and is read in parts, by Read or through a ByteWindow; both work for either
// kind. The same applies in a WorkScope without mapped files, where bytes() reads the whole file.
class MappedFile {
 public:
  // Error "file-io" if the file cannot be opened or mapped.
  static std::shared_ptr<const MappedFile> Open(const std::filesystem::path& path);
  ~MappedFile();
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  size_t size() const { return size_; }
  const std::filesystem::path& path() const { return path_; }
  // The whole file if it is mapped, else empty.
  std::span<const std::byte> mapped() const {
    const std::byte* data = data_;
    return {data, data ? size_ : 0};
  }
  // The whole file, mapped on demand. Error "resource-limit" if the address space is too small.
  std::span<const std::byte> bytes() const;
  // Reads bytes [offset, offset + out.size()), which must lie within the file. Error "file-io" if
  // the file has been truncated.
  void Read(uint64_t offset, std::span<std::byte> out) const;
  // Maps the pages of [offset, offset + size) with one system call rather than by page faults,
  // ahead of reading them.
  void MapIn(size_t offset, size_t size) const;
  // Releases the pages entirely inside [offset, offset + size) to the system; later reads load them
  // again.
  void Release(size_t offset, size_t size) const;

 private:
  MappedFile(std::filesystem::path path, int descriptor, size_t size)
      : path_(std::move(path)), descriptor_(descriptor), size_(size) {}
  bool Map() const;  // false: not enough address space
  void ReadParts(uint64_t offset, std::span<std::byte> out) const;

  std::filesystem::path path_;
  int descriptor_;  // -1 once the whole file is mapped
  size_t size_;
  bool reads_ = false;  // memory holds a copy of the file instead of mapping it
  mutable std::atomic<const std::byte*> data_ = nullptr;
};

}  // namespace mlc

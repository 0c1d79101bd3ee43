// lib/support/mapped_file.h - a read-only file mapped into memory, shared by everything that refers
// into it.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>

namespace mlc {

// Immutable; unmapped when the last owner lets go. What was read stays resident until Release. The
// limit: reading what another process has cut off raises SIGBUS (lib/support/regular_file.h).
//
// Where addresses are limited (ulimit -v) and the file would take many of those, it stays open
// instead and is read in parts: by Read, or through a ByteWindow, which both serve either kind.
class MappedFile {
 public:
  // Throws Error "file-io" when the file cannot be opened or mapped.
  static std::shared_ptr<const MappedFile> Open(const std::filesystem::path& path);
  ~MappedFile();
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  size_t size() const { return size_; }
  const std::filesystem::path& path() const { return path_; }
  // The whole file where it is mapped, else nothing.
  std::span<const std::byte> mapped() const {
    const std::byte* data = data_;
    return {data, data ? size_ : 0};
  }
  // The whole file, mapped now if it is not yet. Error "resource-limit" without addresses for it.
  std::span<const std::byte> bytes() const;
  // Bytes [offset, offset + out.size()), which lie in the file. Error "file-io" when somebody has
  // cut them off.
  void Read(uint64_t offset, std::span<std::byte> out) const;
  // Brings pages in by one call rather than by faults, for who reads [offset, offset + size) next.
  void MapIn(size_t offset, size_t size) const;
  // Gives the pages that lie wholly inside [offset, offset + size) back to the system; later reads
  // bring them in again.
  void Release(size_t offset, size_t size) const;

 private:
  MappedFile(std::filesystem::path path, int descriptor, size_t size)
      : path_(std::move(path)), descriptor_(descriptor), size_(size) {}
  bool Map() const;  // false: no addresses

  std::filesystem::path path_;
  int descriptor_;  // -1 once all is mapped
  size_t size_;
  mutable std::atomic<const std::byte*> data_ = nullptr;
};

}  // namespace mlc

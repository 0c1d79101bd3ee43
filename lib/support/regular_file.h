// lib/support/regular_file.h - opens files for reading, and handles faults of mapped files.
#pragma once

#include <cstddef>
#include <filesystem>
#include <span>
#include <string_view>

namespace mlc {

class Error;

// Opens a regular file and records it in the InputRegistry; the caller closes the descriptor. Error
// "file-io" if it cannot be opened and, without blocking, for folders, pipes, devices and sockets.
int OpenRegular(const std::filesystem::path& path);

// Reading a MappedFile raises SIGBUS if another process has truncated the file. The tools turn the
// signal into an error (lib/support/interrupt.h). Programs that link the library must handle the
// signal or make sure that files do not change.
//
// The file mapped at an address; empty if there is none.
std::filesystem::path MappedAt(const void* address);
// Error "file-io" for a file that was truncated while mapped.
Error CutShort(const std::filesystem::path& path);
// Reads a byte of every page. A system call on truncated mapped memory only reports EFAULT, while a
// direct read raises SIGBUS at an address that identifies the file.
void Touch(std::span<const std::byte> bytes);

inline std::string_view AsText(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

}  // namespace mlc

// lib/support/regular_file.h - opening files for reading, and the faults of mapped ones.
#pragma once

#include <cstddef>
#include <filesystem>
#include <span>
#include <string_view>

namespace mlc {

class Error;

// Opens a regular file; the caller closes the descriptor. Noted in Sources. Error "file-io" for what
// cannot be opened and, at once, for folders, pipes, devices and sockets.
int OpenRegular(const std::filesystem::path& path);

// MappedFile has a limit: where another process cuts a file short, reading what is gone raises
// SIGBUS. The tools make an error of that (lib/support/interrupt.h); whoever links the library
// handles the signal, or sees to it that files stay as they are.
//
// The file that is mapped at an address; empty when none is.
std::filesystem::path MappedAt(const void* address);
// Error "file-io": what that is.
Error CutShort(const std::filesystem::path& path);
// Reads a byte of every page: system calls that are given mapped bytes which are gone say EFAULT,
// reading them says which file it is.
void Touch(std::span<const std::byte> bytes);

inline std::string_view AsText(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

}  // namespace mlc

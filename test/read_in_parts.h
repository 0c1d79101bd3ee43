// test/read_in_parts.h - files as they are read where addresses are limited.
#pragma once

#include <sys/resource.h>

#include <vector>

#include "lib/support/mapped_file.h"
#include "test/catch.h"

namespace mlc {

// Opened under a limit of addresses that leaves none for it. What comes before is for what the
// allocator keeps, because it gets nothing either: blocks of each size that opening may ask for.
inline std::shared_ptr<const MappedFile> OpenInParts(const std::filesystem::path& path) {
  constexpr size_t kMost = 4096, kStep = 16;
  std::vector<std::vector<char>> kept;
  for (size_t size = kStep; size <= kMost; size += kStep) kept.emplace_back(size);
  kept.clear();
  MappedFile::Open(path);
  struct rlimit before, low;
  getrlimit(RLIMIT_AS, &before);
  low = before;
  low.rlim_cur = 1;
  setrlimit(RLIMIT_AS, &low);
  std::shared_ptr<const MappedFile> file = MappedFile::Open(path);
  setrlimit(RLIMIT_AS, &before);
  if (file->mapped().data()) WARN("addresses cannot be limited here: read as without a limit");
  return file;
}

}  // namespace mlc

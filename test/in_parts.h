// test/in_parts.h - files as they are read where addresses are limited.
#pragma once

#include <sys/resource.h>

#include "lib/support/mapped_file.h"
#include "test/catch.h"

namespace mlc {

// Opened under a limit of addresses that leaves none for it. The first time is for what the allocator
// keeps, because it gets nothing either.
inline std::shared_ptr<const MappedFile> OpenInParts(const std::filesystem::path& path) {
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

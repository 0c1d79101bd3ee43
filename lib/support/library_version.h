// lib/support/library_version.h - the version of a library that mlc is linked with.
#pragma once

#include <string>

namespace mlc {

struct LibraryVersion {
  std::string name;
  std::string built;    // according to the headers
  std::string running;  // according to the loaded library; empty: unknown or header-only
};

}  // namespace mlc

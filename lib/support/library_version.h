// lib/support/library_version.h - the version of something that mlc is linked with, as who includes it knows it.
#pragma once

#include <string>

namespace mlc {

struct LibraryVersion {
  std::string name;
  std::string built;  // of the headers
  std::string
      running;  // of what is loaded; empty: it has no way of saying, or is in its headers alone
};

}  // namespace mlc

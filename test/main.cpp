// test/main.cpp - main() of unit_tests, and the paths that only the build knows.
#if __has_include(<catch2/catch_session.hpp>)
#include <catch2/catch_session.hpp>
#else
#define CATCH_CONFIG_RUNNER
#include <catch2/catch.hpp>
#endif

#include <cstdlib>
#include <iostream>

#include "test/paths.h"

namespace mlc::test {

std::filesystem::path SourcePath(const std::string& relative) {
  return std::filesystem::path(MLC_SOURCE_DIR) / relative;
}

std::optional<std::filesystem::path> Corpus(const std::string& relative, const std::string& title) {
  const char* folder = std::getenv("MLC_CORPUS");
  std::filesystem::path path =
      (folder ? std::filesystem::path(folder) : SourcePath("../shared/corpus")) / relative;
  if (std::filesystem::exists(path)) return path;
  std::cout << "# " << title << ": skipped, no " << relative << " in the corpus\n";
  return std::nullopt;
}

std::filesystem::path ToolPath(const std::string& name) {
  return std::filesystem::path(MLC_BINARY_DIR) / "bin" / name;
}

}  // namespace mlc::test

int main(int argc, char** argv) { return Catch::Session().run(argc, argv); }

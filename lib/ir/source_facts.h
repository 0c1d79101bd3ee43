// lib/ir/source_facts.h - what importing learns of a source model's files, whatever its format, for manifests and reports.
#pragma once

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

namespace mlc {

struct SourceFacts {
  std::vector<std::pair<std::string, std::string>> metadata;  // {"producer", "pytorch 2.1"}
  struct File {
    std::string name;  // in the folder of the model, or as the model names it
    std::filesystem::path path;
  };
  std::vector<File> files;  // that are read, except for the one that the user named

  // Adds a file of `model`, unless it is the model itself or is there already.
  void Add(const std::filesystem::path& model, const std::filesystem::path& file);
};

}  // namespace mlc

// lib/ir/source_facts.h - facts about the files of a source model, in any format, for manifests and
// reports.
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
  // The names of the classes whose scores the only output holds, in order; empty: not given.
  std::vector<std::string> class_labels;
  std::vector<File> files;  // all files that were read, except the one that the user named

  // Adds a file of `model`, unless it is the model itself or was added already.
  void Add(const std::filesystem::path& model, const std::filesystem::path& file);
};

}  // namespace mlc

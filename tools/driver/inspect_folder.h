// tools/driver/inspect_folder.h - describes a Hugging Face folder or a safetensors file, even if
// mlc cannot build its network.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "lib/ir/program.h"
#include "lib/support/error.h"

namespace mlc::driver {

struct FolderFacts {
  std::string architecture, model_type;  // empty: not in config.json, or no config.json
  // The members of config.json that are not null, sorted by name; values are JSON on one line.
  std::vector<std::pair<std::string, std::string>> config;
  struct File {
    std::string name;
    uint64_t bytes;
  };
  std::vector<File> files;  // all files read

  struct Weight {
    std::string name;
    std::string type;  // storage type: "BF16", "4 bits in groups of 64"
    std::vector<int64_t> dims;
    uint64_t bytes;       // including scales
    std::string problem;  // why mlc cannot read it; empty: it can
  };
  std::vector<Weight> weights;  // sorted by name
  struct Total {
    size_t tensors = 0;
    double elements = 0;
    uint64_t bytes = 0;
    double bits() const { return elements == 0 ? 0 : 8 * static_cast<double>(bytes) / elements; }
  };
  Total total;
  std::map<std::string, Total> by_type;
  std::shared_ptr<const Program> program;  // null: no network was built
  std::vector<Error> problems;  // why no network was built; empty if config.json names no network
};
// Reads the file headers, and little more if a network is built. Errors as in Folder::Open.
FolderFacts InspectFolder(const std::filesystem::path& path, Diagnostics& diagnostics);

}  // namespace mlc::driver

// tools/driver/inspect_folder.h - what is in a Hugging Face folder or a safetensors file, whether or not
// mlc can build its network.
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

namespace mlc {

struct FolderFacts {
  std::string architecture, model_type;  // empty: config.json does not say, or there is none
  // The members of config.json that are not null, sorted; each as JSON on one line.
  std::vector<std::pair<std::string, std::string>> config;
  struct File {
    std::string name;
    uint64_t bytes;
  };
  std::vector<File> files;  // all that were read

  struct Weight {
    std::string name;
    std::string type;  // as it is held: "BF16", "4 bits in groups of 64"
    std::vector<int64_t> dims;
    uint64_t bytes;       // with its scales
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
  std::vector<Error> problems;             // why not; empty where config.json names no network
};
// Reads headers, and little else where a network is built. Error as Folder::Open.
FolderFacts InspectFolder(const std::filesystem::path& path, Diagnostics& diagnostics);

}  // namespace mlc

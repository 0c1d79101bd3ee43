// tools/driver/inspect_files.h - describes the files of a language model, even if mlc cannot build
// its network: GGUF files, Hugging Face folders and safetensors files.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "lib/ir/program.h"
#include "lib/support/error.h"

namespace mlc::driver {

struct FileFacts {
  std::string architecture;  // empty: not in the files
  struct File {
    std::string name;
    uint64_t bytes;
  };
  std::vector<File> files;  // all parts of a GGUF file; of a folder all files read

  struct Weight {
    std::string name;
    std::string type;  // storage type: "BF16", "4 bits in groups of 64", ggml's "Q4_K"
    std::vector<int64_t> dims;
    uint64_t bytes;            // including scales
    std::string problem = {};  // why mlc cannot read it; empty: it can
  };
  std::vector<Weight> weights;  // of GGUF in file order, of safetensors sorted by name
  struct Total {
    size_t tensors = 0;
    double elements = 0;
    uint64_t bytes = 0;
    double bits() const { return elements == 0 ? 0 : 8 * static_cast<double>(bytes) / elements; }
  };
  Total total;
  std::map<std::string, Total> by_type;

  std::shared_ptr<const Program> program;  // the imported program; null: no network was built
  // Why no network was built; empty if config.json of a folder names no network.
  std::vector<Error> problems;
};

struct GgufFacts : FileFacts {
  uint32_t version = 0;
  using Value = std::variant<int64_t, double, bool, std::string>;
  struct Entry {
    std::string key;
    std::string type;  // "uint32", "string"; for arrays the element type
    bool array = false;
    uint64_t count = 1;  // array length
    // The value, or the first elements of an array; long strings are truncated.
    std::vector<Value> values;
  };
  std::vector<Entry> metadata;  // in file order
};
// Errors as in GgufFile::Open.
GgufFacts InspectGguf(const std::filesystem::path& path, Diagnostics& diagnostics);

struct FolderFacts : FileFacts {
  std::string model_type;  // empty: not in config.json, or no config.json
  // The members of config.json that are not null, sorted by name; values are JSON on one line.
  std::vector<std::pair<std::string, std::string>> config;
};
// Reads the file headers, and little more if a network is built. Errors as in Folder::Open.
FolderFacts InspectFolder(const std::filesystem::path& path, Diagnostics& diagnostics);

}  // namespace mlc::driver

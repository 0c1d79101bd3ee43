// tools/driver/inspect_gguf.h - what is in a GGUF file, whether or not mlc can build its network.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "lib/ir/program.h"
#include "lib/support/error.h"

namespace mlc {

struct GgufFacts {
  uint32_t version = 0;
  std::string architecture;  // empty: the file does not say
  struct File {
    std::string name;
    uint64_t bytes;
  };
  std::vector<File> files;  // all parts

  using Value = std::variant<int64_t, double, bool, std::string>;
  struct Entry {
    std::string key;
    std::string type;  // "uint32", "string"; of an array that of its elements
    bool array = false;
    uint64_t count = 1;         // elements of the array
    std::vector<Value> values;  // the value, or the first few elements; texts are cut, too
  };
  std::vector<Entry> metadata;  // in the file's order

  struct Weight {
    std::string name;
    std::string type;  // as ggml calls it: "Q4_K"
    std::vector<int64_t> dims;
    uint64_t bytes;
  };
  std::vector<Weight> weights;  // in the file's order
  struct Total {
    size_t tensors = 0;
    double elements = 0;
    uint64_t bytes = 0;
    double bits() const { return elements == 0 ? 0 : 8 * static_cast<double>(bytes) / elements; }
  };
  Total total;
  std::map<std::string, Total> by_type;

  std::shared_ptr<const Program> program;  // that is made of it; null: see `problems`
  std::vector<Error> problems;             // why mlc cannot compile it
};
// Error as GgufFile::Open.
GgufFacts InspectGguf(const std::filesystem::path& path, Diagnostics& diagnostics);

}  // namespace mlc

// tools/driver/inspect_gguf.h - describes a GGUF file, even if mlc cannot build its network.
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

namespace mlc::driver {

struct GgufFacts {
  uint32_t version = 0;
  std::string architecture;  // empty: not in the file
  struct File {
    std::string name;
    uint64_t bytes;
  };
  std::vector<File> files;  // all parts

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

  struct Weight {
    std::string name;
    std::string type;  // ggml's name: "Q4_K"
    std::vector<int64_t> dims;
    uint64_t bytes;
  };
  std::vector<Weight> weights;  // in file order
  struct Total {
    size_t tensors = 0;
    double elements = 0;
    uint64_t bytes = 0;
    double bits() const { return elements == 0 ? 0 : 8 * static_cast<double>(bytes) / elements; }
  };
  Total total;
  std::map<std::string, Total> by_type;

  std::shared_ptr<const Program> program;  // the imported program; null: see `problems`
  std::vector<Error> problems;             // why mlc cannot compile it
};
// Errors as in GgufFile::Open.
GgufFacts InspectGguf(const std::filesystem::path& path, Diagnostics& diagnostics);

}  // namespace mlc::driver

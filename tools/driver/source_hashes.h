// tools/driver/source_hashes.h - the files of a source model, and their hashes.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "lib/ir/source_facts.h"
#include "lib/support/hash.h"
#include "lib/support/mapped_file.h"

namespace mlc {

// One file; what is not known is empty.
struct SourceFile {
  std::string name;            // in the folder of the model
  std::filesystem::path path;  // where it is
  uint64_t bytes = 0;
  std::string xxh3_128, sha256;  // hex
};

// Every file that is read of a model: the model first and then, sorted by name, those of `facts`; all files of a
// folder without such.
std::vector<SourceFile> SourceFiles(const std::filesystem::path& model, const SourceFacts& facts);

// The hash of a model: that of its file; where there are several, the hash of the lines
// "HASH  NAME\n" of all of them in the order of SourceFiles, which is what sha256sum and xxhsum print:
//   sha256sum model.onnx model.data | sha256sum
std::string CombinedSha256(const std::vector<SourceFile>& files);
std::string CombinedXxh3(const std::vector<SourceFile>& files);

// Takes the hashes of files, of each the bytes from its begin on as they come by and the rest at the
// end, so that a weight that is read for its conversion is hashed while it is in the cache.
class SourceHashes {
 public:
  SourceHashes(std::vector<SourceFile> files, bool sha256);
  // The file has been read up to `end`. Files that are none of the source's do not matter.
  void Pass(const MappedFile& file, uint64_t end);
  // Reads what did not pass. Error "file-io".
  std::vector<SourceFile> Finish();

 private:
  struct State {
    SourceFile file;
    Xxh3 xxh3;
    Sha256 sha256;
    uint64_t at = 0;
  };
  void Update(State& state, std::span<const std::byte> bytes);
  void Read(State& state, const MappedFile& file, uint64_t end);
  std::vector<State> states_;
  bool sha256_;
};

}  // namespace mlc

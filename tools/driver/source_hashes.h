// tools/driver/source_hashes.h - the files of a source model, and their hashes.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "lib/ir/source_facts.h"
#include "lib/support/hash.h"
#include "lib/support/mapped_file.h"

namespace mlc::driver {

// One file; unknown fields are empty.
struct SourceFile {
  std::string name;            // relative to the model's folder
  std::filesystem::path path;  // location on disk
  uint64_t bytes = 0;
  std::string xxh3_128, sha256;  // hex
};

// Returns every file that the import of a model reads: the model, then those of `facts` sorted by
// name. If `facts` has none, all files of a folder.
std::vector<SourceFile> SourceFiles(const std::filesystem::path& model, const SourceFacts& facts);

// The hash of a model: the file's hash for a single file; for several files the hash of the lines
// "HASH  NAME\n" in the order of SourceFiles, which is the output format of sha256sum and xxhsum:
//   sha256sum model.onnx model.data | sha256sum
std::string CombinedSha256(const std::vector<SourceFile>& files);
std::string CombinedXxh3(const std::vector<SourceFile>& files);

// Hashes files as they are read: each file from its start to the position read so far, while the
// data is still in the processor's cache. Finish() hashes the rest.
class SourceHashes {
 public:
  SourceHashes(std::vector<SourceFile> files, bool sha256);
  // Notifies that the file has been read up to `end`. Ignores files that are not part of the
  // source.
  void Pass(const MappedFile& file, uint64_t end);
  // Hashes the remaining bytes and returns the files. Error "file-io".
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

}  // namespace mlc::driver

// frontends/safetensors/file.h - one .safetensors file: which tensors it has, and their elements where
// they lie.
//
// The format (github.com/huggingface/safetensors, README.md, "Format"): u64 little-endian N, N bytes of
// JSON {"NAME": {"dtype", "shape", "data_offsets": [begin, end]}, ..., "__metadata__": {texts}}, then
// the data, from which offsets count. Tensors are row-major, little-endian, aligned to nothing, and
// cover the data without holes.
#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "lib/ir/tensor.h"

namespace mlc {

// Immutable; copies share. All offsets lie in the file: what contradicts the format is refused when it
// is opened.
class SafetensorsFile {
 public:
  struct Entry {
    std::string name;
    std::string dtype;  // as the file writes it: "BF16"
    Dims dims;
    uint64_t offset, bytes;  // in the file
  };

  // Error "file-io"; "bad-file" with tensor or offset, also for a file that was cut short.
  static SafetensorsFile Open(const std::filesystem::path& path);

  const std::filesystem::path& path() const { return file_->path(); }
  uint64_t byte_size() const { return file_->size(); }
  const std::vector<Entry>& entries() const { return *entries_; }  // sorted by name
  const Entry* Find(const std::string& name) const;                // null: there is none
  // Slices of the mapped file. Error "unsupported-dtype" for what DType lacks (F4, F8_E8M0, C64 ...).
  Tensor Get(const Entry& entry) const;
  // The same bytes as elements of another type, as many as `dims` says.
  Tensor Get(const Entry& entry, DType dtype, Dims dims) const;
  const std::map<std::string, std::string>& metadata() const { return *metadata_; }

 private:
  std::shared_ptr<const MappedFile> file_;
  std::shared_ptr<const std::vector<Entry>> entries_;
  std::shared_ptr<const std::map<std::string, std::string>> metadata_;
};

// Whether bytes begin as such a file does.
bool LooksLikeSafetensors(std::span<const std::byte> head);
// DType::kNone for a type that DType lacks, or that nobody has heard of.
DType SafetensorsDType(const std::string& name);

}  // namespace mlc

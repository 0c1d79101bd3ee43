// frontends/safetensors/file.h - one .safetensors file: its tensors, which stay in the mapped file.
//
// The format (github.com/huggingface/safetensors, README.md, "Format"): u64 little-endian N, N
// bytes of JSON {"NAME": {"dtype", "shape", "data_offsets": [begin, end]}, ..., "__metadata__":
// {texts}}, then the data, from which offsets count. Tensors are row-major, little-endian, aligned
// to nothing, and cover the data without holes.
#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "lib/ir/tensor.h"

namespace mlc {

// Immutable; copies share. All offsets are in the file: violations of the format are refused when
// it is opened.
class SafetensorsFile {
 public:
  struct Entry {
    std::string name;
    std::string dtype;  // in the file: "BF16"
    Dims dims;
    uint64_t offset, bytes;  // in the file
  };

  // Error "file-io"; "bad-file" with tensor or offset, also for a file that was cut short.
  static SafetensorsFile Open(const std::filesystem::path& path);

  const std::filesystem::path& path() const { return file_->path(); }
  uint64_t byte_size() const { return file_->size(); }
  const std::vector<Entry>& entries() const { return *entries_; }  // sorted by name
  const Entry* Find(const std::string& name) const;                // null: no such tensor
  // Slices of the mapped file. Error "unsupported-dtype" for types without a DType (F4, F8_E8M0,
  // C64 ...).
  Tensor Get(const Entry& entry) const;
  // The same bytes as elements of another type, with these dims.
  Tensor Get(const Entry& entry, DType dtype, Dims dims) const;
  const std::map<std::string, std::string>& metadata() const { return *metadata_; }

 private:
  std::shared_ptr<const MappedFile> file_;
  std::shared_ptr<const std::vector<Entry>> entries_;
  std::shared_ptr<const std::map<std::string, std::string>> metadata_;
};

// Whether bytes look like the beginning of such a file.
bool LooksLikeSafetensors(std::span<const std::byte> head);
// DType::kNone for unknown types and those without a DType.
DType SafetensorsDType(const std::string& name);

}  // namespace mlc

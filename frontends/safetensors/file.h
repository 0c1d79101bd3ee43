// frontends/safetensors/file.h - reads one .safetensors file; tensors are slices of the mapped
// file.
//
// The format (github.com/huggingface/safetensors, README.md, "Format"): u64 little-endian N, N
// bytes of JSON {"NAME": {"dtype", "shape", "data_offsets": [begin, end]}, ..., "__metadata__":
// {texts}}, then the data, to which the offsets are relative. Tensors are row-major, little-endian,
// unaligned, and cover the data without holes.
#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "lib/ir/tensor.h"
#include "lib/support/mapped_file.h"

namespace mlc::safetensors {

// Immutable; copies share the data. Open rejects violations of the format, so all offsets lie
// within the file.
class SafetensorsFile {
 public:
  struct Entry {
    std::string name;
    std::string dtype;  // the name in the file: "BF16"
    Dims dims;
    uint64_t offset, bytes;  // relative to the file
  };

  // Opens a file. Error "file-io"; "bad-file" with tensor or offset, also for a truncated file.
  static SafetensorsFile Open(const std::filesystem::path& path);

  const std::filesystem::path& path() const { return file_->path(); }
  const std::vector<Entry>& entries() const { return *entries_; }  // sorted by name
  const Entry* Find(const std::string& name) const;  // null if there is no such tensor
  // Returns a slice of the mapped file. Error "unsupported-dtype" for types without a DType (F4,
  // F8_E8M0, C64 ...).
  Tensor Get(const Entry& entry) const;
  // Reinterprets the bytes as elements of another type with these dims.
  Tensor Get(const Entry& entry, DType dtype, Dims dims) const;
  const std::map<std::string, std::string>& metadata() const { return *metadata_; }

 private:
  std::shared_ptr<const MappedFile> file_;
  std::shared_ptr<const std::vector<Entry>> entries_;
  std::shared_ptr<const std::map<std::string, std::string>> metadata_;
};

// Returns whether bytes look like the beginning of a .safetensors file.
bool LooksLikeSafetensors(std::span<const std::byte> head);
// Returns DType::kNone for unknown types and types without a DType.
DType SafetensorsDType(const std::string& name);

}  // namespace mlc::safetensors

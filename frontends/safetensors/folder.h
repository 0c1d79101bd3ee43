// frontends/safetensors/folder.h - a Hugging Face folder: config.json, and its tensors by name.
//
// Weights are in model.safetensors, in the shards listed by model.safetensors.index.json, or in the
// only .safetensors file of the folder. A quantised weight consists of several parts, which are
// combined into one tensor under the name of the first part. Its elements are fp32, and it has an
// affine encoding of the data in the file (lib/ir/encoding.h):
//
//   MLX   P.weight U32 [..., columns * bits / 32], P.scales and P.biases [..., columns / group], and
//         group_size and bits in config.json ("quantization", which may have an entry for P):
//         scale * q + bias. Elements are packed LSB first, without gaps
//         (github.com/ml-explore/mlx, mlx/backend/cpu/quantized.cpp, extract_bits).
//   FP8   W F8_*, W_scale_inv or W_scale: one scale, one per row, or one per block of
//         quantization_config.weight_block_size (DeepSeek-V3's README: 128 x 128, cut at the edges):
//         scale * w. If there is a quantization_config, or another weight has scales, a weight without
//         scales is rejected unless modules_to_not_convert (transformers, quantizers_utils.py,
//         should_convert_module) or ignore (compressed-tensors) lists its module; otherwise it is a
//         plain cast, as in transformers.
#pragma once

#include <filesystem>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "frontends/safetensors/config.h"
#include "frontends/safetensors/file.h"
#include "lib/ir/tensor.h"
#include "lib/support/error.h"

namespace mlc::safetensors {

// Immutable; copies share the data. Open reads only the headers of files.
class Folder {
 public:
  // Opens a folder, or one .safetensors file (with the config.json next to it, if there is one).
  // Errors "file-io", "bad-file", "resource-limit" with file and tensor or key.
  static Folder Open(const std::filesystem::path& path);

  const std::filesystem::path& path() const { return path_; }
  const Config& config() const { return config_; }  // has no members if there is no file
  std::string model_type() const { return config_.Text("model_type", ""); }
  std::string architecture() const;  // first of `architectures`; empty if there is none

  // Returns the sorted names of all tensors except for parts of quantised weights.
  const std::vector<std::string>& names() const { return names_; }
  bool has(const std::string& name) const {  // includes parts
    return stored_.contains(name) || changed_.contains(name);
  }
  // Returns the name under which a file stores the tensor. safetensors.torch's save_model stores
  // only one of several shared tensors and maps the other names to it in __metadata__.
  const std::string& stored_name(const std::string& name) const {
    const auto changed = changed_.find(name);
    return changed != changed_.end() ? changed->first : Get(name).entry->name;
  }
  // Returns a copy without the tensors of these names.
  Folder Without(const std::vector<std::string>& names) const;
  // Returns a copy with these tensors, by name, in the place of stored ones or in addition to them.
  Folder With(const std::map<std::string, Tensor>& tensors) const;
  bool is_changed(const std::string& name) const { return adapted_.contains(name); }
  // Returns the folder of a part of the model: its config, and its tensors under their names there.
  Folder Part(const Config& config, const std::map<std::string, Tensor>& tensors) const;
  // Returns a slice of a mapped file, as it is stored, or encoded as described above; a part is
  // returned as it is stored. Errors: "bad-file" if there is no tensor of this name, "bad-constant"
  // if parts do not fit together, "unsupported-dtype".
  Tensor tensor(const std::string& name) const;

  // A description of a stored tensor for display.
  struct Item {
    std::string name;
    std::string type;     // "BF16", "4 bits in groups of 64", "F8_E4M3 in blocks of 128 x 128"
    Dims dims;            // dims of the values
    uint64_t bytes;       // size of all parts
    std::string problem;  // why tensor() rejects it; empty if it does not
  };
  Item item(const std::string& name) const;

  const std::vector<SafetensorsFile>& files() const { return files_; }  // sorted by path
  // Returns all files that were read: config.json and the index, if any, then files().
  std::vector<std::filesystem::path> paths() const;

 private:
  struct Stored {
    size_t file;
    const SafetensorsFile::Entry* entry;
  };
  // A tensor and its parts; missing parts are null.
  struct Weight {
    enum class Form { kPlain, kMlx, kFp8 };
    Form form = Form::kPlain;
    const Stored *data = nullptr, *scale = nullptr, *bias = nullptr;
    Dims dims;                   // dims of the values
    int64_t bits = 0;            // kMlx only
    std::vector<int64_t> block;  // kMlx, kFp8: number of elements per scale along each axis
  };

  void AddFile(const std::filesystem::path& file);
  void AddAliases(size_t file);
  void AddIndex(const std::filesystem::path& index);
  const Stored* Find(const std::string& name) const;
  const Stored& Get(const std::string& name) const;
  Error Refusal(const Stored& stored, std::string_view id, std::string text) const;
  Weight PartsOf(const std::string& name) const;  // only the form and the parts
  Weight Resolve(const std::string& name) const;
  // Returns whether quantization_config excludes the tensor.
  bool IsExcluded(const std::string& name) const;
  void ResolveMlx(Weight& weight) const;
  void ResolveFp8(Weight& weight) const;
  Tensor Raw(const Stored& stored) const { return files_[stored.file].Get(*stored.entry); }

  std::filesystem::path path_;
  Config config_, mlx_;  // mlx_: MLX's quantisation settings; without members: not quantised by MLX
  std::vector<std::filesystem::path> read_;
  std::vector<SafetensorsFile> files_;
  std::map<std::string, Stored> stored_;   // includes tensors that are stored under another name
  std::map<std::string, Tensor> changed_;  // of With and Part
  std::set<std::string> adapted_;          // those of With
  bool scaled_ = false;                    // some FP8 weights have scales
  std::vector<std::string> names_;
};

}  // namespace mlc::safetensors

// frontends/safetensors/folder.h - a Hugging Face folder: config.json, and its tensors by name.
//
// Weights are model.safetensors, the shards that model.safetensors.index.json names, or the only
// .safetensors file that there is. Of weights that are held in fewer bits, all parts make one tensor
// under the name of the first, whose elements are fp32 and which carries an affine encoding of what
// lies in the file (lib/ir/encoding.h):
//
//   MLX   P.weight U32 [..., columns * bits / 32], P.scales and P.biases [..., columns / group], and
//         group_size and bits in config.json ("quantization", also for P alone):
//         scale * q + bias. Elements follow each other LSB first, without gaps
//         (github.com/ml-explore/mlx, mlx/backend/cpu/quantized.cpp, extract_bits).
//   FP8   W F8_*, W_scale_inv or W_scale: one, one for each row, or one for each block of
//         quantization_config.weight_block_size (DeepSeek-V3's README: 128 x 128, cut at the edges):
//         scale * w. Where there is a quantization_config, or another weight has scales, one without
//         is refused, unless its modules_to_not_convert (transformers, quantizers_utils.py,
//         should_convert_module) or ignore (compressed-tensors) has its module; else it is a cast, as
//         transformers takes it.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "frontends/safetensors/config.h"
#include "frontends/safetensors/file.h"
#include "lib/ir/tensor.h"
#include "lib/support/error.h"

namespace mlc {

// Immutable; copies share. Nothing but headers is read when it is opened.
class Folder {
 public:
  // A folder, or one .safetensors file (with the config.json beside it, if there is one). Error
  // "file-io", "bad-file", "resource-limit" with file and tensor or key.
  static Folder Open(const std::filesystem::path& path);

  const std::filesystem::path& path() const { return path_; }
  const Config& config() const { return config_; }  // without members where there is no file
  std::string model_type() const { return config_.Text("model_type", ""); }
  std::string architecture() const;  // the first of `architectures`; empty: none is named

  // Sorted; without parts of others.
  const std::vector<std::string>& names() const { return names_; }
  bool has(const std::string& name) const { return stored_.contains(name); }  // parts, too
  // The name under which a file has the tensor: of those that a model shared, safetensors.torch's
  // save_model stores one, and says in __metadata__ for which others it stands.
  const std::string& stored_name(const std::string& name) const { return Get(name).entry->name; }
  // The same without tensors of these names.
  Folder Without(const std::vector<std::string>& names) const;
  // A slice of a mapped file, as it is stored, or encoded as above; a part alone as it is stored.
  // Error "bad-file" where there is none of this name, "bad-constant" where parts do not fit
  // together, "unsupported-dtype".
  Tensor tensor(const std::string& name) const;

  // How a tensor is held, for people.
  struct Item {
    std::string name;
    std::string type;     // "BF16", "4 bits in groups of 64", "F8_E4M3 in blocks of 128 x 128"
    Dims dims;            // of its values
    uint64_t bytes;       // of all parts
    std::string problem;  // why tensor() refuses it; empty: it does not
  };
  Item item(const std::string& name) const;

  const std::vector<SafetensorsFile>& files() const { return files_; }  // sorted by path
  // Every file that was read: config.json and index, if any, then files().
  std::vector<std::filesystem::path> paths() const;

 private:
  struct Stored {
    size_t file;
    const SafetensorsFile::Entry* entry;
  };
  // A tensor with its parts; a part that it has not is null.
  struct Weight {
    enum class Form { kPlain, kMlx, kFp8 };
    Form form = Form::kPlain;
    const Stored *data = nullptr, *scale = nullptr, *bias = nullptr;
    Dims dims;                   // of the values
    int64_t bits = 0;            // kMlx
    std::vector<int64_t> block;  // kMlx, kFp8: elements that share a scale, along each axis
  };

  void AddFile(const std::filesystem::path& file);
  void AddAliases(size_t file);
  void AddIndex(const std::filesystem::path& index);
  const Stored* Find(const std::string& name) const;
  const Stored& Get(const std::string& name) const;
  Error Refusal(const Stored& stored, std::string_view id, std::string text) const;
  Weight PartsOf(const std::string& name) const;  // the form and the parts alone
  Weight Resolve(const std::string& name) const;
  bool IsExcluded(const std::string& name) const;  // from what quantization_config says
  void ResolveMlx(Weight& weight) const;
  void ResolveFp8(Weight& weight) const;
  Tensor Raw(const Stored& stored) const { return files_[stored.file].Get(*stored.entry); }

  std::filesystem::path path_;
  Config config_, mlx_;  // mlx_: how MLX holds weights; without members: not at all
  std::vector<std::filesystem::path> read_;
  std::vector<SafetensorsFile> files_;
  std::map<std::string, Stored> stored_;  // those that stand for others under their names, too
  bool scaled_ = false;                   // FP8 weights have scales
  std::vector<std::string> names_;
};

}  // namespace mlc

// frontends/gguf/gguf_model.h - access to a file for both importers: values by the keys of its
// architecture, and tensors by name. It records what has been read.
#pragma once

#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "frontends/gguf/file.h"
#include "lib/ir/import_options.h"

namespace mlc::gguf {

class GgufModel {
 public:
  GgufModel(const GgufFile& file, const ImportOptions& options, Diagnostics& diagnostics)
      : options_(options),
        diagnostics_(diagnostics),
        file_(file),
        architecture_(file.String("general.architecture")) {}

  const GgufFile& file() const { return file_; }
  const std::string& architecture() const { return architecture_; }

  // The getters take keys without the architecture prefix ("block_count") and behave like those of
  // GgufFile. Key returns the full key and marks it as read.
  std::string Key(std::string_view key) const;
  bool Has(std::string_view key) const { return file_.Has(Key(key)); }
  int64_t Int(std::string_view key) const { return file_.Int(Key(key)); }
  int64_t Int(std::string_view key, int64_t otherwise) const {
    return file_.Int(Key(key), otherwise);
  }
  double Float(std::string_view key, double otherwise) const {
    return file_.Float(Key(key), otherwise);
  }
  bool Bool(std::string_view key, bool otherwise) const { return file_.Bool(Key(key), otherwise); }
  std::string Text(std::string_view key, std::string_view otherwise) const {
    return file_.String(Key(key), otherwise);
  }
  // Returns a number that is stored once or once per layer; it must be the same for all layers.
  int64_t OfAllLayers(std::string_view key, int64_t otherwise) const;
  // Returns the common value of all elements of `each`, the value of the key. Error
  // "unsupported-architecture" if they differ.
  int64_t OneOf(std::string_view key, const std::vector<int64_t>& each) const;
  // Throws the error "unsupported-architecture": according to the key, the model has an unsupported
  // feature.
  [[noreturn]] void Refuse(std::string_view key, std::string_view has) const;

  // Returns the number of rows of a matrix, or of each of several matrices; `otherwise` if there is
  // no such tensor.
  int64_t RowsOf(const std::string& name, int64_t otherwise) const;
  // Returns an empty tensor if there is none of this name.
  Tensor Take(const std::string& name);
  // Throws the error "unused-tensor" if a tensor was not taken, and emits a warning "unread-key"
  // for each key of the architecture that was not read and might affect the results.
  void CheckAllTaken() const;

  // Sets name, author, licence, and the repository from which swift-transformers loads the
  // tokenizer; `task` is Hugging Face's name of the task.
  void Describe(Program& program, std::string_view task) const;

 protected:
  const ImportOptions& options_;
  Diagnostics& diagnostics_;

 private:
  const GgufFile& file_;
  std::string architecture_;
  std::set<std::string> taken_;
  mutable std::set<std::string> asked_;
};

}  // namespace mlc::gguf

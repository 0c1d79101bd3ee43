// frontends/gguf/model.h - what both importers read from a file: values by the keys of its
// architecture, and tensors by name, with a record of what was read.
#pragma once

#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "frontends/gguf/file.h"
#include "lib/ir/program.h"

namespace mlc {

class GgufModel {
 public:
  explicit GgufModel(const GgufFile& file)
      : file_(file), architecture_(file.String("general.architecture")) {}

  const GgufFile& file() const { return file_; }
  const std::string& architecture() const { return architecture_; }

  // Keys are without the architecture in front ("block_count"). The getters are those of GgufFile.
  // Asking for the whole key counts as reading it.
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
  // A number that a file may give once or once per layer; it must be the same for all layers.
  int64_t OfAllLayers(std::string_view key, int64_t otherwise) const;
  // The number that all elements of `each`, the value of the key, equal. Error
  // "unsupported-architecture" where they differ.
  int64_t OneOf(std::string_view key, const std::vector<int64_t>& each) const;
  // Throws the error "unsupported-architecture": the key says that the model has something
  // unsupported.
  [[noreturn]] void Refuse(std::string_view key, std::string_view has) const;

  // The number of rows of a matrix, or of each of several matrices; `otherwise` where there is
  // none.
  int64_t RowsOf(const std::string& name, int64_t otherwise) const;
  // Empty where there is no tensor of this name.
  Tensor Take(const std::string& name);
  // Error "unused-tensor" for tensors that were not taken; a warning "unread-key" for each key of
  // the architecture that was not read and could change what the network computes.
  void CheckAllTaken(Diagnostics& diagnostics) const;

  // Sets name, author, licence, and the repository from which swift-transformers takes the
  // tokenizer; `task` is Hugging Face's name for it.
  void Describe(Program& program, std::string_view task) const;

 private:
  const GgufFile& file_;
  std::string architecture_;
  std::set<std::string> taken_;
  mutable std::set<std::string> asked_;
};

}  // namespace mlc

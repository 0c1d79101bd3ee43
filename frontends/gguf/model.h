// frontends/gguf/model.h - a file as the importers ask for it: numbers by the keys of its architecture,
// tensors by name, of which it knows which ones somebody took.
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

  // Keys without the architecture before them: "block_count". Getters as those of GgufFile. Whoever
  // asks for the whole key reads it.
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
  // A number that may be given for each layer, where it is the same for all.
  int64_t OfAllLayers(std::string_view key, int64_t otherwise) const;
  // What these, which the key gave, all are. Error "unsupported-architecture" where they differ.
  int64_t OneOf(std::string_view key, const std::vector<int64_t>& each) const;
  // Error "unsupported-architecture": by this key the model has what no row has.
  [[noreturn]] void Refuse(std::string_view key, std::string_view has) const;

  // How many rows a matrix has, each one where it is several; `otherwise` where it is not there.
  int64_t RowsOf(const std::string& name, int64_t otherwise) const;
  // Empty where there is none of this name.
  Tensor Take(const std::string& name);
  // Error "unused-tensor" for those that nobody took; a warning "unread-key" for each key of the
  // architecture that nobody asked for, but those that change nothing that a network computes.
  void CheckAllTaken(Diagnostics& diagnostics) const;

  // Name, author, licence, and whence swift-transformers takes the tokenizer; `task` as Hugging Face
  // calls it.
  void Describe(Program& program, std::string_view task) const;

 private:
  const GgufFile& file_;
  std::string architecture_;
  std::set<std::string> taken_;
  mutable std::set<std::string> asked_;
};

}  // namespace mlc

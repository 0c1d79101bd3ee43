// tools/driver/tokenizer.h - loads the tokenizer of a model of any format, and writes it for a
// package or bundle in the form that Hugging Face's libraries and swift-transformers read.
//
// Those files are tokenizer.json, tokenizer_config.json and config.json in a folder. Packages may share
// a folder, in which each has its own X.tokenizer beside X.mlpackage or X.mlmodelc; a folder that is
// made for one model has them itself. They are not part of the package.
#pragma once

#include <filesystem>
#include <list>
#include <optional>
#include <string>
#include <vector>

#include "frontends/safetensors/tokenizer.h"
#include "lib/support/atomic_install.h"
#include "lib/support/error.h"
#include "lib/text/tokenizer.h"

namespace mlc::driver {

// Loads the tokenizer of a GGUF file, a Hugging Face folder or a tokenizer.json, or that beside
// a package or bundle. The format is detected by content. Throws located errors of the readers and of Tokenizer;
// "unsupported-tokenizer" if there is none; "unknown-format".
text::Tokenizer LoadTokenizer(const std::filesystem::path& path);

// Returns the folder with the tokenizer of a package or bundle: X.tokenizer, or its own. Empty if
// neither has a tokenizer.json.
std::filesystem::path TokenizerBeside(const std::filesystem::path& package);

using TokenizerFiles = safetensors::HuggingFaceTexts;

enum class TokenizerPlace {
  kBeside,  // in X.tokenizer
  kFolder,  // in the package's folder
};
// The folder of a tokenizer that is written for a package.
std::filesystem::path TokenizerFolder(const std::filesystem::path& package, TokenizerPlace place);

// Returns the tokenizer of a GGUF file or a Hugging Face folder, or that in the folder of an ONNX
// model with an input input_ids; other models have none. A tokenizer that cannot be read or written
// is a warning. Files that were read besides the model's own are appended to `read`.
TokenizerFiles TokenizerFilesOf(const std::filesystem::path& model,
                                std::vector<std::filesystem::path>& read, Diagnostics& diagnostics);
// Describes the first difference in content between the tokenizer of a package and that of `model`,
// which the package was made from: e.g. "there is no tokenizer beside the package"; empty if they
// are equal. Returns nothing if the model has no tokenizer, or `package` is neither a package nor a
// bundle.
std::optional<std::string> TokenizerDifference(const std::filesystem::path& model,
                                               const std::filesystem::path& package,
                                               Diagnostics& diagnostics);

// A tokenizer on its way to a folder. Everything that can fail does so in the constructor, before the
// package is written.
class TokenizerInstallation {
 public:
  // Errors: "overwrites-input"; "file-io"; unless `force`, "file-exists" for files that mlc did not
  // write, and for other contents in a folder that other packages use. Without a tokenizer there
  // are no conflicts.
  TokenizerInstallation(const std::filesystem::path& package, const TokenizerFiles& files,
                        TokenizerPlace place, bool force);
  // Writes the files, and removes those that mlc wrote for an earlier package of this name. May be
  // called once. Error "file-io".
  void Commit();

  // Empty if there is no tokenizer.
  const std::filesystem::path& folder() const { return folder_; }

 private:
  std::filesystem::path folder_;
  std::list<Staging> staged_;  // the folder, or files in it
  std::vector<std::filesystem::path> stale_;
};

// Copies the tokenizer of a package for `output`, to a place of the same kind. Nothing is written if
// both use the same folder.
TokenizerInstallation CopyTokenizer(const std::filesystem::path& package,
                                    const std::filesystem::path& output, bool force);
// Writes the files into a folder, which is created. Errors of TokenizerInstallation.
void WriteTokenizer(const std::filesystem::path& folder, const TokenizerFiles& files);

}  // namespace mlc::driver

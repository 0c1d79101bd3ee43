// tools/driver/tokenizer_file.h - the tokenizer that lies beside a package: X.tokenizer.gguf or
// X.tokenizer.json beside X.mlpackage or X.mlmodelc.
//
// It is what the source says of its tokenizer, in a form that other tools read, and no part of the package.
// LoadTokenizer (tokenizer.h) finds it.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "lib/support/error.h"

namespace mlc {

struct TokenizerFile {
  std::string format;  // "gguf", "json"; empty: there is none
  std::string bytes;
};

// Of a GGUF file or a Hugging Face folder; none of other models. A tokenizer that cannot be read is none,
// with a warning. `read` gets the files that it was made of, beside the model's own.
TokenizerFile TokenizerFileOf(const std::filesystem::path& model,
                              std::vector<std::filesystem::path>& read, Diagnostics& diagnostics);
// How the tokenizer beside a package, which was made of this model, differs from the model's: the first
// difference by content, "there is no tokenizer beside the package"; empty: nowhere. Nothing where the model
// has no tokenizer to compare with, or `package` is neither a package nor a bundle.
std::optional<std::string> TokenizerDifference(const std::filesystem::path& model,
                                               const std::filesystem::path& package,
                                               Diagnostics& diagnostics);
// What lies beside a package.
TokenizerFile ReadTokenizerBeside(const std::filesystem::path& package);

std::filesystem::path TokenizerPath(const std::filesystem::path& package, std::string_view format);

// What InstallTokenizer will find in its way: Error "overwrites-input", "file-io", or "file-exists" for what
// mlc would not have written there, unless `force`. Where there is no tokenizer nothing is in the way.
void CheckTokenizerTarget(const std::filesystem::path& package, const TokenizerFile& file,
                          bool force);
// Writes the file beside the package, atomically, and removes what lies there in another format. Where there
// is no tokenizer, what mlc wrote there for another package is removed. Error "file-io".
void InstallTokenizer(const std::filesystem::path& package, const TokenizerFile& file);

}  // namespace mlc

// tools/driver/tokenizer.h - loads the tokenizer of a model of any format, and writes it to the
// file beside a package: X.tokenizer.gguf or X.tokenizer.json beside X.mlpackage or X.mlmodelc.
//
// That file contains the source's tokenizer in a format that other tools read. It is not part of
// the package.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "lib/support/error.h"
#include "lib/text/tokenizer.h"

namespace mlc::driver {

// Loads the tokenizer of a GGUF file, a Hugging Face folder or a tokenizer.json, or the file beside
// a package or bundle. The format is detected by content. Throws located errors of the readers and of Tokenizer;
// "unsupported-tokenizer" if there is none; "unknown-format".
text::Tokenizer LoadTokenizer(const std::filesystem::path& path);

// Returns the tokenizer file beside a package or bundle, empty if there is none.
std::filesystem::path TokenizerBeside(const std::filesystem::path& package);

struct TokenizerFile {
  std::string format;  // "gguf", "json"; empty: no tokenizer
  std::string bytes;
};

// Extracts the tokenizer of a GGUF file or a Hugging Face folder; other models have none. A
// tokenizer that cannot be read is a warning. Files that were read besides the model's own are
// appended to `read`.
TokenizerFile TokenizerFileOf(const std::filesystem::path& model,
                              std::vector<std::filesystem::path>& read, Diagnostics& diagnostics);
// Describes the first difference in content between the tokenizer beside a package and that of
// `model`, which the package was made from: e.g. "there is no tokenizer beside the package"; empty
// if they are equal. Returns nothing if the model has no tokenizer, or `package` is neither a
// package nor a bundle.
std::optional<std::string> TokenizerDifference(const std::filesystem::path& model,
                                               const std::filesystem::path& package,
                                               Diagnostics& diagnostics);
// Reads the tokenizer file beside a package.
TokenizerFile ReadTokenizerBeside(const std::filesystem::path& package);

std::filesystem::path TokenizerPath(const std::filesystem::path& package, std::string_view format);

// Checks for conflicts of InstallTokenizer: Error "overwrites-input", "file-io", or, unless
// `force`, "file-exists" for files not written by mlc. An empty `file` has no conflicts.
void CheckTokenizerTarget(const std::filesystem::path& package, const TokenizerFile& file,
                          bool force);
// Writes the file beside the package atomically and removes a file in another format. An empty
// `file` removes the one that mlc wrote for an earlier package. Error "file-io".
void InstallTokenizer(const std::filesystem::path& package, const TokenizerFile& file);

}  // namespace mlc::driver

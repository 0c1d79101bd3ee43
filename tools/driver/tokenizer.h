// tools/driver/tokenizer.h - the tokenizer of a model, whatever its file.
#pragma once

#include <filesystem>

#include "lib/text/tokenizer.h"

namespace mlc {

// Of a GGUF file, a Hugging Face folder, a tokenizer.json, or the file that lies beside a package or
// bundle (X.tokenizer.gguf, X.tokenizer.json beside X.mlpackage), by content. Errors of the readers
// and of Tokenizer, located; "unsupported-tokenizer" where there is none, "unknown-format".
Tokenizer LoadTokenizer(const std::filesystem::path& path);

// The file beside a package or bundle that has its tokenizer; empty: there is none.
std::filesystem::path TokenizerBeside(const std::filesystem::path& package);

}  // namespace mlc

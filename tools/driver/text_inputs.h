// tools/driver/text_inputs.h - texts as inputs of encoders.
//
// The tokenizer is that of the model: in its file or folder, beside its package, or a tokenizer.json
// in the folder of an ONNX file or package (of an ONNX file in a folder named onnx, also above it).
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lib/text/tokenizer.h"
#include "tools/driver/run_tokens.h"

namespace mlc::driver {

// What a user gives instead of input tensors.
struct TextInput {
  std::optional<std::string> text, pair;  // `pair`: the second text of a pair
  std::filesystem::path tokenizer;        // where the tokenizer is; empty: with the model

  bool given() const { return text.has_value(); }
};

// A text, or a pair of texts, as tokens of an encoder.
struct EncodedText {
  EncoderTokens tokens;
  std::vector<std::string> pieces;  // the tokens as the tokenizer spells them
  int64_t removed = 0;              // tokens of the texts that did not fit
  int64_t padded = 0;               // the length with padding
  bool masked = true;               // whether the encoder is told what is padding
};

// Error "usage" for a function that is no encoder, which says what to do instead of the option `what`.
void RequireEncoder(const Function& function, std::string_view what);

class TextEncoder {
 public:
  // `function` must outlive this object. `what` is the option that gives the text, named in errors:
  // those of RequireEncoder and LoadTokenizer, and "unsupported-tokenizer" if none is found.
  TextEncoder(const Function& function, const std::filesystem::path& model,
              const std::filesystem::path& tokenizer, std::string_view what);

  // Error "bad-input" for a token or a type that the encoder does not have, and the errors of
  // Tokenizer::EncodeTexts. `most`: the most tokens; 0: as many as model and tokenizer allow.
  EncodedText Encode(std::string_view text, const std::string* pair, int64_t most = 0) const;

 private:
  const Function& function_;
  std::string what_;
  text::Tokenizer tokenizer_;
  EncoderSize size_{};
};

// Reads the texts of a file: one on each line, or two that a tab separates. Empty lines are left
// out. Error "bad-input" for a file without a text, and for a line with several tabs.
struct TextLine {
  std::string text;
  std::optional<std::string> pair;
};
std::vector<TextLine> ReadTextLines(const std::filesystem::path& file);

// Returns the folder with the files that belong to a model: the folder itself, that of a file or
// package, or the one above it, for an ONNX file in a folder "onnx". `name`: a file that it must have;
// empty if there is none.
std::filesystem::path FolderWith(const std::filesystem::path& model, std::string_view name);

}  // namespace mlc::driver

#include "tools/driver/text_inputs.h"

#include <fmt/ranges.h>

#include <algorithm>

#include "lib/support/mapped_file.h"
#include "lib/support/regular_file.h"
#include "lib/support/utf8.h"
#include "tools/driver/frontends.h"
#include "tools/driver/supplied_tensors.h"
#include "tools/driver/tokenizer.h"

namespace fs = std::filesystem;

namespace mlc::driver {

namespace {

// Returns where LoadTokenizer finds the tokenizer of a model.
fs::path TokenizerPlaceOf(const fs::path& model) {
  std::error_code ignored;
  const Frontend& frontend = FrontendOf(model);
  if (frontend.name == "gguf" || (frontend.tokenizer && fs::is_directory(model, ignored)))
    return model;
  if (const fs::path beside = TokenizerBeside(model); !beside.empty()) return beside;
  const fs::path folder = FolderWith(model, "tokenizer.json");
  if (folder.empty())
    throw Error("unsupported-tokenizer", "there is no tokenizer with the model")
        .At({model.string(), ""})
        .Expected("tokenizer.json in its folder")
        .Help("copy the tokenizer.json of the model there, or pass it with --tokenizer PATH");
  return folder / "tokenizer.json";
}

std::string ShapeText(const Value& value) {
  std::vector<std::string> dims;
  for (const Dim& dim : value.type.shape) dims.push_back(dim.ToString());
  return fmt::format("[{}]", fmt::join(dims, ", "));
}

}  // namespace

void RequireEncoder(const Function& function, std::string_view what) {
  if (IsEncoder(function)) return;
  if (IsLanguageModel(function))
    throw Error("usage", "{}: function \"{}\" is a language model", what, function.name)
        .Expected("a text encoder")
        .Help("--prompt continues a text");
  std::vector<std::string> inputs;
  for (const auto& [port, value] : InputPorts(function))
    inputs.push_back(fmt::format("{} {}", verify::UserName(port), ShapeText(value)));
  throw Error("usage", "{}: function \"{}\" is not a text encoder; its inputs: {}", what,
              function.name, fmt::join(inputs, ", "))
      .Expected(
          "an input input_ids [batch, tokens] and optionally attention_mask and token_type_ids, "
          "and "
          "no others")
      .Help("pass inputs with --input NAME=FILE");
}

fs::path FolderWith(const fs::path& model, std::string_view name) {
  std::error_code ignored;
  const fs::path whole = fs::absolute(model, ignored).lexically_normal(),
                 path = whole.has_filename() ? whole : whole.parent_path();
  std::vector<fs::path> folders{path, path.parent_path()};
  // optimum and transformers.js put ONNX files into a subfolder.
  if (path.parent_path().filename() == "onnx") folders.push_back(path.parent_path().parent_path());
  for (const fs::path& folder : folders)
    if (fs::is_regular_file(folder / name, ignored)) return folder;
  return {};
}

TextEncoder::TextEncoder(const Function& function, const fs::path& model, const fs::path& tokenizer,
                         std::string_view what)
    : function_(function),
      what_(what),
      tokenizer_([&] {
        RequireEncoder(function, what);
        return LoadTokenizer(tokenizer.empty() ? TokenizerPlaceOf(model) : tokenizer);
      }()),
      size_(EncoderSizes(function)) {}

EncodedText TextEncoder::Encode(std::string_view text, const std::string* pair,
                                int64_t most) const {
  most = std::min(size_.tokens, most > 0 ? most : INT64_MAX);
  if (const int64_t own = tokenizer_.spec().max_length; own > 0) most = std::min(most, own);
  const text::EncodedTexts encoded = tokenizer_.EncodeTexts(text, pair, most);
  EncodedText result{.removed = encoded.removed, .masked = size_.masked};
  for (size_t i = 0; i < encoded.ids.size(); ++i) {
    const int32_t id = encoded.ids[i], type = encoded.types[i];
    result.pieces.push_back(tokenizer_.spec().tokens[static_cast<size_t>(id)]);
    if (id >= size_.vocabulary)
      throw Error("bad-input", "{}: token {} (\"{}\") is not in the vocabulary of the model", what_,
                  id, result.pieces.back())
          .Expected("0 to {}", size_.vocabulary - 1)
          .Help("check that the tokenizer belongs to this model");
    if (size_.types > 0 && type >= size_.types)
      throw Error("bad-input", "{}: the tokenizer gives tokens the type {}", what_, type)
          .Expected("0 to {}, the types that the model has", size_.types - 1)
          .Help("check that the tokenizer belongs to this model");
    result.tokens.ids.push_back(id);
    result.tokens.types.push_back(type);
  }
  if (result.tokens.ids.empty())
    throw Error("bad-input", "{}: the text has no tokens", what_).Help("pass a text with words");
  const int32_t padding = tokenizer_.spec().pad;
  if (padding >= 0 && padding < size_.vocabulary) result.tokens.padding = padding;
  result.padded = PaddedLength(function_, std::ssize(result.tokens.ids));
  return result;
}

std::vector<TextLine> ReadTextLines(const fs::path& file) {
  const auto mapped = MappedFile::Open(file);
  std::string_view rest = WithoutBom(AsText(mapped->bytes()));
  std::vector<TextLine> lines;
  for (size_t number = 1; !rest.empty(); ++number) {
    const size_t end = std::min(rest.find('\n'), rest.size());
    std::string_view line = rest.substr(0, end);
    rest.remove_prefix(std::min(end + 1, rest.size()));
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (line.empty()) continue;
    const size_t tab = line.find('\t');
    TextLine& one = lines.emplace_back(std::string(line.substr(0, tab)));
    if (tab == line.npos) continue;
    one.pair = line.substr(tab + 1);
    if (one.pair->find('\t') != std::string::npos)
      throw Error("bad-input", "line {} has more than one tab", number)
          .At({file.string(), ""})
          .Expected("a text, or two that a tab separates");
  }
  if (lines.empty())
    throw Error("bad-input", "the file contains no text")
        .At({file.string(), ""})
        .Expected("one text, or a pair that a tab separates, on each line");
  return lines;
}

}  // namespace mlc::driver

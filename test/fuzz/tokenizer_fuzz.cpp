// Tokenizers: any tokenizer.json, any metadata of a GGUF file and any small vocabulary give ids for
// any text and text for any ids, or an Error. Parts: the kind of source (the first byte), the file
// or the vocabulary, the text.
#include "frontends/gguf/tokenizer.h"
#include "frontends/safetensors/tokenizer.h"
#include "lib/support/error.h"
#include "lib/support/utf8.h"
#include "lib/text/pre_tokenizers.h"
#include "lib/text/tokenizer.h"
#include "lib/text/unicode.h"
#include "test/fuzz/file_parts.h"

namespace mlc {
namespace {

constexpr size_t kParts = 3, kLongestText = 512;

// Tokens of one to four bytes each, with types, scores and merges derived from the same bytes.
text::TokenizerSpec Small(std::string_view bytes) {
  size_t at = 0;
  auto next = [&]() -> uint8_t {
    return at < bytes.size() ? static_cast<uint8_t>(bytes[at++]) : 0;
  };
  text::TokenizerSpec spec;
  spec.kind = static_cast<text::TokenizerKind>(next() % 4);
  spec.byte_encoded = next() % 2;
  spec.ignore_merges = next() % 2;
  spec.add_space_prefix = next() % 2;
  spec.clean_spaces = next() % 2;
  spec.add_bos = next() % 2;
  if (next() % 2) spec.continuing = "##";
  const auto& rows = text::PreTokenizers();
  if (spec.kind == text::TokenizerKind::kByteBpe)
    spec.steps = text::Steps(rows[next() % rows.size()]);
  if (spec.kind == text::TokenizerKind::kSpmBpe)
    spec.steps.push_back({.kind = text::TextStep::Kind::kReplace,
                          .pattern = " ",
                          .syntax = text::Syntax::kLiteral,
                          .content = "\u2581"});
  while (at < bytes.size() && spec.tokens.size() < 400) {
    uint8_t how = next();
    std::string token;
    for (int i = 0; i <= how % 4; ++i) token.push_back(static_cast<char>(next()));
    spec.tokens.push_back(token);
    spec.types.push_back(static_cast<text::TokenType>(1 + (how >> 2) % 6));
    spec.scores.push_back(-static_cast<float>(how >> 5));
    if (spec.tokens.size() > 1 && how & 64)
      spec.merges.emplace_back(token, spec.tokens[spec.tokens.size() / 2]);
  }
  spec.bos = spec.tokens.empty() ? -1 : 0;
  spec.unk = spec.tokens.size() > 1 ? 1 : -1;
  return spec;
}

void Use(const text::Tokenizer& tokenizer, std::string_view text) {
  for (int flags = 0; flags < 4; ++flags) {
    std::vector<int32_t> ids = tokenizer.Encode(text, flags & 1, flags & 2);
    text::StreamDecoder stream(tokenizer, flags & 1);
    std::string streamed;
    for (int32_t id : ids) {
      MLC_CHECK(id >= 0 && id < tokenizer.vocabulary(), "token {}", id);
      tokenizer.EndsGeneration(id);
      streamed += stream.Add(id);
      MLC_CHECK(FirstBadUtf8(streamed) == std::string::npos, "half a character");
    }
    streamed += stream.End();
    std::string whole = tokenizer.Decode(ids, flags & 1);
    MLC_CHECK(tokenizer.spec().clean_spaces || streamed == text::ValidUtf8(whole),
              "streamed \"{}\", at once \"{}\"", streamed, whole);
  }
  for (int32_t id = 0; id < std::min(tokenizer.vocabulary(), 1000); ++id)
    tokenizer.Piece(id, id % 2);
}

}  // namespace
}  // namespace mlc

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t max_size,
                                          unsigned seed) {
  return mlc::MutateParts(data, size, max_size, seed, mlc::kParts);
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const mlc::ScratchFolder scratch("tokenizer_fuzz");
  std::vector<std::string> parts = mlc::SplitParts(data, size, mlc::kParts);
  std::string_view text = std::string_view(parts[2]).substr(0, mlc::kLongestText);
  try {
    switch (parts[0].empty() ? 0 : parts[0][0] % 3) {
      case 0:
        mlc::Use(mlc::text::Tokenizer(
                     mlc::safetensors::ParseHuggingFaceTokenizer(parts[1], "", "tokenizer.json")),
                 text);
        break;
      case 1:
        scratch.Write("model.gguf", parts[1]);
        mlc::Use(mlc::text::Tokenizer(mlc::gguf::ReadGgufTokenizer(
                     mlc::gguf::GgufFile::Open(scratch.path() / "model.gguf"))),
                 text);
        break;
      default:
        mlc::Use(mlc::text::Tokenizer(mlc::Small(parts[1])), text);
    }
  } catch (const mlc::Error&) {
  }
  return 0;
}

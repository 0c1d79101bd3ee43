#include <charconv>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "lib/support/json_text.h"
#include "lib/support/mapped_file.h"
#include "lib/support/utf8.h"
#include "tools/driver/tokenizer.h"
#include "tools/mlc/command.h"

namespace fs = std::filesystem;

namespace mlc::driver {
namespace {

using Json = nlohmann::ordered_json;

struct TokenizeArguments {
  fs::path model, file, texts, output;
  std::optional<std::string> text, decode;
  bool special = false, add_special = false;
};

std::string ReadBytes(const fs::path& path) {
  auto file = MappedFile::Open(path);
  std::string bytes(file->size(), '\0');
  file->Read(0, std::as_writable_bytes(std::span(bytes)));
  return bytes;
}

std::vector<int32_t> ParseIds(const std::string& list) {
  std::vector<int32_t> ids;
  for (size_t at = 0; at < list.size();) {
    size_t end = std::min(list.find_first_of(", \n", at), list.size());
    if (end > at) {
      int32_t id = 0;
      const char* last = list.data() + end;
      auto [stop, error] = std::from_chars(list.data() + at, last, id);
      if (error != std::errc() || stop != last)
        throw Error("usage", "--decode: \"{}\" is not a token id",
                    std::string_view(list).substr(at, end - at))
            .Expected("comma-separated numbers, e.g. 1,2,3");
      ids.push_back(id);
    }
    at = end + 1;
  }
  return ids;
}

// Reads a JSON list of strings.
std::vector<std::string> ReadTexts(const fs::path& path) {
  std::string bytes = ReadBytes(path);
  RequireJson(bytes, "bad-file", path.string());
  auto json = nlohmann::json::parse(bytes);
  bool texts = json.is_array();
  for (const auto& each : json) texts = texts && each.is_string();
  if (!texts)
    throw Error("bad-file", "not a JSON list of strings")
        .At({path.string(), ""})
        .Expected("e.g. [\"Hello\", \"world\"]");
  return json.get<std::vector<std::string>>();
}

// Formats a token for display: "Hel", " lo", "\n", "<0xF0>".
std::string Shown(const std::string& piece) {
  if (FirstBadUtf8(piece) == std::string::npos) return JsonText(Json(piece));
  std::string shown = "\"";
  for (unsigned char byte : piece)
    shown += byte >= 0x20 && byte < 0x7f ? std::string(1, static_cast<char>(byte))
                                         : fmt::format("<0x{:02X}>", byte);
  return shown + "\"";
}

// Writes the tokenizer of a model as other libraries read it.
int ExportTokenizer(const TokenizeArguments& given, Session& session) {
  RefuseAllBut({"MODEL", "-o", "--json"}, "-o writes the tokenizer and encodes no text", session);
  std::vector<fs::path> read;
  const TokenizerFiles files = TokenizerFilesOf(given.model, read, session.diagnostics);
  if (files.tokenizer.empty()) {
    LoadTokenizer(given.model);  // throws the reason
    throw Error("usage", "-o: \"{}\" is not a source model", given.model.string())
        .Expected("a GGUF file or a Hugging Face folder");
  }
  WriteTokenizer(given.output, files);
  if (session.json)
    PrintDocument({{"tokenizer", fs::absolute(given.output).string()}});
  else
    fmt::print("{}\n", given.output.string());
  return 0;
}

int TokenizeRun(const TokenizeArguments& given, Session& session) {
  if (!given.output.empty()) return ExportTokenizer(given, session);
  int sources = given.text.has_value() + given.decode.has_value() + !given.file.empty() +
                !given.texts.empty();
  if (sources != 1)
    throw Error("usage", sources == 0 ? "no text or tokens given" : "several texts or tokens given")
        .Expected("one of --text, --file, --texts and --decode");
  text::Tokenizer tokenizer = LoadTokenizer(given.model);
  if (given.decode) {
    std::string text = tokenizer.Decode(ParseIds(*given.decode), given.special);
    if (session.json) {
      PrintDocument({{"text", text}});
    } else {
      std::fwrite(text.data(), 1, text.size(), stdout);
      std::fputc('\n', stdout);
    }
    return 0;
  }
  auto encode = [&](std::string_view text) {
    return tokenizer.Encode(text, given.add_special, given.special);
  };
  if (!given.texts.empty()) {
    Json lists = Json::array();
    for (const std::string& text : ReadTexts(given.texts)) lists.push_back(encode(text));
    fmt::print("{}\n", JsonText(Json{{"ids", std::move(lists)}}));
    return 0;
  }
  std::vector<int32_t> ids = encode(given.text ? *given.text : ReadBytes(given.file));
  if (session.json) {
    fmt::print("{}\n", JsonText(Json{{"ids", ids}}));
  } else {
    for (int32_t id : ids) fmt::print("{:>8}  {}\n", id, Shown(tokenizer.Piece(id, true)));
  }
  return 0;
}

}  // namespace

Command TokenizeCommand() {
  auto given = std::make_shared<TokenizeArguments>();
  std::vector<Option> table = {
      {"MODEL", "",
       "GGUF file, Hugging Face folder, tokenizer.json, or package with a tokenizer "
       "beside it",
       Into(given->model), true},
      {"--text", "TEXT", "text to tokenize (default: none)",
       [given](const std::string& text) { given->text = text; }},
      {"--file", "FILE", "file to tokenize, byte for byte (default: none)", Into(given->file)},
      {"--texts", "FILE.json",
       "several texts, as a JSON list; prints a list of ids for each (default: none)",
       Into(given->texts)},
      {"--decode", "IDS", "token ids to decode, e.g. 1,2,3 (default: none)",
       [given](const std::string& ids) { given->decode = ids; }},
      {"--special", "",
       "recognise control tokens (\"<|im_end|>\") in the text; with --decode, print them",
       Switch(given->special)},
      {"--add-special", "",
       "add the tokens that the model expects around a text (BOS, EOS; CLS, SEP)",
       Switch(given->add_special)},
      OutputOption({"-o", "DIR",
                    "write the tokenizer of a GGUF file or a Hugging Face folder as "
                    "tokenizer.json, tokenizer_config.json and config.json (default: none)",
                    Into(given->output)}),
      JsonOption()};
  return {"tokenize",
          "Encode text as tokens, or decode tokens",
          {"mlc tokenize model.gguf --text \"Hello world\"",
           "mlc tokenize model.gguf --decode 1,2,3 --json", "mlc tokenize model.gguf -o tokenizer"},
          std::move(table),
          [given](Session& session) { return TokenizeRun(*given, session); },
          {},
          {"run"}};
}

}  // namespace mlc::driver

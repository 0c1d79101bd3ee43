// Folders of Hugging Face models: any config.json and preprocessor_config.json, and any tensors, give
// a Program that passes the verifier, or an Error. Parts: config.json, preprocessor_config.json (may
// be empty), and the tensors, a line "NAME SIZE SIZE ..." each, whose elements are zeros. The bytes of
// the files themselves are the subject of safetensors_fuzz.
#include <charconv>
#include <nlohmann/json.hpp>

#include "frontends/safetensors/safetensors.h"
#include "lib/ir/program.h"
#include "test/fuzz/file_parts.h"

namespace mlc {
namespace {

using Json = nlohmann::ordered_json;

constexpr size_t kParts = 3;
// More is not written, so that the file ends early.
constexpr int64_t kMostBytes = 1 << 24;

void AllValues(Json& value, std::vector<Json*>& all) {
  all.push_back(&value);
  if (value.is_structured())
    for (Json& inner : value) AllValues(inner, all);
}

// Changes one value of a JSON text: to a number, a text or a structure that readers may not expect, or
// to another value of the same text.
std::string ChangedJson(const std::string& text, std::minstd_rand& random) {
  Json json = Json::parse(text, nullptr, false);
  if (json.is_discarded()) return text;
  std::vector<Json*> all;
  AllValues(json, all);
  Json& value = *all[random() % all.size()];
  static const Json kUnexpected[] = {0,
                                     1,
                                     2,
                                     3,
                                     -1,
                                     7,
                                     64,
                                     1 << 20,
                                     INT32_MAX,
                                     int64_t{1} << 31,
                                     int64_t{1} << 40,
                                     -0.5,
                                     1e300,
                                     1e-5,
                                     "",
                                     "x",
                                     Json(false),
                                     Json(true),
                                     Json(),
                                     Json::array(),
                                     Json::object(),
                                     {1, 2},
                                     {{1, 2}},
                                     INT64_MAX};
  switch (random() % 4) {
    case 0: {
      const Json other = *all[random() % all.size()];
      value = other;
      break;
    }
    case 1:
      if (value.is_object() && !value.empty()) {
        value.erase(std::next(value.begin(), static_cast<ptrdiff_t>(random() % value.size())));
        break;
      }
      [[fallthrough]];
    default:
      value = kUnexpected[random() % std::size(kUnexpected)];
  }
  return json.dump();
}

// Returns a file with these tensors.
std::string WeightFile(const std::string& lines, int64_t& bytes) {
  Json header = Json::object();
  bytes = 0;
  for (size_t at = 0; at < lines.size();) {
    const size_t end = std::min(lines.find('\n', at), lines.size());
    const std::string_view line = std::string_view(lines).substr(at, end - at);
    at = end + 1;
    size_t next = std::min(line.find(' '), line.size());
    const std::string name(line.substr(0, next));
    Json dims = Json::array();
    int64_t size = sizeof(float);
    while (next < line.size()) {
      uint32_t dim = 0;
      const char* last = line.data() + line.size();
      const auto [stop, error] = std::from_chars(line.data() + next + 1, last, dim);
      if (error != std::errc()) break;
      next = static_cast<size_t>(stop - line.data());
      dims.push_back(dim);
      if (__builtin_mul_overflow(size, int64_t{dim}, &size)) size = kMostBytes;
    }
    size = std::min(size, kMostBytes);
    header[name] = {{"dtype", "F32"}, {"shape", dims}, {"data_offsets", {bytes, bytes + size}}};
    bytes = std::min(bytes + size, kMostBytes);
  }
  const std::string text = header.dump(-1, ' ', false, Json::error_handler_t::replace);
  const uint64_t length = text.size();
  return std::string(reinterpret_cast<const char*>(&length), sizeof length) + text;
}

}  // namespace
}  // namespace mlc

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t max_size,
                                          unsigned seed) {
  std::minstd_rand random(seed);
  if (random() % 4 == 0) return mlc::MutateParts(data, size, max_size, seed, mlc::kParts);
  std::vector<std::string> parts = mlc::SplitParts(data, size, mlc::kParts);
  std::string& json = parts[random() % 4 == 0 ? 1 : 0];
  for (size_t count = 1 + random() % 2; count > 0; --count) json = mlc::ChangedJson(json, random);
  return mlc::JoinParts(parts, data, max_size);
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const mlc::ScratchFolder scratch("hugging_face_fuzz");
  const std::vector<std::string> parts = mlc::SplitParts(data, size, mlc::kParts);
  const std::filesystem::path path = scratch.path() / "model";
  std::filesystem::remove_all(path);
  scratch.Write("model/config.json", parts[0]);
  if (!parts[1].empty()) scratch.Write("model/preprocessor_config.json", parts[1]);
  int64_t bytes = 0;
  const std::string weights = mlc::WeightFile(parts[2], bytes);
  scratch.Write("model/model.safetensors", weights);
  // Zeros that are not stored.
  std::filesystem::resize_file(path / "model.safetensors",
                               weights.size() + static_cast<size_t>(bytes));
  try {
    mlc::Diagnostics diagnostics;
    const mlc::Program program = mlc::safetensors::ImportHuggingFace(path, {}, diagnostics);
    mlc::Verify(program);
  } catch (const mlc::Error& error) {
    MLC_CHECK(error.id() != "internal", "{}", error.what());
  } catch (const mlc::Errors&) {
  }
  return 0;
}

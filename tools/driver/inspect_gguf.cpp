#include "tools/driver/inspect_gguf.h"

#include "frontends/gguf/file.h"
#include "tools/driver/import.h"

namespace mlc::driver {
namespace {

constexpr uint64_t kElements = 3, kTextBytes = 80;  // display limits

// Returns the beginning of a string, truncated at a character boundary.
std::string Beginning(const gguf::GgufFile& file, const gguf::GgufValue& value) {
  std::string text = file.Text(value, kTextBytes);
  if (text.size() == value.bytes) return text;
  while (!text.empty() && (text.back() & 0xC0) == 0x80) text.pop_back();
  if (!text.empty() && (text.back() & 0x80)) text.pop_back();
  return text + "...";
}

GgufFacts::Value ValueOf(const gguf::GgufFile& file, const gguf::GgufValue& value) {
  switch (value.type) {
    case gguf::GgufType::kString:
      return Beginning(file, value);
    case gguf::GgufType::kArray:
      return fmt::format("{} of {}", value.count, Name(value.element));
    case gguf::GgufType::kBool:
      return file.Integer(value) != 0;
    case gguf::GgufType::kFloat32:
    case gguf::GgufType::kFloat64:
      return file.Number(value);
    default: {
      constexpr double kMost = 0x1p63;  // beyond the range of int64
      if (double number = file.Number(value); number >= kMost) return number;
      return file.Integer(value);
    }
  }
}

}  // namespace

GgufFacts InspectGguf(const std::filesystem::path& path, Diagnostics& diagnostics) {
  const gguf::GgufFile file = gguf::GgufFile::Open(path);
  GgufFacts facts{.version = file.version()};
  for (const auto& part : file.files())
    facts.files.push_back({part->path().filename().string(), part->size()});
  for (const auto& [key, value] : file.metadata()) {
    GgufFacts::Entry entry{key, std::string(Name(value.element)),
                           value.type == gguf::GgufType::kArray, value.count};
    if (entry.array) {
      for (const gguf::GgufValue& element : file.Elements(value, kElements))
        entry.values.push_back(ValueOf(file, element));
    } else {
      entry.values = {ValueOf(file, value)};
    }
    if (key == "general.architecture" && value.type == gguf::GgufType::kString)
      facts.architecture = file.Text(value, kTextBytes);
    facts.metadata.push_back(std::move(entry));
  }
  for (const gguf::GgufTensor& tensor : file.tensors()) {
    std::string type(tensor.type->name);
    for (GgufFacts::Total* total : {&facts.total, &facts.by_type[type]}) {
      ++total->tensors;
      total->elements += static_cast<double>(tensor.elements());
      total->bytes += tensor.bytes;
    }
    facts.weights.push_back({tensor.name, std::move(type), tensor.dims, tensor.bytes});
  }
  try {
    facts.program = std::make_shared<const Program>(Import(path, {}, diagnostics));
  } catch (const Error& error) {
    facts.problems = {error};
  } catch (const Errors& errors) {
    facts.problems = errors.errors();
  }
  return facts;
}

}  // namespace mlc::driver

#include "tools/driver/inspect_files.h"

#include "frontends/gguf/file.h"
#include "frontends/safetensors/folder.h"
#include "tools/driver/import.h"

namespace mlc::driver {
namespace {

void AddWeight(FileFacts::Weight weight, FileFacts& facts) {
  double elements = 1;
  for (int64_t size : weight.dims) elements *= static_cast<double>(size);
  for (FileFacts::Total* total : {&facts.total, &facts.by_type[weight.type]}) {
    ++total->tensors;
    total->elements += elements;
    total->bytes += weight.bytes;
  }
  facts.weights.push_back(std::move(weight));
}

void ImportProgram(const std::filesystem::path& path, FileFacts& facts, Diagnostics& diagnostics) {
  try {
    facts.program = std::make_shared<const Program>(Import(path, {}, diagnostics));
  } catch (const Error& error) {
    facts.problems = {error};
  } catch (const Errors& errors) {
    facts.problems = errors.errors();
  }
}

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
  GgufFacts facts;
  facts.version = file.version();
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
  for (const gguf::GgufTensor& tensor : file.tensors())
    AddWeight({tensor.name, std::string(tensor.type->name), tensor.dims, tensor.bytes}, facts);
  ImportProgram(path, facts, diagnostics);
  return facts;
}

FolderFacts InspectFolder(const std::filesystem::path& path, Diagnostics& diagnostics) {
  const safetensors::Folder folder = safetensors::Folder::Open(path);
  FolderFacts facts;
  facts.architecture = folder.architecture();
  facts.model_type = folder.model_type();
  for (const std::string& key : folder.config().keys())
    facts.config.emplace_back(key, folder.config().Json(key));
  for (const std::filesystem::path& file : folder.paths())
    facts.files.push_back({file.filename().string(), std::filesystem::file_size(file)});
  for (const std::string& name : folder.names()) {
    safetensors::Folder::Item item = folder.item(name);
    AddWeight({item.name, item.type, std::move(item.dims), item.bytes, std::move(item.problem)},
              facts);
  }
  if (!facts.model_type.empty()) ImportProgram(path, facts, diagnostics);
  return facts;
}

}  // namespace mlc::driver

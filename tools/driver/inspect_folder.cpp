#include "tools/driver/inspect_folder.h"

#include "frontends/safetensors/folder.h"
#include "tools/driver/import.h"

namespace mlc::driver {

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
    FolderFacts::Total one{1, 1, item.bytes};
    for (int64_t size : item.dims) one.elements *= static_cast<double>(size);
    for (FolderFacts::Total* total : {&facts.total, &facts.by_type[item.type]}) {
      total->tensors += one.tensors;
      total->elements += one.elements;
      total->bytes += one.bytes;
    }
    facts.weights.push_back(
        {item.name, item.type, std::move(item.dims), item.bytes, std::move(item.problem)});
  }
  if (facts.model_type.empty()) return facts;
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

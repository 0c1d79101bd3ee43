#include "lib/coreml/package_layout.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "lib/support/byte_window.h"
#include "lib/support/error.h"
#include "lib/support/hash.h"
#include "lib/support/mapped_file.h"
#include "lib/support/regular_file.h"

namespace mlc::coreml {

namespace fs = std::filesystem;

bool StaysInside(const fs::path& path) {
  if (path.empty() || path.is_absolute() || path.native().find('\0') != std::string::npos)
    return false;
  return std::none_of(path.begin(), path.end(), [](const fs::path& part) { return part == ".."; });
}

PackageItems ReadPackageItems(const fs::path& package) {
  fs::path manifest = package / kPackageManifest;
  std::shared_ptr<const MappedFile> file = MappedFile::Open(manifest);
  auto fail = [&](std::string text) {
    return Error("bad-file", std::move(text)).At({manifest.string(), ""});
  };
  constexpr size_t kMaxManifest = 1 << 20;
  if (file->bytes().size() > kMaxManifest) throw fail("the package manifest exceeds one megabyte");
  nlohmann::json json = nlohmann::json::parse(AsText(file->bytes()), nullptr, false);
  if (!json.is_object() || !json.contains("rootModelIdentifier") ||
      !json["rootModelIdentifier"].is_string() || !json.contains("itemInfoEntries") ||
      !json["itemInfoEntries"].is_object())
    throw fail("not a package manifest: it needs rootModelIdentifier and itemInfoEntries");
  PackageItems items;
  items.root = json["rootModelIdentifier"].get<std::string>();
  for (const auto& [id, item] : json["itemInfoEntries"].items()) {
    if (!item.is_object() || !item.contains("path") || !item["path"].is_string()) continue;
    fs::path path = item["path"].get<std::string>();
    if (id == items.root && !StaysInside(path))
      throw fail(fmt::format("the root model is outside the package: \"{}\"", path.string()));
    if (id == items.root) items.model = package / kPackageData / path;
    if (StaysInside(path)) items.paths.push_back(package / kPackageData / path);
  }
  if (items.model.empty()) throw fail("the root model is not an item of the manifest");
  return items;
}

std::map<std::string, fs::path> PackageFiles(const fs::path& package) {
  constexpr int kMostEntries = 100000, kDeepest = 32;
  std::map<std::string, fs::path> files;
  try {
    auto walk = fs::directory_options::follow_directory_symlink;
    int entries = 0;
    for (auto it = fs::recursive_directory_iterator(package, walk);
         it != fs::recursive_directory_iterator(); ++it) {
      if (++entries > kMostEntries || it.depth() > kDeepest)
        throw Error("resource-limit", "\"{}\" has more than {} entries or {} levels",
                    package.string(), kMostEntries, kDeepest)
            .At({package.string(), ""})
            .Help("check for symbolic links to an enclosing folder");
      std::error_code nowhere;  // a cyclic link counts as dangling
      if (it->is_regular_file(nowhere))
        files[it->path().lexically_relative(package).generic_string()] = it->path();
    }
  } catch (const fs::filesystem_error& error) {
    throw Error("file-io", error.what())
        .At({package.string(), ""})
        .Help("make all files in it readable");
  }
  return files;
}

std::string PackageHash(const fs::path& package) {
  Xxh3 hash;
  constexpr size_t kWindow = 1 << 20;
  for (const auto& [name, path] : PackageFiles(package)) {
    hash.Update(name);
    std::shared_ptr<const MappedFile> file = MappedFile::Open(path);
    ByteWindow bytes(*file);
    for (size_t offset = 0; offset < file->size(); offset += kWindow) {
      size_t size = std::min(kWindow, file->size() - offset);
      hash.Update(bytes.At(offset, size));
      file->Release(offset, size);
    }
  }
  return hash.Hex();
}

std::optional<int64_t> FixedSize(const Dim& dim, const Symbols& symbols) {
  bool open = dim.HasSymbol([&](const std::string& name) {
    auto symbol = symbols.find(name);
    return symbol == symbols.end() || symbol->second.low != symbol->second.high;
  });
  return open ? std::nullopt : dim.Smallest(symbols);
}

}  // namespace mlc::coreml

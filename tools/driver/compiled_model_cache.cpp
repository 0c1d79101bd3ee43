#include "tools/driver/compiled_model_cache.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <fstream>

#include "lib/coreml/package_layout.h"
#include "lib/support/build_id.h"
#include "lib/support/float_text.h"
#include "lib/support/temporary_folder.h"
#include "lib/support/work_scope.h"
#include "tools/driver/frontends.h"
#include "tools/driver/version.h"

namespace fs = std::filesystem;

namespace mlc::driver {
namespace {

struct Suffix {
  std::string_view name;
  double bytes;
};
constexpr std::array<Suffix, 10> kSuffixes{{{"", 1},
                                            {"B", 1},
                                            {"kB", 1e3},
                                            {"KB", 1e3},
                                            {"MB", 1e6},
                                            {"GB", 1e9},
                                            {"TB", 1e12},
                                            {"KiB", 1024.0},
                                            {"MiB", 1024.0 * 1024},
                                            {"GiB", 1024.0 * 1024 * 1024}}};

fs::path BundleName(const fs::path& package) {
  return package.filename().replace_extension(".mlmodelc");
}

}  // namespace

uint64_t ParseBytes(std::string_view what, std::string_view text) {
  constexpr double kMost = 1e18;
  double value = 0;
  const auto [end, error] = FloatFromChars(text.data(), text.data() + text.size(), value);
  std::string_view rest(end, static_cast<size_t>(text.data() + text.size() - end));
  while (rest.starts_with(' ')) rest.remove_prefix(1);
  for (const Suffix& suffix : kSuffixes)
    if (error == std::errc() && suffix.name == rest && value >= 0 && value * suffix.bytes <= kMost)
      return static_cast<uint64_t>(value * suffix.bytes);
  throw Error("usage", "{}: \"{}\" is not a number of bytes", what, text)
      .Expected("5000000, 500MB or 20GB");
}

std::string BytesText(uint64_t bytes) {
  for (const Suffix& suffix : {Suffix{"GB", 1e9}, Suffix{"MB", 1e6}, Suffix{"kB", 1e3}})
    if (static_cast<double>(bytes) >= suffix.bytes)
      return fmt::format("{:.2f} {}", static_cast<double>(bytes) / suffix.bytes, suffix.name);
  return fmt::format("{} B", bytes);
}

fs::path DefaultCacheFolder() {
  auto variable = [](const char* name) {
    const char* value = std::getenv(name);
    return fs::path(value ? value : "");
  };
  if (fs::path folder = variable("MLC_CACHE_DIR"); !folder.empty()) return folder;
#ifndef __APPLE__
  // The XDG Base Directory Specification says to ignore relative paths.
  if (fs::path folder = variable("XDG_CACHE_HOME"); folder.is_absolute()) return folder / "mlc";
  const fs::path below = fs::path(".cache") / "mlc";
#else
  // Core ML uses ~/Library/Caches/NAME_OF_THE_TOOL for its own cache.
  const fs::path below = fs::path("Library") / "Caches" / "mlc-models";
#endif
  const fs::path home = variable("HOME");
  if (home.empty())
    throw Error("file-io", "the cache folder is unknown: HOME is not set")
        .Help("set MLC_CACHE_DIR to a folder");
  return home / below;
}

uint64_t CacheLimit() {
  const char* limit = std::getenv("MLC_CACHE_LIMIT");
  return limit && *limit ? ParseBytes("MLC_CACHE_LIMIT", limit) : cache::FolderCache::kDefaultLimit;
}

std::unique_ptr<cache::FolderCache> OpenCache(const fs::path& folder) {
  return std::make_unique<cache::FolderCache>(folder.empty() ? DefaultCacheFolder() : folder,
                                              CacheLimit());
}

std::unique_ptr<cache::FolderCache> OpenExistingCache(const fs::path& folder) {
  return cache::FolderCache::Exists(folder.empty() ? DefaultCacheFolder() : folder)
             ? OpenCache(folder)
             : nullptr;
}

bool CanBeCached(const fs::path& model) {
  if (fs::is_directory(model)) return true;
  // File names in a protobuf are stored as plain bytes.
  constexpr size_t kPiece = 1 << 20;
  std::ifstream file(model, std::ios::binary);
  std::string text;
  for (std::string piece(kPiece, '\0'); file.good();) {
    file.read(piece.data(), kPiece);
    text.append(piece, 0, static_cast<size_t>(file.gcount()));
    if (text.find(coreml::kModelPath) != text.npos) return false;
    text.erase(0, text.size() - std::min(text.size(), coreml::kModelPath.size()));
  }
  return file.eof();
}

cache::CacheKey KeyOfCompiled(cache::FolderCache& cache, const fs::path& package,
                              std::string_view maker,
                              const std::vector<std::pair<std::string, std::string>>& options) {
  cache::CacheKey key;
  key.Add("model", package.filename().string());
  key.Add("maker", maker);
  for (const auto& [name, value] : options) key.Add(name, value);
  key.Add("mlc", kVersion);
  key.Add("build", BuildName());
  if (fs::is_directory(package)) {
    for (const auto& [name, path] : coreml::PackageFiles(package)) cache.AddFile(key, name, path);
  } else {
    cache.AddFile(key, package.filename().string(), package);
  }
  return key;
}

CompiledModel CompiledFor(runtime::Runtime& runtime, const fs::path& given, runtime::Units units,
                          cache::FolderCache* cache, std::vector<Error>* faults) {
  const fs::path model = given.has_filename() ? given : given.parent_path();
  const Frontend& frontend = FrontendOf(model);
  if (frontend.format == Format::kBundle) return {.path = model};
  if (frontend.format != Format::kPackage && frontend.format != Format::kMlmodel)
    throw Error("usage", "\"{}\" is {}", model.string(), frontend.what)
        .Expected("a .mlpackage")
        .Help("`mlc compile` makes a package from it");
  if (cache && CanBeCached(model)) try {
      const runtime::Capabilities found = runtime.capabilities();
      const cache::CacheKey key = KeyOfCompiled(*cache, model, found.runtime,
                                                {{"runtime version", found.runtime_version},
                                                 {"os", found.os},
                                                 {"os build", found.os_build},
                                                 {"units", std::string(Name(units))}});
      cache::FolderCache::Entry entry =
          cache->FindOrMake(key, BundleName(model).string(),
                            [&](const fs::path& into) { runtime.Compile(model, into); });
      return {entry.path, !entry.hit, entry.seconds, entry.held};
    } catch (const Error& error) {
      // The disk of the cache may be full.
      if (error.id() != "file-io" || !faults) throw;
      faults->push_back(error);
    }
  auto folder = std::make_shared<TemporaryFolder>();
  const fs::path bundle = folder->path / BundleName(model);
  const auto begin = std::chrono::steady_clock::now();
  runtime.Compile(model, bundle);
  const double seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  return {bundle, true, seconds, folder};
}

CompiledModel CompiledWithin(runtime::Worker::Timeout limit,
                             std::shared_ptr<runtime::Runtime> runtime, const fs::path& model,
                             runtime::Units units, Diagnostics& diagnostics) {
  struct Made {
    CompiledModel compiled;
    std::vector<Error> faults;
  };
  Made made = runtime::Worker().Run(
      [runtime = std::move(runtime), model, units, folder = WorkScope::Current().cache_folder] {
        Made made;
        std::unique_ptr<cache::FolderCache> cache;
        try {
          cache = OpenCache(folder ? *folder : fs::path());
        } catch (const Error& error) {
          if (error.id() != "file-io" && error.id() != "file-exists") throw;
          made.faults.push_back(error);
        }
        made.compiled = CompiledFor(*runtime, model, units, cache.get(), &made.faults);
        return made;
      },
      limit);
  for (const Error& fault : made.faults)
    diagnostics.Note("compiled models are not cached: {}", fault.text());
  return std::move(made.compiled);
}

}  // namespace mlc::driver

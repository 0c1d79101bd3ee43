#include "tools/driver/precompile.h"

#include "backends/coreml/write_mlmodelc.h"
#include "frontends/coreml/coreml.h"
#include "lib/support/atomic_install.h"
#include "lib/support/input_registry.h"
#include "tools/driver/compiled_model_cache.h"
#include "tools/driver/frontends.h"
#include "tools/driver/tokenizer.h"

namespace fs = std::filesystem;

namespace mlc::driver {
namespace {

// Installs a copy, because files in the cache must not be modified.
void InstallCopy(const fs::path& bundle, const fs::path& output, bool force) {
  coreml::CheckBundleTarget(output, force);
  Staging staging(output, Staging::kFolder, force);
  try {
    fs::copy(bundle, staging.path(), fs::copy_options::recursive);
    for (const fs::directory_entry& entry : fs::recursive_directory_iterator(staging.path()))
      fs::permissions(entry.path(), fs::perms::owner_write, fs::perm_options::add);
  } catch (const fs::filesystem_error& error) {
    throw Error("file-io", error.what());
  }
  staging.Commit();
}

// Error "file-exists" for an output that is a cache or inside of one.
void CheckNotCached(const fs::path& output) {
  std::error_code error;
  fs::path folder = fs::weakly_canonical(fs::absolute(output), error);
  for (; !folder.empty(); folder = folder.parent_path()) {
    if (cache::FolderCache::HasMarker(folder))
      throw Error("file-exists", "-o: \"{}\" is in the cache of compiled models \"{}\"",
                  output.string(), folder.string())
          .Help("choose another output path");
    if (!folder.has_relative_path()) break;
  }
}

// Returns whether the bundle was cached.
bool MakeOrCopy(const fs::path& package, const fs::path& output, const PrecompileOptions& options,
                Diagnostics& diagnostics) {
  if (options.cache.empty() || !CanBeCached(package)) {
    MakeBundle(package, output, package, false, options, diagnostics);
    return false;
  }
  coreml::CheckBundleTarget(output, options.force);  // fails early
  // Prevents creating the cache inside of the package.
  if (fs::is_directory(package)) InputRegistry::AddFolder(package);
  std::unique_ptr<cache::FolderCache> cache = OpenCache(options.cache);
  CheckNotCached(output);
  const cache::CacheKey key = KeyOfCompiled(
      *cache, package, "mlc precompile",
      {{"compiler version", options.versions.compiler}, {"mil version", options.versions.mil}});
  const cache::FolderCache::Entry entry = cache->FindOrMake(
      key, package.filename().replace_extension(".mlmodelc").string(), [&](const fs::path& into) {
        MakeBundle(package, into, package, false, options, diagnostics);
      });
  InstallCopy(entry.path, output, options.force);
  return entry.hit;
}

}  // namespace

bool Precompile(const fs::path& package, const fs::path& output, const PrecompileOptions& options,
                Diagnostics& diagnostics) {
  const Frontend& frontend = FrontendOf(package);
  if (frontend.format == Format::kBundle)
    throw Error("usage", "\"{}\" is already a compiled bundle", package.string())
        .Expected("a .mlpackage");
  if (frontend.format != Format::kPackage && frontend.format != Format::kMlmodel)
    throw Error("usage", "\"{}\" is {}", package.string(), frontend.what)
        .Expected("a .mlpackage")
        .Help("`mlc compile` makes a package from it");
  if (output.extension() != ".mlmodelc")
    throw Error("usage", "-o: \"{}\" does not end in .mlmodelc", output.string());
  CheckNotCached(output);
  // A bundle with the package's name and folder shares the package's tokenizer file.
  TokenizerInstallation tokenizer = CopyTokenizer(package, output, options.force);
  const bool cached = MakeOrCopy(package, output, options, diagnostics);
  tokenizer.Commit();
  return cached;
}

void MakeBundle(const fs::path& package, const fs::path& output, const fs::path& name,
                bool take_weights, const PrecompileOptions& options, Diagnostics& diagnostics) {
  const auto report = [&](std::string_view step) {
    if (options.progress) options.progress({.name = step, .share = kUnknownShare});
  };
  report("importing");
  Program program = coreml::ImportCoreml(package, diagnostics);
  report(take_weights ? "writing the bundle" : "copying weights");
  coreml::WriteBundle(program, ModelFolder(package), output,
                      {.class_name = name.stem().string(),
                       .compiler_version = options.versions.compiler,
                       .mil_version = options.versions.mil,
                       .force = options.force,
                       .take_weights = take_weights},
                      diagnostics);
}

}  // namespace mlc::driver

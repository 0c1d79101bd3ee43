#include "tools/driver/build_cache.h"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <utility>

#include "lib/support/hash.h"
#include "lib/support/input_registry.h"
#include "tools/driver/compiled_model_cache.h"
#include "tools/driver/errors.h"
#include "tools/driver/options.h"

namespace fs = std::filesystem;

namespace mlc::driver {
namespace {

cache::HttpOptions OptionsOfEnvironment() {
  auto variable = [](const char* name) {
    const char* value = std::getenv(name);
    return std::string(value ? value : "");
  };
  cache::HttpOptions options{.header = variable("MLC_CACHE_HEADER")};
  if (const std::string text = variable("MLC_CACHE_TIMEOUT"); !text.empty()) {
    constexpr double kMost = 86400;
    options.stall_timeout = std::chrono::seconds(static_cast<int64_t>(
        NumberWithin("MLC_CACHE_TIMEOUT", text, 1, kMost, "seconds, from 1 to 86400")));
    options.connect_timeout = std::min(options.connect_timeout, options.stall_timeout);
  }
  return options;
}

// Copies a file or folder; the copies can be modified.
void CopyWritable(const fs::path& from, const fs::path& to) {
  fs::copy(from, to, fs::copy_options::recursive);
  for (const fs::directory_entry& entry : fs::recursive_directory_iterator(to))
    fs::permissions(entry.path(), fs::perms::owner_write, fs::perm_options::add);
}

}  // namespace

BuildCache::BuildCache(const CacheOptions& options) : options_(options) {
  if (cache::HttpCache::IsUrl(options.place)) {
    http_ = std::make_unique<cache::HttpCache>(options.place, OptionsOfEnvironment());
  } else if (options.place.find("://") != std::string::npos) {
    throw Error("usage", "\"{}\" is not a cache", options.place)
        .Expected("a folder, or http(s)://HOST/PREFIX");
  } else if (!options.read_only) {
    try {
      folder_ = OpenCache(options.place);
    } catch (const Error& error) {
      if (error.id() != "file-io") throw;
      Fail(error);
    } catch (const fs::filesystem_error& error) {
      Fail(Error("file-io", error.what()));
    }
  }
}

void BuildCache::Fail(const Error& error) {
  Error warning("remote-cache", "the cache \"{}\" is not used: {}", options_.place, error.text());
  if (error.has_location()) warning.At(error.location());
  for (const std::string& note : error.notes()) warning.Note(note);
  warnings_.push_back(std::move(warning));
  options_.place.clear();
  folder_.reset();
  http_.reset();
}

std::vector<Error> BuildCache::TakeWarnings() { return std::exchange(warnings_, {}); }

bool BuildCache::Fetch(const cache::CacheKey& key, std::string_view action, const fs::path& into) {
  if (options_.place.empty()) return false;
  if (folder_) {
    std::optional<cache::FolderCache::Entry> entry;
    try {
      entry = folder_->Find(key, action);
    } catch (...) {
      Fail(CurrentErrors().at(0));
    }
    return entry && Copy(*entry, action, into);
  }
  // Here, what fails may be the disk of the outputs. Then making the result fails as well, and says so.
  const fs::path parent = into.parent_path() / (into.filename().string() + ".fetched");
  bool found = false;
  try {
    fs::create_directory(parent);
    found = (http_ ? http_->Fetch(key, action, parent)
                   : cache::ReadEntry(options_.place, key, action, parent))
                .has_value();
    if (found) fs::rename(parent / action, into);
  } catch (...) {
    found = false;
    Fail(CurrentErrors().at(0));
  }
  std::error_code ignored;
  fs::remove_all(parent, ignored);
  return found;
}

// Returns false, with a warning, if the copy is damaged. Error "file-io" if it cannot be written.
bool BuildCache::Copy(const cache::FolderCache::Entry& entry, std::string_view action,
                      const fs::path& into) {
  CopyWritable(entry.path, into);
  if (cache::SameFiles(into.parent_path(), action, entry.files)) return true;
  fs::remove_all(into);
  Fail(Error("file-io", "the copy of a result differs from the original")
           .At({entry.path.string(), ""}));
  return false;
}

bool BuildCache::FetchOrMake(const cache::CacheKey& key, std::string_view action,
                             const fs::path& into,
                             const std::function<void(const fs::path&)>& make) {
  if (folder_) {
    std::optional<cache::FolderCache::Entry> entry;
    try {
      entry = folder_->FindOrMake(key, action, make);
    } catch (const Error& error) {
      // The disk of the cache may be full. What is wrong with an input is wrong without a cache, too.
      if (error.id() != "file-io") throw;
      Fail(error);
    } catch (const fs::filesystem_error& error) {
      Fail(Error("file-io", error.what()));
    }
    if (entry && Copy(*entry, action, into)) return entry->hit;
    make(into);
    return false;
  }
  const auto begin = std::chrono::steady_clock::now();
  make(into);
  if (!http_ || options_.read_only) return false;
  try {
    cache::ActionRecord record{.name = std::string(action), .parts = key.parts()};
    record.seconds =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    record.made = std::chrono::duration_cast<std::chrono::seconds>(
                      std::chrono::system_clock::now().time_since_epoch())
                      .count();
    InputRegistry::Unnoted unnoted;
    for (const auto& [path, file] : cache::FilesBelow(into))
      record.files.push_back(
          {(fs::path(action) / path).generic_string(), Sha256OfFile(file), fs::file_size(file)});
    http_->Store(key, record, into.parent_path());
  } catch (...) {
    Fail(CurrentErrors().at(0));
  }
  return false;
}

}  // namespace mlc::driver

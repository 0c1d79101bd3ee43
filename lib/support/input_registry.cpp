#include "lib/support/input_registry.h"

#include <map>
#include <mutex>
#include <utility>

#include "lib/support/error.h"

namespace mlc {

namespace fs = std::filesystem;

namespace {

using Id = std::pair<dev_t, ino_t>;
Id IdOf(const struct stat& info) { return {info.st_dev, info.st_ino}; }

struct Noted {
  fs::path path;
  struct stat info;
};
struct Notes {
  std::mutex mutex;
  bool active = false;
  std::map<Id, Noted> read;      // files, and folders read as a unit
  std::map<Id, fs::path> above;  // enclosing folders, each with one path read below it
};
// Never destroyed: abandoned threads outlive static objects.
Notes& AllNotes() {
  static auto* notes = new Notes;
  return *notes;
}
thread_local int unnoted = 0;

// Calls fn(stat) for every folder that encloses `path`, both as written and with links resolved.
template <class Fn>
void ForEachAbove(const fs::path& path, Fn&& fn) {
  std::error_code error;
  for (const fs::path& spelling : {fs::absolute(path, error), fs::weakly_canonical(path, error)}) {
    fs::path at = spelling.has_filename() ? spelling : spelling.parent_path();
    while (at.has_relative_path()) {
      at = at.parent_path();
      if (struct stat info; stat(at.c_str(), &info) == 0) fn(info);
    }
  }
}

time_t Seconds(const struct stat& info) { return info.st_mtime; }
long Nanoseconds(const struct stat& info) {
#ifdef __APPLE__
  return info.st_mtimespec.tv_nsec;
#else
  return info.st_mtim.tv_nsec;
#endif
}

void Add(const fs::path& path, const struct stat& info) {
  Notes& notes = AllNotes();
  std::lock_guard lock(notes.mutex);
  if (!notes.active || unnoted > 0 || !notes.read.emplace(IdOf(info), Noted{path, info}).second)
    return;
  ForEachAbove(path, [&](const struct stat& folder) { notes.above.emplace(IdOf(folder), path); });
}

// Returns whether a recorded path still leads to what was read there. File systems give the inode of
// a removed file to the next one.
bool Stands(const fs::path& path, const Id& id) {
  struct stat info;
  return stat(path.c_str(), &info) == 0 && IdOf(info) == id;
}

// Returns the record of a file or folder, or the end of `read`.
std::map<Id, Noted>::const_iterator Find(const Notes& notes, const struct stat& info) {
  const auto it = notes.read.find(IdOf(info));
  return it != notes.read.end() && Stands(it->second.path, it->first) ? it : notes.read.end();
}

Error Overwrites(const fs::path& target, std::string why) {
  return Error("overwrites-input", "\"{}\" cannot be written: {}", target.string(), why)
      .Help("choose another output path");
}

}  // namespace

InputRegistry::InputRegistry() {
  Notes& notes = AllNotes();
  std::lock_guard lock(notes.mutex);
  MLC_CHECK(!notes.active, "only one InputRegistry may exist at a time");
  notes.active = true;
}

InputRegistry::~InputRegistry() {
  Notes& notes = AllNotes();
  std::lock_guard lock(notes.mutex);
  notes.active = false;
  notes.read.clear();
  notes.above.clear();
}

void InputRegistry::AddFile(const fs::path& path, const struct stat& info) { Add(path, info); }

void InputRegistry::AddFolder(const fs::path& path) {
  if (struct stat info; stat(path.c_str(), &info) == 0) Add(path, info);
}

void InputRegistry::CheckTarget(const fs::path& target) {
  Notes& notes = AllNotes();
  std::lock_guard lock(notes.mutex);
  if (!notes.active) return;
  if (struct stat info; stat(target.c_str(), &info) == 0) {
    if (auto it = Find(notes, info); it != notes.read.end())
      throw Overwrites(target,
                       fmt::format("it is the input \"{}\" of this run", it->second.path.string()));
    if (auto it = notes.above.find(IdOf(info)); it != notes.above.end() && fs::exists(it->second))
      throw Overwrites(
          target, fmt::format("it contains the input \"{}\" of this run", it->second.string()));
  }
  ForEachAbove(target, [&](const struct stat& folder) {
    if (auto it = Find(notes, folder); it != notes.read.end())
      throw Overwrites(target, fmt::format("it is inside the input \"{}\" of this run",
                                           it->second.path.string()));
  });
}

void InputRegistry::CheckUnchanged() {
  Notes& notes = AllNotes();
  std::lock_guard lock(notes.mutex);
  for (const auto& [id, noted] : notes.read) {
    struct stat now;
    // If the file was replaced or removed, the open descriptor still has the original contents.
    if (!S_ISREG(noted.info.st_mode) || stat(noted.path.c_str(), &now) != 0 || IdOf(now) != id)
      continue;
    if (now.st_size != noted.info.st_size || Seconds(now) != Seconds(noted.info) ||
        Nanoseconds(now) != Nanoseconds(noted.info))
      throw Error("file-io", "the file was modified while it was being read")
          .At({noted.path.string(), ""})
          .Help("run again when no other process writes to it");
  }
}

InputRegistry::Unnoted::Unnoted() { ++unnoted; }
InputRegistry::Unnoted::~Unnoted() { --unnoted; }

}  // namespace mlc

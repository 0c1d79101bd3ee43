// tools/driver/build_folder.h - what `mlc build` keeps in an output folder to find out what is up to date.
//
// OUT/.mlc-build/
//   state/NAME.json   of each variant that passed: keys, outputs and facts of its actions
//   state/NAME.installing  the outputs that a build began to install; removed when it has recorded its results
//   sources/HASH.json of each source: its files with their hashes
//   index/            digests of files by inode, size and times (lib/cache/file_digests.h)
//   lock/NAME         held while a variant is built
//   lock/.work, lock/.turn  shared while an action runs, exclusive while predictions are timed
//   work/             files under construction (lib/cache/work_folder.h)
//   lock/.users       shared while a process uses the folder
// Everything here may be deleted at any time between builds: the next one starts from scratch. Damaged files count as absent.
#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "lib/cache/action_record.h"
#include "lib/cache/work_folder.h"
#include "lib/support/file_lock.h"
#include "lib/support/temporary_folder.h"
#include "tools/driver/build_record.h"
#include "tools/driver/source_hashes.h"

namespace mlc::driver {

// The last successful build of a variant.
struct BuildState {
  struct Action {
    cache::KeyParts parts;                         // of its key
    std::vector<cache::ActionRecord::File> files;  // its outputs, relative to the output folder
    BuildRecord facts;                             // the members of the record that it determines
  };
  std::map<std::string, Action> actions;  // by name: "package", "checks" ...
};

// Thread-safe.
class BuildFolder {
 public:
  // kAlways creates OUT and OUT/.mlc-build. Otherwise a temporary folder takes its place, with
  // kIfPresent only if it does not exist. Error "file-io", "overwrites-input".
  enum When { kAlways, kIfPresent, kTemporary };
  BuildFolder(std::filesystem::path out, When when);
  // Replaces a temporary folder by OUT/.mlc-build, which keeps what is known about files. Not
  // thread-safe.
  void Create();
  // Removes what Create has created if no variant has passed since and no other process uses it.
  ~BuildFolder();

  const std::filesystem::path& out() const { return out_; }
  cache::FileDigests& digests() { return *digests_; }

  // Waits until no other process builds the variant in this folder.
  FileLock Lock(const std::string& name) const;
  // Held while an action of any variant runs. `alone` waits until no other action runs in this
  // folder, which then waits.
  FileLock Working(bool alone) const;
  std::optional<BuildState> ReadState(const std::string& name) const;
  // Also forgets what was announced.
  void WriteState(const std::string& name, const BuildState& state) const;
  // Announces the outputs of a variant, files and folders of OUT, before the first is installed. They
  // may be replaced by the next build if this one ends before it has written its state.
  void Announce(const std::string& name, const std::set<std::string>& outputs) const;
  std::set<std::string> Announced(const std::string& name) const;
  // The peak memory of the last build of a variant, passed or not; 0 if unknown.
  int64_t PeakMemory(const std::string& name) const;
  void WritePeakMemory(const std::string& name, int64_t bytes) const;

  // The files of a source, with their hashes, if none of them has changed since Remember.
  std::optional<std::vector<SourceFile>> Known(const std::filesystem::path& source,
                                               const std::filesystem::path& data_root);
  void Remember(const std::filesystem::path& source, const std::filesystem::path& data_root,
                const std::vector<SourceFile>& files);

  // Why the outputs differ from what an action wrote: "modified: a.mlpackage/...". Empty if they
  // are the same. Folders among them must contain nothing else.
  std::string Difference(const std::vector<cache::ActionRecord::File>& files);

 private:
  void Open(const std::filesystem::path& folder);
  std::filesystem::path out_, folder_;
  std::unique_ptr<TemporaryFolder> temporary_;
  bool created_ = false, created_out_ = false;
  std::optional<FileLock> used_;
  std::unique_ptr<cache::WorkFolder> work_;
  std::unique_ptr<cache::FileDigests> digests_;
};

}  // namespace mlc::driver

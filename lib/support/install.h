// lib/support/install.h - atomic installation of a file or a folder: readers see the old one or the
// new one, whole.
#pragma once

#include <filesystem>

namespace mlc {

//   Staging staging("out/model.mlpackage", force);
//   ... make a file or a folder at staging.path() ...
//   staging.Commit();
//
// path() lies in a hidden folder beside the target, ".NAME.mlc-PID-N", locked as long as this
// process lives. Making a Staging removes such folders of the same target whose process is dead. A
// process that is killed at any moment leaves the target as it was, or new.
class Staging {
 public:
  // Error "file-io" when the target's folder does not exist or cannot be written. A target that is
  // a symbolic link stands for what it points to. `force` allows Commit to replace the target in
  // two steps where the file system cannot exchange.
  Staging(std::filesystem::path target, bool force);
  // Removes what was not committed, or what the committed one replaced.
  ~Staging();
  Staging(const Staging&) = delete;
  Staging& operator=(const Staging&) = delete;

  const std::filesystem::path& path() const { return path_; }
  const std::filesystem::path& target() const { return target_; }
  // Writes everything through to the disk and puts it in the target's place. Once. Error
  // "file-exists" when there is a target that cannot be exchanged atomically and `force` was not
  // given; then the target is untouched.
  void Commit();

 private:
  std::filesystem::path target_, folder_, path_;
  bool force_;
  int lock_ = -1;  // the folder, opened and locked
};

}  // namespace mlc

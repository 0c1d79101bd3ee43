// frontends/safetensors/tied.h - which of two tensors counts that config.json says are one.
#pragma once

#include <map>
#include <string>
#include <utility>

#include "frontends/safetensors/folder.h"
#include "lib/support/error.h"

namespace mlc {

// transformers 5, modeling_utils.py, tie_weights: a tensor that is tied to another is that one, and
// either may be the one that is stored; where both are stored and differ, each is itself, with a
// warning.
class TiedTensors {
 public:
  // Both must outlive it.
  TiedTensors(const Folder& folder, Diagnostics& diagnostics)
      : folder_(folder), diagnostics_(diagnostics) {}

  // Whether `tied` is a tensor of its own beside `source`: names in the folder, or empty where it has
  // none. Both are read and compared once.
  bool Differ(const std::string& tied, const std::string& source);

 private:
  const Folder& folder_;
  Diagnostics& diagnostics_;
  std::map<std::pair<std::string, std::string>, bool> known_;
};

}  // namespace mlc

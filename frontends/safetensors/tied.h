// frontends/safetensors/tied.h - which of two tied tensors counts.
#pragma once

#include <map>
#include <string>
#include <utility>

#include "frontends/safetensors/folder.h"
#include "lib/support/error.h"

namespace mlc {

// As transformers 5 (modeling_utils.py, tie_weights): tied tensors are one, and either may be
// stored; where both are stored and differ, each is used as it is, with a warning.
class TiedTensors {
 public:
  // Both must outlive it.
  TiedTensors(const Folder& folder, Diagnostics& diagnostics)
      : folder_(folder), diagnostics_(diagnostics) {}

  // Whether `tied` differs from `source`; both are names in the folder, or empty. The tensors are
  // compared once.
  bool Differ(const std::string& tied, const std::string& source);

 private:
  const Folder& folder_;
  Diagnostics& diagnostics_;
  std::map<std::pair<std::string, std::string>, bool> known_;
};

}  // namespace mlc

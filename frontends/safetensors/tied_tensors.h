// frontends/safetensors/tied_tensors.h - decides which of two tied tensors is used.
#pragma once

#include <map>
#include <string>
#include <utility>

#include "frontends/safetensors/folder.h"
#include "lib/support/error.h"

namespace mlc::safetensors {

// Follows transformers 5 (modeling_utils.py, tie_weights): tied tensors are one tensor, and either
// may be stored; if both are stored and differ, each is used as stored, with a warning (without one if
// an adapter changed one of them).
class TiedTensors {
 public:
  // Both arguments must outlive the object.
  TiedTensors(const Folder& folder, Diagnostics& diagnostics)
      : folder_(folder), diagnostics_(diagnostics) {}

  // Returns whether `tied` differs from `source`; each is the name of a tensor in the folder, or
  // empty. The tensors are compared only once.
  bool Differ(const std::string& tied, const std::string& source);

 private:
  const Folder& folder_;
  Diagnostics& diagnostics_;
  std::map<std::pair<std::string, std::string>, bool> known_;
};

}  // namespace mlc::safetensors

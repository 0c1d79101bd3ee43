// frontends/safetensors/folder_weights.h - the tensors of a folder by the names of a network.
#pragma once

#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "frontends/safetensors/folder.h"
#include "lib/networks/layers.h"

namespace mlc::safetensors {

// A name of a network, or the beginning of one before a dot, and what folders have in its place;
// {} is a number, the same on both sides, or one more where `theirs` has {+1}. A network's name may
// have several rows.
struct TensorName {
  std::string_view ours, theirs;
};

// Finds tensors, and keeps which of them were used.
class FolderWeights {
 public:
  // A name is looked up with each of `prefixes` ("vit.", ""), and with each row of `names` that
  // matches it, in order; without a row, folders have the network's own name. `folder` must outlive
  // the object.
  FolderWeights(const Folder& folder, std::vector<std::string> prefixes,
                std::vector<TensorName> names);

  // Returns the tensor as it is stored; empty if there is none.
  Tensor Find(const std::string& ours);
  bool Has(const std::string& ours) const { return !Stored(ours).empty(); }
  // Returns the name in the folder; the first possible one if there is no such tensor.
  std::string Name(const std::string& ours) const;
  // Marks a tensor of this name in the folder as used.
  void Use(const std::string& stored) { used_.insert(folder_.stored_name(stored)); }
  // Uses the object, which must outlive the result.
  networks::NetworkWeights ForNetwork();

  // Throws the error "unused-tensor" if tensors of the folder were not used, other than those that
  // `is_left_over` names: training needs these, and the network does not. Training also leaves
  // position_ids and num_batches_tracked behind in every folder. A tensor without elements, such as
  // the registers of a model that has none, counts as used.
  void CheckAllUsed(bool (*is_left_over)(std::string_view name) = nullptr) const;

 private:
  std::vector<std::string> Possible(const std::string& ours) const;
  std::string Stored(const std::string& ours) const;

  const Folder& folder_;
  std::vector<std::string> prefixes_;
  std::vector<TensorName> names_;
  std::set<std::string> used_;
};

}  // namespace mlc::safetensors

// lib/networks/low_rank.h - changes of low rank to the weights of a model, of which adapters consist
// (Hu et al. 2021, "LoRA: Low-rank adaptation of large language models"; Liu et al. 2024, "DoRA:
// Weight-decomposed low-rank adaptation").
//
// A weight is a matrix of `rows`, its first dimension, and `columns`, the product of the others:
//
//   changed = weight + scale * up * down                          LoRA
//   changed = magnitude * V / |V|, V = weight + scale * up * down DoRA; |V| is the length of each row
#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "lib/ir/import_options.h"
#include "lib/ir/tensor.h"
#include "lib/support/error.h"

namespace mlc::networks {

struct LowRank {
  std::string weight;  // the name of the tensor in the source
  Tensor down, up;     // [rank, columns], [rows, rank]; floats
  double scale = 1;
  Tensor magnitude = {};  // of DoRA, [rows]; empty for LoRA
  // The outputs of the layer are the columns of the stored weight, so that the magnitudes, and the
  // lengths, are those of columns.
  bool outputs_are_columns = false;
};

struct Adapter {
  std::vector<LowRank> pairs;  // sorted by weight; their scales include that of the option
  std::map<std::string, Tensor> whole = {};  // tensors that replace those of the source, by name
  std::vector<std::filesystem::path> files;  // all that were read
};

// Throws Error "bad-tensor" unless the parts fit a weight of these dims. `subject` begins the message.
void CheckLowRank(const LowRank& pair, const Dims& dims, const std::string& subject);
// Returns the changed weight: fp32, computed in fp32 while it is read. The parts must fit.
Tensor Changed(const Tensor& weight, const LowRank& pair);
// Returns the last component of the adapter's path.
std::string NameOf(const ImportOptions::Lora& lora);
// Returns the tensors that an adapter replaces or changes, by name, except for the changes of lora.apart.
// `find` returns tensors of the source. States what was merged.
std::map<std::string, Tensor> Merged(const Adapter& adapter, const ImportOptions::Lora& lora,
                                     const std::function<Tensor(const std::string&)>& find,
                                     Diagnostics& diagnostics);

}  // namespace mlc::networks

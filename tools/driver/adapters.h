// tools/driver/adapters.h - imports a model with adapters of low rank.
//
//   --lora A --lora B               both are merged into the weights
//   --lora A --lora-inputs          the pairs of A become inputs, which an app fills (lora.h)
//   --lora A --lora B --functions   function `main` is the model itself; each adapter adds a function of its
//                                   name, over the same weights
#pragma once

#include <filesystem>

#include "lib/ir/import_options.h"
#include "lib/ir/source_facts.h"
#include "tools/driver/frontends.h"

namespace mlc::driver {

// Imports a model with options.loras. The inputs of --lora-inputs are optional and 0 by default, with which
// the model computes what it does without the adapter. In functions, a pair is constants beside the weight
// where layers multiply by the weight as it is stored; other weights that an adapter changes become dense
// constants of its function. Errors of the frontend; "usage" for options that exclude each other, for
// adapters of one name, and for adapters that cannot be inputs.
Program ImportWithAdapters(const Frontend& frontend, const std::filesystem::path& path,
                           const ImportOptions& options, Diagnostics& diagnostics,
                           SourceFacts* facts);

}  // namespace mlc::driver

// lib/ir/import_options.h - what is asked of a source model when it is imported, whatever its format.
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "lib/ir/program.h"

namespace mlc {

struct ImportOptions {
  std::map<std::string, Dims> shapes;  // of inputs: all sizes
  std::map<std::string, Symbol> dims;  // of symbols (low == high: fixed)
  // Of inputs that become constants: what the type that the input declares holds exactly.
  std::map<std::string, Tensor> constants;
  std::vector<std::string> outputs;  // any values of the source; empty: the model's own
  struct Replacement {
    std::string op, attribute, value;  // of each operator of the source; a list is written 1,2,3
  };
  std::vector<Replacement> replacements;
  // An input is an image; the model gets pixel * scale + bias.
  struct Image {
    Port::Feature feature = Port::Feature::kImageRgb;
    std::vector<float> scale = {1}, bias = {0};  // one, or one per channel
  };
  std::map<std::string, Image> images;
  // The type of float inputs and outputs; kNone: as in the source. Images have their own.
  DType io = DType::kNone;
  // What it lacks is not made where something older does the same. Absent: anything.
  std::optional<Opset> target;
  // Where external data is looked up that is not beside the model, and where links of it may lead.
  // Empty: none.
  std::filesystem::path data_root;
  // Of language models: who runs the package, "swift" (swift-transformers), and for how many tokens;
  // absent: 2048, or as many as the model was made for.
  std::string runtime = "swift";
  std::optional<int64_t> context;
  // Of language models: the quantiser (lib/compress/quantisers.h) for their matrices; empty: as the
  // source has them.
  std::string requant;
};

}  // namespace mlc

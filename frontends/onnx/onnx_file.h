// frontends/onnx/onnx_file.h - an ONNX file that is edited as such, without being imported:
// parts of it are cut out, constants and sizes simplified.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "lib/ir/model_graph.h"
#include "lib/ir/type.h"

namespace mlc::onnx {

// Immutable; copies share the model, and edited models share the tensors. Constant nodes count as
// constants, and subgraphs are parts of their nodes.
class OnnxFile {
 public:
  // Types are those that the file declares and that ONNX's shape inference adds. Error "bad-file",
  // "file-io", or "too-large" for a file of 2 GiB or more. External data is read by Write.
  static OnnxFile Read(const std::filesystem::path& path,
                       const std::filesystem::path& data_root = {});

  ModelGraph Graph() const;
  // Those of the values whose type or shape is unknown; and the model with their types: the
  // element type if it was unknown, and the shape, whose dimensions are numbers or symbols.
  std::vector<std::string> Untyped(const std::vector<std::string>& values) const;
  OnnxFile WithTypes(const std::map<std::string, Type>& types) const;
  int64_t node_count() const;  // with those of subgraphs

  // The nodes that the outputs need (CheckPart or PartWithout must accept the part). Error
  // "bad-name" if the type or shape of a new input is unknown.
  OnnxFile Part(const ModelPart& part) const;

  // The number of places where the model can be simplified, and the simplification of some.
  size_t PlacesToSimplify(Simplification how) const;
  OnnxFile Simplified(Simplification how, const std::set<size_t>& places) const;

  // Writes the model with all weights. If they exceed `external_above` bytes, the large ones go to
  // PATH.data. Errors "external-data", "file-io" and those of Staging.
  void Write(const std::filesystem::path& path, uint64_t external_above = 1'000'000'000) const;

 private:
  struct State;
  explicit OnnxFile(std::shared_ptr<const State> state) : state_(std::move(state)) {}
  std::shared_ptr<const State> state_;
};

}  // namespace mlc::onnx

// tools/driver/editable_model.h - a model that mlc extract and mlc reduce edit and write in its own
// format.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "lib/ir/model_graph.h"
#include "lib/support/error.h"

namespace mlc::driver {

// Immutable: edits return another model. Functions are given by index.
class EditableModel {
 public:
  using Pointer = std::shared_ptr<const EditableModel>;
  virtual ~EditableModel() = default;

  virtual std::vector<std::string> functions() const = 0;
  virtual size_t default_function() const = 0;
  virtual int64_t operation_count() const = 0;  // without constants, in all functions
  virtual ModelGraph Graph(size_t function) const = 0;
  // Returns the value that a user means: its own name, or that of a port in the source.
  virtual std::string ValueNamed(size_t function, const std::string& name) const = 0;

  // Determines the types of values that may become inputs, as far as possible.
  virtual Pointer Typed(const std::vector<std::string>& values) const = 0;
  virtual Pointer Part(size_t function, const ModelPart& part) const = 0;
  virtual Pointer WithFunctions(const std::set<size_t>& kept) const = 0;
  virtual size_t PlacesToSimplify(size_t function, Simplification how) const = 0;
  virtual Pointer Simplified(size_t function, Simplification how,
                             const std::set<size_t>& places) const = 0;

  // Writes an .onnx, or a .mil or .mlpackage.
  virtual void Write(const std::filesystem::path& path, bool force,
                     Diagnostics& diagnostics) const = 0;
};

// Reads an ONNX model, a package, a compiled bundle or MIL text. Error "usage" for other formats.
EditableModel::Pointer ReadEditable(const std::filesystem::path& model,
                                    const std::filesystem::path& data_root,
                                    Diagnostics& diagnostics);
// Error "usage" unless the ending of `output` is that of a format in which the model can be
// written; also the errors of WritePackage and Staging that are known early.
void CheckEditableOutput(const std::filesystem::path& model, const std::filesystem::path& output,
                         bool force);

}  // namespace mlc::driver

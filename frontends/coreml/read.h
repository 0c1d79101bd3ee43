// frontends/coreml/read.h - the steps of ImportCoreml, one file each.
#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <string>

#include "lib/coreml/interface_entry.h"
#include "lib/ir/program.h"

namespace CoreML::Specification {
class ModelDescription;
namespace MILSpec {
class Program;
class Value;
class ValueType;
}  // namespace MILSpec
}  // namespace CoreML::Specification

namespace mlc {

// Weight files of one model, mapped when first used.
class WeightFiles {
 public:
  explicit WeightFiles(std::filesystem::path model_folder) : folder_(std::move(model_folder)) {}
  // The record at `offset` of a file named "@model_path/...". Error "bad-file".
  Tensor Read(const std::string& file_name, uint64_t offset, DType dtype, const Dims& dims);

 private:
  std::filesystem::path folder_;
  std::map<std::string, std::shared_ptr<const MappedFile>> files_;
};

// A type as a file declares it; dimensions that it leaves open become the symbol kOpenDim.
inline constexpr const char* kOpenDim = "?open";
Type ReadType(const CoreML::Specification::MILSpec::ValueType& type);
// A constant: immediate or in a weight file. Counts and sizes are checked against its type.
Tensor ReadValue(const CoreML::Specification::MILSpec::Value& value, WeightFiles& weights);
// Error "bad-file" for a name that MIL does not allow: letters, digits, '_' and '@', the first no
// digit and no '@'.
void CheckIdentifier(const std::string& name);
// The one string of a scalar string constant. Error "bad-file" for anything else.
std::string ReadString(const CoreML::Specification::MILSpec::Value& value);

// Functions with their ports, and the interface. Returns the symbols that the interface entry names
// for inputs.
InputDims ReadDescription(const CoreML::Specification::ModelDescription& description,
                          const CoreML::Specification::MILSpec::Program& source, Program& program);

// The operations of all functions, whose ports are there. `file` is for locations.
void ReadProgram(const CoreML::Specification::MILSpec::Program& source, const InputDims& input_dims,
                 WeightFiles& weights, const std::string& file, Program& program);

}  // namespace mlc

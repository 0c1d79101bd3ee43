// frontends/coreml/read.h - the steps of ImportCoreml; each has its own file.
#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <string>

#include "lib/ir/program.h"
#include "lib/support/mapped_file.h"

namespace mlc::schema {
class ModelDescription;
namespace mil {
class Program;
class Value;
class ValueType;
}  // namespace mil
}  // namespace mlc::schema

namespace mlc::coreml {

// The weight files of one model. Each file is mapped on first use.
class WeightFiles {
 public:
  // With `may_lack`, constants of a missing weight file become Tensor::Absent.
  explicit WeightFiles(std::filesystem::path model_folder, bool may_lack = false)
      : folder_(std::move(model_folder)), may_lack_(may_lack) {}
  // Reads the record at `offset` of a file named "@model_path/...". Throws "bad-file".
  Tensor Read(const std::string& file_name, uint64_t offset, DType dtype, const Dims& dims);

 private:
  std::filesystem::path folder_;
  bool may_lack_;
  std::map<std::string, std::shared_ptr<const MappedFile>> files_;
};

// Imports MIL text. Weights are looked up in the folder of the text and are Tensor::Absent when
// missing.
Program ImportText(const std::filesystem::path& path);
// Imports a .mlmodelc.
Program ImportBundle(const std::filesystem::path& path, Diagnostics& diagnostics);

// Sets the file of an error that has none.
void LocateIn(const std::filesystem::path& file, Error& error);
// Throws "unsupported-field" for a specification version that mlc does not support.
void CheckVersion(int specification_version);
// Warns about functions that have no outputs.
void WarnOfNothing(const Program& program, Diagnostics& diagnostics);

// The symbol that ReadType gives to dimensions without a size.
inline constexpr const char* kOpenDim = "?open";

// The name of the only function of a description that lists no functions.
inline constexpr std::string_view kMainFunction = "main";
Type ReadType(const mlc::schema::mil::ValueType& type);
// Reads a constant, either immediate or from a weight file. Throws when counts or sizes contradict
// its type.
Tensor ReadValue(const mlc::schema::mil::Value& value, WeightFiles& weights);
// Throws "bad-file" unless the name is a MIL identifier: letters, digits, '_' and '@', not
// beginning with a digit or '@'.
void CheckIdentifier(const std::string& name);
// Reads a scalar string constant. Throws "bad-file" for any other value.
std::string ReadString(const mlc::schema::mil::Value& value);

// Reads the interface and the ports of functions that already exist. Returns the symbols that the
// interface entry names for input dimensions.
InputDims ReadDescription(const mlc::schema::ModelDescription& description, Program& program);
// Sets the provenance of constants of functions that have been read, from the interface entry.
void ReadWeightSources(const mlc::schema::ModelDescription& description, Program& program);
// Reorder the ports to match the function's inputs and outputs. Throw "bad-file" when a port or a
// value has no counterpart.
void MatchInputs(Function& function);
void MatchOutputs(Function& function);
// Checks the shapes and the classifier outputs of the description against the program.
void CheckDescription(const mlc::schema::ModelDescription& description, const Program& program);

// Reads the operations of functions whose ports already exist. `file` is used for error locations.
void ReadProgram(const mlc::schema::mil::Program& source, const InputDims& input_dims,
                 WeightFiles& weights, const std::string& file, Program& program);

}  // namespace mlc::coreml

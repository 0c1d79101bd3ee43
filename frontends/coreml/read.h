// frontends/coreml/read.h - the steps of ImportCoreml, one file each.
#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <string>

#include "lib/coreml/interface_entry.h"
#include "lib/ir/program.h"

namespace mlc::schema {
class ModelDescription;
namespace mil {
class Program;
class Value;
class ValueType;
}  // namespace mil
}  // namespace mlc::schema

namespace mlc {

// Weight files of one model, mapped when first used.
class WeightFiles {
 public:
  // `may_lack`: constants of a file that is not there are Tensor::Absent.
  explicit WeightFiles(std::filesystem::path model_folder, bool may_lack = false)
      : folder_(std::move(model_folder)), may_lack_(may_lack) {}
  // The record at `offset` of a file named "@model_path/...". Error "bad-file".
  Tensor Read(const std::string& file_name, uint64_t offset, DType dtype, const Dims& dims);

 private:
  std::filesystem::path folder_;
  bool may_lack_;
  std::map<std::string, std::shared_ptr<const MappedFile>> files_;
};

// The program of MIL text; weights are sought beside it, and absent where they are not.
Program ImportText(const std::filesystem::path& path);
// The program of a .mlmodelc.
Program ImportBundle(const std::filesystem::path& path, Diagnostics& diagnostics);

// Gives an error without a file this one.
void LocateIn(const std::filesystem::path& file, Error& error);
// Error "unsupported-field" for a specification version that mlc does not know.
void CheckVersion(int specification_version);
// Warns of functions without outputs.
void WarnOfNothing(const Program& program, Diagnostics& diagnostics);

// A type as a file declares it; dimensions that it leaves open become the symbol kOpenDim.
inline constexpr const char* kOpenDim = "?open";

// The only function where a description lists none.
inline constexpr std::string_view kMainFunction = "main";
Type ReadType(const mlc::schema::mil::ValueType& type);
// A constant: immediate or in a weight file. Counts and sizes are checked against its type.
Tensor ReadValue(const mlc::schema::mil::Value& value, WeightFiles& weights);
// Error "bad-file" for a name that MIL does not allow: letters, digits, '_' and '@', the first no
// digit and no '@'.
void CheckIdentifier(const std::string& name);
// The one string of a scalar string constant. Error "bad-file" for anything else.
std::string ReadString(const mlc::schema::mil::Value& value);

// The ports of the functions, which are there, and the interface. Returns the symbols that the
// interface entry names for inputs.
InputDims ReadDescription(const mlc::schema::ModelDescription& description, Program& program);
// Put the ports into the order of the values that they describe. Error "bad-file" when the two do
// not fit together.
void MatchInputs(Function& function);
void MatchOutputs(Function& function);
// Whether the rest of the description says what the program is: shapes, classifiers.
void CheckDescription(const mlc::schema::ModelDescription& description, const Program& program);

// Functions with all their operations; their ports are there. `file` is for locations.
void ReadProgram(const mlc::schema::mil::Program& source, const InputDims& input_dims,
                 WeightFiles& weights, const std::string& file, Program& program);

}  // namespace mlc

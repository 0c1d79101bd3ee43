#include <algorithm>

#include "frontends/coreml/read.h"
#include "lib/coreml/mlmodelc_layout.h"
#include "lib/coreml/schema.h"
#include "lib/ir/text.h"
#include "lib/ops/row.h"
#include "lib/support/mapped_file.h"
#include "proto/model.pb.h"

namespace mlc::coreml {

namespace fs = std::filesystem;

namespace {

// The text lists inputs in order of their names, the description in the order of the model.
void OrderInputs(Function& function) {
  auto place = [&](const std::unique_ptr<Value>& input) {
    const std::vector<Port>& ports =
        input->type.kind == Type::Kind::kState ? function.states : function.inputs;
    auto named = [&](const Port& port) { return port.name == input->name; };
    return std::pair(&ports == &function.states,
                     std::ranges::find_if(ports, named) - ports.begin());
  };
  std::ranges::stable_sort(function.body.inputs,
                           [&](const auto& a, const auto& b) { return place(a) < place(b); });
}

// Reads the names of flexible input dimensions from the metadata of the description.
InputDims NamesOfDims(const mlc::schema::ModelDescription& description) {
  Program described(&Ops());
  if (description.functions_size() == 0) described.Add(std::string(kMainFunction));
  for (const auto& function : description.functions()) described.Add(function.name());
  return ReadDescription(description, described);
}

Program ParseFile(const fs::path& path, const InputDims& input_dims) {
  std::shared_ptr<const MappedFile> file = MappedFile::Open(path);
  std::string_view text(reinterpret_cast<const char*>(file->bytes().data()), file->bytes().size());
  WeightFiles weights(path.parent_path(), true);
  try {
    return ParseText(
        text, path.string(), Ops(),
        [&](const std::string& name, uint64_t offset, DType dtype, const Dims& dims) {
          return weights.Read(name, offset, dtype, dims);
        },
        input_dims);
  } catch (Error& error) {
    LocateIn(path, error);
    throw;
  }
}

}  // namespace

Program ImportText(const fs::path& path) { return ParseFile(path, {}); }

Program ImportBundle(const fs::path& path, Diagnostics& diagnostics) {
  fs::path data_path = path / kBundleData;
  mlc::schema::ModelDescription description;
  BundleData data;
  InputDims input_dims;
  try {
    data = ReadBundleData(MappedFile::Open(data_path)->bytes());
    if (!description.ParseFromString(data.description))
      throw Error("bad-file", "the file does not contain a valid Core ML model description");
    CheckSchema(description);
    CheckVersion(static_cast<int>(std::min<uint64_t>(data.specification_version, INT32_MAX)));
    input_dims = NamesOfDims(description);
  } catch (Error& error) {
    LocateIn(data_path, error);
    throw;
  }
  Program program = ParseFile(path / kBundleText, input_dims);
  try {
    program.interface.specification_version = static_cast<int>(data.specification_version);
    ReadDescription(description, program);
    ReadWeightSources(description, program);
    if (data.functions != program.functions.size())
      throw Error("bad-file", "coremldata.bin declares {} functions, but {} has {}", data.functions,
                  kBundleText, program.functions.size());
    for (const auto& function : program.functions) {
      OrderInputs(*function);
      MatchInputs(*function);
      MatchOutputs(*function);
    }
    CheckDescription(description, program);
  } catch (Error& error) {
    LocateIn(data_path, error);
    throw;
  }
  WarnOfNothing(program, diagnostics);
  return program;
}

}  // namespace mlc::coreml

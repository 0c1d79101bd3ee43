#include <climits>
#include <nlohmann/json.hpp>

#include "frontends/coreml/import.h"
#include "frontends/coreml/read.h"
#include "lib/coreml/package.h"
#include "lib/coreml/schema.h"
#include "lib/coreml/weight_blob.h"
#include "lib/ops/row.h"
#include "proto/model.pb.h"

namespace mlc {

namespace {

namespace fs = std::filesystem;
namespace spec = CoreML::Specification;

// A relative path that stays below the folder it is taken from.
bool StaysInside(const fs::path& path) {
  if (path.empty() || path.is_absolute()) return false;
  return std::none_of(path.begin(), path.end(), [](const fs::path& part) { return part == ".."; });
}

fs::path ModelPath(const fs::path& package) {
  fs::path manifest = package / kPackageManifest;
  std::shared_ptr<const MappedFile> file = MappedFile::Open(manifest);
  auto fail = [&](std::string text) {
    return Error("bad-file", std::move(text)).At({manifest.string(), ""});
  };
  constexpr size_t kMaxManifest = 1 << 20;
  if (file->bytes().size() > kMaxManifest) throw fail("a package manifest of more than a megabyte");
  const char* text = reinterpret_cast<const char*>(file->bytes().data());
  nlohmann::json json = nlohmann::json::parse(text, text + file->bytes().size(), nullptr, false);
  if (!json.is_object() || !json.contains("rootModelIdentifier") ||
      !json["rootModelIdentifier"].is_string() || !json.contains("itemInfoEntries") ||
      !json["itemInfoEntries"].is_object())
    throw fail("not a package manifest: it needs rootModelIdentifier and itemInfoEntries");
  const nlohmann::json& items = json["itemInfoEntries"];
  auto item = items.find(json["rootModelIdentifier"].get<std::string>());
  if (item == items.end() || !item->is_object() || !item->contains("path") ||
      !(*item)["path"].is_string())
    throw fail("the root model is not an item of the manifest");
  fs::path path = (*item)["path"].get<std::string>();
  if (!StaysInside(path))
    throw fail(fmt::format("the root model lies outside the package: \"{}\"", path.string()));
  return package / kPackageData / path;
}

void Parse(const MappedFile& file, spec::Model& model) {
  if (file.bytes().size() > INT_MAX)
    throw Error("too-large", "a model of more than 2 GiB is no protobuf")
        .At({file.path().string(), ""});
  if (!model.ParseFromArray(file.bytes().data(), static_cast<int>(file.bytes().size())))
    throw Error("bad-file", "not a Core ML model, or damaged").At({file.path().string(), ""});
  file.Release(0, file.bytes().size());
}

// A classifier's description names the results of its operation `classify`, and no others.
template <class Description>
void CheckClassifier(const Description& description, const Function& function) {
  std::string label, probabilities;
  for (const Value* output : function.body.outputs())
    if (output->def && output->def->is("classify"))
      (output->index == 0 ? label : probabilities) = output->name;
  if (description.predictedfeaturename() != label ||
      description.predictedprobabilitiesname() != probabilities)
    throw Error("bad-file",
                fmt::format("the model is described as a classifier with the outputs \"{}\" and "
                            "\"{}\", its program computes \"{}\" and \"{}\" so",
                            description.predictedfeaturename(),
                            description.predictedprobabilitiesname(), label, probabilities));
}

}  // namespace

Tensor WeightFiles::Read(const std::string& file_name, uint64_t offset, DType dtype,
                         const Dims& dims) {
  std::shared_ptr<const MappedFile>& file = files_[file_name];
  if (!file) {
    if (!file_name.starts_with(kModelPath) || !StaysInside(file_name.substr(kModelPath.size())))
      throw Error("bad-file", fmt::format("a constant lies in \"{}\"", file_name))
          .Expected(std::string(kWeightReference));
    file = MappedFile::Open(folder_ / file_name.substr(kModelPath.size()));
  }
  return ReadBlob(file, offset, dtype, dims);
}

bool IsCoremlPackage(const fs::path& path) {
  std::error_code ignored;
  return fs::is_regular_file(path / kPackageManifest, ignored);
}

Program ImportCoreml(const fs::path& path, Diagnostics& diagnostics) {
  fs::path model_path = ModelPath(path);
  Program program(&Ops());
  try {
    spec::Model model;
    Parse(*MappedFile::Open(model_path), model);
    CheckSchema(model);
    if (!model.has_mlprogram()) throw Error("unsupported-field", "the model is not an ML Program");
    int version = model.specificationversion();
    if (version < static_cast<int>(Opset::kIos15) || version > static_cast<int>(Opset::kIos26))
      throw Error("unsupported-field", fmt::format("specification version {}", version))
          .Expected(fmt::format("{} to {}", static_cast<int>(Opset::kIos15),
                                static_cast<int>(Opset::kIos26)));
    InputDims input_dims = ReadDescription(model.description(), model.mlprogram(), program);
    WeightFiles weights(model_path.parent_path());
    ReadProgram(model.mlprogram(), input_dims, weights, model_path.string(), program);
    if (model.description().functions_size() == 0)
      CheckClassifier(model.description(), *program.functions[0]);
    for (const spec::FunctionDescription& description : model.description().functions())
      for (const auto& function : program.functions)
        if (function->name == description.name()) CheckClassifier(description, *function);
  } catch (Error& error) {
    if (!error.has_location())
      error.At({model_path.string(), ""});
    else if (error.location().file.empty())
      error.At({model_path.string(), error.location().where});
    throw;
  }
  for (const auto& function : program.functions)
    if (function->body.outputs().empty())
      diagnostics.Warn(
          Error("bad-graph", fmt::format("function {} has no outputs", function->name)));
  return program;
}

}  // namespace mlc

#include <climits>

#include "frontends/coreml/coreml.h"
#include "frontends/coreml/read.h"
#include "lib/coreml/mlmodelc_layout.h"
#include "lib/coreml/package_layout.h"
#include "lib/coreml/schema.h"
#include "lib/coreml/weight_blob.h"
#include "lib/ir/text.h"
#include "lib/ops/row.h"
#include "lib/support/byte_window.h"
#include "lib/support/input_registry.h"
#include "lib/support/mapped_file.h"
#include "lib/support/regular_file.h"
#include "proto/model.pb.h"

namespace mlc::coreml {

namespace {

namespace fs = std::filesystem;
namespace spec = mlc::schema;

// The number of leading bytes within which the first word of MIL text is sought.
constexpr size_t kMostComment = 1 << 20;

void Parse(const MappedFile& file, spec::Model& model) {
  if (file.size() > INT_MAX)
    throw Error("too-large", "the model file is larger than 2 GiB, the limit of protobuf")
        .At({file.path().string(), ""});
  if (!model.ParseFromArray(file.bytes().data(), static_cast<int>(file.size())))
    throw Error("bad-file", "not a valid Core ML model").At({file.path().string(), ""});
  file.Release(0, file.size());
}

Program ImportModelFile(const fs::path& path, bool may_lack_weights, Diagnostics& diagnostics) {
  Program program(&Ops());
  try {
    spec::Model model;
    std::shared_ptr<const MappedFile> file = MappedFile::Open(path);
    ByteWindow bytes(*file);
    if (uint32_t kind = ModelKind(bytes); kind != 0 && kind != kMlProgram)
      throw Error("unsupported-field", "the model is a {}, not an ML Program", ModelKindName(kind))
          .Help(ModelKindName(kind) == "pipeline"
                    ? "extract its models with coremltools (spec.pipeline.models) and compile "
                      "those that are ML Programs"
                    : "convert the original model again with minimum_deployment_target=iOS15 or "
                      "newer, or export it to ONNX");
    Parse(*file, model);
    CheckSchema(model);
    if (!model.has_mlprogram()) throw Error("unsupported-field", "the model is not an ML Program");
    int version = model.specificationversion();
    CheckVersion(version);
    program.interface.specification_version = version;
    for (const spec::mil::FunctionEntry& entry : model.mlprogram().functions()) {
      for (const auto& other : program.functions)
        if (other->name == entry.key())
          throw Error("bad-file", "more than one function is named \"{}\"", entry.key());
      CheckIdentifier(entry.key());
      program.Add(entry.key());
    }
    InputDims input_dims = ReadDescription(model.description(), program);
    WeightFiles weights(path.parent_path(), may_lack_weights);
    ReadProgram(model.mlprogram(), input_dims, weights, path.string(), program);
    ReadWeightSources(model.description(), program);
    CheckDescription(model.description(), program);
  } catch (Error& error) {
    LocateIn(path, error);
    throw;
  }
  WarnOfNothing(program, diagnostics);
  return program;
}

// Help texts, by error id, for damaged or unsupported files that other tools wrote.
struct WayOnRow {
  std::string_view id, help;
};
constexpr std::string_view kNewer =
    "use a newer version of mlc, or convert the original model for an older deployment target";
constexpr std::string_view kDamaged =
    "the model is damaged or was not written by a Core ML tool: copy the whole folder again, or "
    "convert the original model again";
constexpr WayOnRow kWaysOn[] = {
    {"unsupported-field", kNewer},
    {"unsupported-operator", kNewer},
    {"unsupported-attribute", kNewer},
    {"file-io", "the model is a folder: copy all of its files"},
};

void AddWayOn(Error& error) {
  for (const std::string& note : error.notes())
    if (note.starts_with("help: ")) return;
  for (const WayOnRow& row : kWaysOn)
    if (row.id == error.id()) {
      error.Help(std::string(row.help));
      return;
    }
  error.Help(std::string(kDamaged));
}

}  // namespace

void LocateIn(const fs::path& file, Error& error) {
  if (!error.has_location())
    error.At({file.string(), ""});
  else if (error.location().file.empty())
    error.At({file.string(), error.location().where});
}

void CheckVersion(int version) {
  if (version < static_cast<int>(Opset::kIos15) || version > static_cast<int>(Opset::kIos26))
    throw Error("unsupported-field", "unsupported specification version {}", version)
        .Expected("{} to {}", static_cast<int>(Opset::kIos15), static_cast<int>(Opset::kIos26));
}

void WarnOfNothing(const Program& program, Diagnostics& diagnostics) {
  for (const auto& function : program.functions)
    if (function->body.outputs().empty())
      diagnostics.Warn(Error("bad-graph", "function {} has no outputs", function->name));
}

Tensor WeightFiles::Read(const std::string& file_name, uint64_t offset, DType dtype,
                         const Dims& dims) {
  std::shared_ptr<const MappedFile>& file = files_[file_name];
  if (!file) {
    if (!file_name.starts_with(kModelPath) || !StaysInside(file_name.substr(kModelPath.size())))
      throw Error("bad-file", "invalid path of a weight file: \"{}\"", file_name)
          .Expected(std::string(kWeightReference));
    fs::path path = folder_ / file_name.substr(kModelPath.size());
    std::error_code error;
    if (may_lack_ && !fs::exists(path, error) && !error)
      return Tensor::Absent(file_name, offset, dtype, dims);
    file = MappedFile::Open(path);
  }
  return ReadBlob(file, offset, dtype, dims);
}

fs::path CoremlModelPath(const fs::path& package) { return ReadPackageItems(package).model; }

CoremlFormat DetectCoreml(const fs::path& path) {
  std::error_code ignored;
  if (fs::is_directory(path, ignored)) {
    if (fs::is_regular_file(path / kPackageManifest, ignored)) return CoremlFormat::kPackage;
    if (fs::is_regular_file(path / kBundleData, ignored)) return CoremlFormat::kBundle;
    return CoremlFormat::kNone;
  }
  if (!fs::is_regular_file(path, ignored)) return CoremlFormat::kNone;
  std::shared_ptr<const MappedFile> file = MappedFile::Open(path);
  ByteWindow bytes(*file);
  if (IsMilText(AsText(bytes.Head(kMostComment)))) return CoremlFormat::kText;
  return ModelKind(bytes) != 0 ? CoremlFormat::kModel : CoremlFormat::kNone;
}

Program ImportCoreml(const fs::path& path, Diagnostics& diagnostics) {
  CoremlFormat format = DetectCoreml(path);
  if (format == CoremlFormat::kText) return ImportText(path);
  if (format == CoremlFormat::kBundle || format == CoremlFormat::kPackage)
    InputRegistry::AddFolder(path);
  try {
    if (format == CoremlFormat::kBundle) return ImportBundle(path, diagnostics);
    if (format == CoremlFormat::kModel) return ImportModelFile(path, true, diagnostics);
    return ImportModelFile(CoremlModelPath(path), false, diagnostics);
  } catch (Error& error) {
    LocateIn(path, error);
    AddWayOn(error);
    throw;
  }
}

}  // namespace mlc::coreml

#include "backends/coreml/write_mlmodelc.h"

#include <algorithm>

#include "backends/coreml/emit.h"
#include "lib/coreml/mlmodelc_layout.h"
#include "lib/support/atomic_install.h"
#include "lib/support/input_registry.h"
#include "lib/support/mapped_file.h"
#include "lib/support/regular_file.h"
#include "proto/model.pb.h"

namespace mlc::coreml {

namespace fs = std::filesystem;

Opset SpecificationOf(const Program& program) {
  auto version = static_cast<Opset>(program.interface.specification_version);
  for (const auto& function : program.functions) version = std::max(version, function->opset);
  return version;
}

namespace {

// A bundle of a model with external weights would fail to load.
void CheckWeights(const Program& program) {
  for (const auto& function : program.functions)
    ForEachOperation(*function, [](Operation* op) {
      if (op->val && !op->val.absent_file().empty())
        throw Error("bad-file", "the weight file {} is missing", op->val.absent_file())
            .Help("put the weight file beside the model, or precompile the package");
    });
}

void Put(const fs::path& path, std::string_view bytes) {
  fs::create_directories(path.parent_path());
  OutputFile file(path);
  file.Write(bytes);
  file.Close();
}

fs::path WeightsFolder() { return fs::path(kBundleWeights).parent_path(); }

// The analytics of the model that Xcode shows, without the second section: a hash of unknown
// origin.
std::string Analytics() {
  auto number = [](uint64_t value) {
    std::string bytes(8, '\0');
    for (int i = 0; i < 8; ++i) bytes[i] = static_cast<char>(value >> (8 * i) & 0xFF);
    return bytes;
  };
  auto text = [&](std::string_view s) { return number(s.size()).append(s); };
  return text("NeuralNetworkModelDetails") + number(2) + text("containsCustomLayer") + text("0") +
         text("modelDimension") + text("0");
}

// Returns whether the bundle was written by mlc and holds nothing else. No other compiler writes
// exactly these analytics.
bool IsOwnBundle(const fs::path& bundle) {
  InputRegistry::Unnoted look;
  try {
    for (const fs::directory_entry& entry : fs::recursive_directory_iterator(bundle)) {
      fs::path name = entry.path().lexically_relative(bundle);
      bool known = name == kBundleText || name == kBundleData || name == kBundleMetadata ||
                   name == kBundleAnalytics || *name.begin() == WeightsFolder();
      if (!known && !fs::is_directory(entry.symlink_status())) return false;
    }
    return fs::exists(bundle / kBundleData) &&
           AsText(MappedFile::Open(bundle / kBundleAnalytics)->bytes()) == Analytics();
  } catch (const Error&) {
    return false;
  } catch (const fs::filesystem_error&) {
    return false;
  }
}

}  // namespace

void CheckBundleTarget(const fs::path& path, bool force) {
  Staging check(path, Staging::kFolder, force);
  std::error_code error;
  if (force || !fs::exists(path, error) || IsOwnBundle(path) ||
      (fs::is_directory(path, error) && fs::is_empty(path, error)))
    return;
  throw Error("file-exists",
              "\"{}\" exists and is not a bundle written by mlc, or contains other files",
              path.string())
      .Help("choose another output, remove the existing one first, or pass option 'force'");
}

std::string BundleDataOf(const Program& program, Diagnostics& diagnostics) {
  OutputNames outputs;
  for (const auto& function : program.functions) {
    std::vector<std::string>& names = outputs.emplace_back();
    for (const Value* output : function->body.outputs()) names.push_back(output->name);
  }
  Opset version = SpecificationOf(program);
  mlc::schema::ModelDescription description;
  EmitDescription(program, version, outputs, description, diagnostics);
  description.mutable_metadata();  // present in every bundle, even if empty
  BundleData data;
  data.specification_version = static_cast<uint64_t>(version);
  data.version = BundleVersion(static_cast<int>(version));
  data.functions = program.functions.size();
  MLC_CHECK(description.SerializeToString(&data.description),
            "a description that cannot be serialized");
  return WriteBundleData(data);
}

void WriteBundle(const Program& program, const fs::path& model_folder, const fs::path& path,
                 const BundleOptions& options, Diagnostics& diagnostics) {
  CheckBundleTarget(path, options.force);
  CheckWeights(program);
  Staging staging(path, Staging::kFolder, options.force);
  fs::create_directories(staging.path());
  Put(staging.path() / kBundleText,
      BundleText(program, model_folder, options.compiler_version, options.mil_version));
  Put(staging.path() / kBundleData, BundleDataOf(program, diagnostics));
  Put(staging.path() / kBundleMetadata, BundleMetadata(program, options.class_name));
  Put(staging.path() / kBundleAnalytics, Analytics());
  fs::path weights = WeightsFolder();
  if (fs::exists(model_folder / weights)) {
    std::error_code error;
    if (options.take_weights)
      fs::rename(model_folder / weights, staging.path() / weights, error);
    else
      fs::copy(model_folder / weights, staging.path() / weights, fs::copy_options::recursive,
               error);
    if (error)
      throw Error("file-io", "cannot copy \"{}\": {}", (model_folder / weights).string(),
                  error.message());
  }
  staging.Commit();
}

}  // namespace mlc::coreml

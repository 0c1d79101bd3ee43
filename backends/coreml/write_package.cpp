#include "backends/coreml/write_package.h"

#include <google/protobuf/arena.h>

#include <algorithm>
#include <climits>

#include "backends/coreml/arena.h"
#include "backends/coreml/emit.h"
#include "backends/coreml/lower.h"
#include "backends/coreml/weight_file.h"
#include "lib/coreml/package_layout.h"
#include "lib/ir/tensor_range.h"
#include "lib/support/atomic_install.h"
#include "lib/support/hash.h"
#include "lib/support/input_registry.h"
#include "lib/support/threads.h"
#include "proto/model.pb.h"

namespace mlc::coreml {

namespace {

namespace fs = std::filesystem;
using Bytes = std::span<const std::byte>;

// Returns a UUID of version 8 (custom) derived from a hash.
std::string Uuid(const Xxh3& hash) {
  std::string hex = hash.Hex();
  hex[12] = '8';
  hex[16] = "89ab"[static_cast<unsigned char>(hex[16]) % 4];
  return fmt::format("{}-{}-{}-{}-{}", hex.substr(0, 8), hex.substr(8, 4), hex.substr(12, 4),
                     hex.substr(16, 4), hex.substr(20));
}

std::string Item(std::string_view uuid, std::string_view path, std::string_view description) {
  std::string_view name = path.substr(path.rfind('/') + 1);
  return fmt::format(
      "        \"{}\": {{\n            \"author\": \"com.apple.CoreML\",\n            "
      "\"description\": \"{}\",\n"
      "            \"name\": \"{}\",\n            \"path\": \"{}\"\n        }}",
      uuid, description, name, path);
}

// Items are sorted by identifier.
std::string ManifestText(const std::string& model_uuid, const std::string& weights_uuid) {
  std::string items = Item(model_uuid, kModelItem, "CoreML Model Specification");
  if (!weights_uuid.empty()) {
    std::string weights = Item(weights_uuid, kWeightsItem, "CoreML Model Weights");
    items = weights_uuid < model_uuid ? weights + ",\n" + items : items + ",\n" + weights;
  }
  return fmt::format(
      "{{\n    \"fileFormatVersion\": \"1.0.0\",\n    \"itemInfoEntries\": {{\n{}\n    }},\n"
      "    \"rootModelIdentifier\": \"{}\"\n}}\n",
      items, model_uuid);
}

std::string Serialized(const mlc::schema::Model& model) {
  size_t size = model.ByteSizeLong();
  if (size > INT_MAX)
    throw Error("too-large", "the program has {} bytes, but a protobuf holds at most 2 GiB", size);
  std::string bytes(size, '\0');
  auto* begin = reinterpret_cast<uint8_t*>(bytes.data());
  MLC_CHECK(model.SerializeWithCachedSizesToArray(begin) == begin + size,
            "the serialized size of the model is wrong");
  return bytes;
}

void WriteWhole(const fs::path& path, std::string_view bytes) {
  OutputFile file(path);
  file.Write(bytes);
  file.Close();
}

void ThrowTargetErrors(const Program& program, Opset target) {
  std::vector<Error> errors = TargetErrors(program, target);
  if (errors.size() == 1) throw errors[0];
  if (!errors.empty()) throw Errors(std::move(errors));
}

// Returns whether mlc wrote the model: its identifier is derived from its content, or its metadata
// names mlc.
bool IsOwnModel(const PackageItems& items) {
  std::shared_ptr<const MappedFile> file = MappedFile::Open(items.model);
  Xxh3 hash;
  hash.Update(fmt::format("{}/{}", kPackageData, kModelItem));
  hash.Update(file->bytes());
  if (items.root == Uuid(hash)) return true;
  mlc::schema::Model model;
  if (file->bytes().size() > INT_MAX ||
      !model.ParseFromArray(file->bytes().data(), static_cast<int>(file->bytes().size())))
    return false;
  for (const auto& attribute : model.mlprogram().attributes())
    for (const auto& pair : attribute.value().immediatevalue().dictionary().values())
      for (const std::string& key : pair.key().immediatevalue().tensor().strings().values())
        if (key == kMlcVersionKey) return true;
  return false;
}

// Returns whether mlc wrote the package and it holds nothing else.
bool IsOwnPackage(const fs::path& package) {
  InputRegistry::Unnoted look;
  try {
    PackageItems items = ReadPackageItems(package);
    items.paths.push_back(package / kPackageManifest);
    for (const fs::directory_entry& entry : fs::recursive_directory_iterator(package)) {
      bool listed = std::ranges::any_of(items.paths, [&](const fs::path& item) {
        return StaysInside(entry.path().lexically_relative(item));
      });
      if (!listed && !fs::is_directory(entry.symlink_status())) return false;
    }
    return IsOwnModel(items);
  } catch (const Error&) {
    return false;
  } catch (const fs::filesystem_error&) {
    return false;
  }
}

}  // namespace

void CheckPackageTarget(const fs::path& path, bool force) {
  Staging check(path, Staging::kFolder, force);
  std::error_code error;
  if (force || !fs::exists(path, error) || IsOwnPackage(path) ||
      (fs::is_directory(path, error) && fs::is_empty(path, error)))
    return;
  throw Error("file-exists",
              "\"{}\" exists and is not a package written by mlc, or contains other files",
              path.string())
      .Help("choose another output, remove the existing one first, or pass option 'force'");
}

PackageResult WritePackage(const Program& program, const fs::path& path,
                           const PackageOptions& options, Diagnostics& diagnostics) {
  int threads = options.threads > 0 ? options.threads : DefaultThreads();
  if (!InterfaceFits(program, options.target)) ThrowTargetErrors(program, options.target);
  PackageResult result;
  result.target = options.target;

  WeightPlan weights;
  std::string model_bytes = [&] {
    google::protobuf::Arena arena;  // type messages are small and numerous, and are freed together
    auto& model = *MakeOn<schema::Model>(arena);
    OutputNames outputs;
    try {
      outputs = EmitProgram(program, result.target, weights, result.operators, model);
    } catch (const Error&) {
      ThrowTargetErrors(program, result.target);  // throws this error and all others
      throw;
    }
    EmitDescription(program, result.target, outputs, *model.mutable_description(), diagnostics);
    weights.Layout(threads);
    return Serialized(model);
  }();
  result.program_bytes = model_bytes.size();
  result.weight_bytes = weights.empty() ? 0 : weights.file_bytes();

  // Files are written in path order, so that the hash of the package can be computed along the way.
  CheckPackageTarget(path, options.force);
  Staging staging(path, Staging::kFolder, options.force);
  fs::path data = staging.path() / kPackageData;
  fs::create_directories((data / kModelItem).parent_path());
  Xxh3 package;

  package.Update(fmt::format("{}/{}", kPackageData, kModelItem));
  package.Update(model_bytes);
  WriteWhole(data / kModelItem, model_bytes);
  // The identifiers are derived from the hash so far.
  std::string model_uuid = Uuid(package);

  std::string weights_uuid;
  if (!weights.empty()) {
    package.Update(fmt::format("{}/{}", kPackageData, kWeightFile));
    fs::create_directories(data / kWeightsItem);
    OutputFile file(data / kWeightFile);
    uint64_t written = 0;
    auto in_order = [&](Bytes bytes) {
      package.Update(bytes);
      written += bytes.size();
      if (options.progress)
        options.progress(StepOf("writing weights", written, weights.file_bytes(), "bytes"));
    };
    weights.Write(file.descriptor(), threads, in_order, options.passed);
    file.Close();
    weights_uuid = Uuid(package);
  }
  for (const std::string& name : weights.NotFinite()) diagnostics.Warn(NotFinite(name));
  std::string manifest = ManifestText(model_uuid, weights_uuid);
  package.Update(kPackageManifest);
  package.Update(manifest);
  WriteWhole(staging.path() / kPackageManifest, manifest);
  result.content_hash = package.Hex();
  staging.Commit();
  return result;
}

}  // namespace mlc::coreml

// lib/coreml/package_layout.h - names and paths inside a .mlpackage, shared by writer and reader.
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lib/ir/dim.h"

namespace mlc::coreml {

inline constexpr std::string_view kPackageManifest = "Manifest.json";
inline constexpr std::string_view kPackageData = "Data";
inline constexpr std::string_view kModelItem = "com.apple.CoreML/model.mlmodel";
inline constexpr std::string_view kWeightsItem = "com.apple.CoreML/weights";
inline constexpr std::string_view kWeightFile = "com.apple.CoreML/weights/weight.bin";
inline constexpr std::string_view kWeightReference = "@model_path/weights/weight.bin";
inline constexpr std::string_view kModelPath = "@model_path/";  // the folder of model.mlmodel

// The entry of buildInfo with the version of mlc that made the program.
inline constexpr std::string_view kMlcVersionKey = "mlc-version";

// The contents of a package according to its Manifest.json. Errors "file-io" and "bad-file".
struct PackageItems {
  std::string root;             // identifier of the model item
  std::filesystem::path model;  // the model file
  // All paths in the manifest: files, and folders with their contents.
  std::vector<std::filesystem::path> paths;
};
PackageItems ReadPackageItems(const std::filesystem::path& package);

// Returns whether a relative path stays below its base folder, lexically. Symbolic links are not
// checked: download caches consist of them.
bool StaysInside(const std::filesystem::path& path);

// Every file below the folder, keyed by relative path. Links are followed under their own names;
// dangling links are skipped. Error "file-io"; "resource-limit" for cyclic links and more than
// 100,000 entries.
std::map<std::string, std::filesystem::path> PackageFiles(const std::filesystem::path& package);
// XXH3-128 over every file below the folder in order of relative path, each as path and contents;
// 32 hex digits.
std::string PackageHash(const std::filesystem::path& package);

// The size of a dimension whose symbols have a single value each. Dimensions that are constant only
// because of rounding are not included, since Core ML's inference does not recognise them.
std::optional<int64_t> FixedSize(const Dim& dim, const Symbols& symbols);

}  // namespace mlc::coreml

// lib/coreml/package.h - names and places inside a .mlpackage, and small facts that writer and
// reader share.
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lib/ir/dim.h"

namespace mlc {

inline constexpr std::string_view kPackageManifest = "Manifest.json";
inline constexpr std::string_view kPackageData = "Data";
inline constexpr std::string_view kModelItem = "com.apple.CoreML/model.mlmodel";
inline constexpr std::string_view kWeightsItem = "com.apple.CoreML/weights";
inline constexpr std::string_view kWeightFile = "com.apple.CoreML/weights/weight.bin";
inline constexpr std::string_view kWeightReference = "@model_path/weights/weight.bin";
inline constexpr std::string_view kModelPath = "@model_path/";  // the folder of model.mlmodel

// Entry of a program's build_info: the version of mlc that made it.
inline constexpr std::string_view kMlcVersionKey = "mlc-version";

// What a Manifest.json says of its package. Error "file-io", "bad-file".
struct PackageItems {
  std::string root;             // identifier of the model
  std::filesystem::path model;  // the model file
  // All that the manifest lists: files, and folders with all that is in them.
  std::vector<std::filesystem::path> paths;
};
PackageItems ReadPackageItems(const std::filesystem::path& package);

// A relative path that stays below the folder it is taken from. (What a link in that folder leads
// to is the business of who made the link: caches of downloads consist of them.)
bool StaysInside(const std::filesystem::path& path);

// Every file below the folder by its path in it, as the names say: links are followed, but what
// they point to names nothing, and what leads nowhere is no file. Error "file-io";
// "resource-limit" for folders in a circle and more than 100,000 entries.
std::map<std::string, std::filesystem::path> PackageFiles(const std::filesystem::path& package);
// XXH3-128 of every file below the folder in order of their paths in it, each its path and then its
// bytes; 32 hex digits.
std::string PackageHash(const std::filesystem::path& package);

// The size of a dimension whose symbols have one value each. Rounding can leave others one value
// too, which Core ML's inference does not see.
std::optional<int64_t> FixedSize(const Dim& dim, const Symbols& symbols);

}  // namespace mlc

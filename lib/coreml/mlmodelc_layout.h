// lib/coreml/mlmodelc_layout.h - names and layouts inside a .mlmodelc, which Core ML's compiler
// makes from a package.
//
// The format is undocumented; these facts were determined from bundles made by Apple's compiler.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>

#include "lib/ir/program.h"

namespace mlc {
class ByteWindow;
}  // namespace mlc

namespace mlc::coreml {

inline constexpr std::string_view kBundleText = "model.mil";
inline constexpr std::string_view kBundleData = "coremldata.bin";
inline constexpr std::string_view kBundleMetadata = "metadata.json";
inline constexpr std::string_view kBundleAnalytics = "analytics/coremldata.bin";
inline constexpr std::string_view kBundleWeights = "weights/weight.bin";

// Entries of buildInfo that the compiler adds, and their default values.
inline constexpr std::string_view kCompilerVersionKey = "coremlc-version";
inline constexpr std::string_view kMilVersionKey = "coremlc-component-MIL";
inline constexpr std::string_view kCompilerVersion = "3500.32.1";
inline constexpr std::string_view kMilVersion = "3500.14.1";

// Kinds of models, identified by their field number in Core ML's message Model (coremltools,
// mlmodel/format/Model.proto).
inline constexpr uint32_t kMlProgram = 502;
std::string_view ModelKindName(uint32_t field);  // "neural network"; "" if unknown
// The kind of a serialised Model; 0 if the bytes are not such a message.
uint32_t ModelKind(ByteWindow& model);

// coremldata.bin, little-endian: u32 kind, u64 version[3], u64 length and "generic", u64
// specification version, 24 zero bytes, u64 length and the serialised ModelDescription, then for
// each function u32 kind and 12 zero bytes.
struct BundleData {
  uint32_t kind = kMlProgram;
  std::array<uint64_t, 3> version = {};  // the bundle's version
  uint64_t specification_version = 0;
  std::string description;
  uint64_t functions = 1;
};
std::array<uint64_t, 3> BundleVersion(int specification_version);
std::string WriteBundleData(const BundleData& data);
// Error "bad-file", with the offset, for malformed bytes; "unsupported-field" for a bundle of
// another kind.
BundleData ReadBundleData(std::span<const std::byte> bytes);

// The model.mil of a program read from the files in `model_folder`. Constants in its weight files
// remain references. Empty versions stand for those of the program, or the defaults if it has none.
std::string BundleText(const Program& program, const std::filesystem::path& model_folder,
                       std::string_view compiler_version, std::string_view mil_version);

}  // namespace mlc::coreml

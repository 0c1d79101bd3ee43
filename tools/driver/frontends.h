// tools/driver/frontends.h - the table of supported model formats, one row each.
#pragma once

#include <algorithm>
#include <filesystem>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "frontends/safetensors/tokenizer.h"
#include "lib/ir/import_options.h"
#include "lib/ir/source_facts.h"
#include "lib/networks/low_rank.h"
#include "lib/support/error.h"
#include "lib/support/library_version.h"

namespace mlc {
class ByteWindow;
}  // namespace mlc

namespace mlc::driver {

// The operators or architectures that a frontend supports.
struct Listing {
  std::string_view title;  // Markdown title of the table
  std::vector<std::string> header;
  std::vector<std::vector<std::string>> rows;
};

// A source format, or one of Core ML's own formats.
enum class Format { kSource, kPackage, kBundle, kMlmodel, kMilText };

// Members that are empty or null do not apply to the format.
struct Frontend {
  std::string_view name;  // used in messages, manifests and --frontend
  std::string_view what;  // "an ONNX model"
  Format format = Format::kSource;
  // Detects the format by content; never throws for damaged files. `file` is null for a folder.
  bool (*detect)(const std::filesystem::path& path, ByteWindow* file);
  // Throws Error or Errors. Fills in `facts` unless null.
  Program (*import)(const std::filesystem::path& path, const ImportOptions& options,
                    Diagnostics& diagnostics, SourceFacts* facts);
  std::span<const std::string_view> options;  // supported rows of ImportTable
  // Reads only the facts. Null: not supported.
  SourceFacts (*facts)(const std::filesystem::path& path,
                       const std::filesystem::path& data_root) = nullptr;
  // Returns the files of the model's tokenizer; without a tokenizer.json if the model has none.
  // Files that were read besides the model's own are appended to `read`.
  safetensors::HuggingFaceTexts (*tokenizer)(const std::filesystem::path& path,
                                             std::vector<std::filesystem::path>& read) = nullptr;
  // Reads an adapter for a model.
  networks::Adapter (*adapter)(const std::filesystem::path& path, const ImportOptions::Lora& lora,
                               Diagnostics& diagnostics) = nullptr;
  Listing (*listing)() = nullptr;
  std::vector<LibraryVersion> (*libraries)() = nullptr;

  bool IsSource() const { return format == Format::kSource; }
  bool Takes(std::string_view option) const {
    return std::ranges::find(options, option) != options.end();
  }
};

std::span<const Frontend> Frontends();
// Returns the formats for which `chosen` is true, for messages: "a GGUF file, MIL text or an ONNX
// model".
std::string FormatsText(const std::function<bool(const Frontend&)>& chosen);
// Detects the format by content. Error "unknown-format" describes the contents and suggests a
// remedy.
const Frontend& FrontendOf(const std::filesystem::path& path);
// Returns the folder that "@model_path" stands for in a Core ML model of any format.
std::filesystem::path ModelFolder(const std::filesystem::path& path);

}  // namespace mlc::driver

// tools/driver/frontends.h - the formats that mlc reads: one row each, which everything asks that has to know a format.
#pragma once

#include <algorithm>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lib/ir/import_options.h"
#include "lib/ir/source_facts.h"
#include "lib/support/error.h"
#include "lib/support/library_version.h"

namespace mlc {

class ByteWindow;

// What a frontend lowers: operators or architectures.
struct Listing {
  std::string_view title;  // Markdown to go above the table
  std::vector<std::string> header;
  std::vector<std::vector<std::string>> rows;
};

// What packages are made of, or one of Core ML's own formats.
enum class Format { kSource, kPackage, kBundle, kMlmodel, kMilText };

// Members that are empty or null do not apply to the format.
struct Frontend {
  std::string_view name;  // in messages, manifests and --frontend
  std::string_view what;  // "an ONNX model"
  Format format = Format::kSource;
  // By content; never throws for damaged files. `file` is null for a folder.
  bool (*detect)(const std::filesystem::path& path, ByteWindow* file);
  // Throws Error or Errors. `facts`, if any, are filled in.
  Program (*import)(const std::filesystem::path& path, const ImportOptions& options,
                    Diagnostics& diagnostics, SourceFacts* facts);
  std::span<const std::string_view> options;  // rows of ImportTable that it takes
  // The facts alone. Null: there are none.
  SourceFacts (*facts)(const std::filesystem::path& path,
                       const std::filesystem::path& data_root) = nullptr;
  // The model's tokenizer as a file of its own, and the ending of that file's name. `read` gets the files that it was
  // made of, beside the model's own. Empty: the model has none.
  std::string (*tokenizer)(const std::filesystem::path& path,
                           std::vector<std::filesystem::path>& read) = nullptr;
  std::string_view tokenizer_format = {};
  Listing (*listing)() = nullptr;
  std::vector<LibraryVersion> (*libraries)() = nullptr;

  bool IsSource() const { return format == Format::kSource; }
  bool Takes(std::string_view option) const {
    return std::find(options.begin(), options.end(), option) != options.end();
  }
};

std::span<const Frontend> Frontends();
// By content. Error "unknown-format" says what the file looks like and the way out.
const Frontend& FrontendOf(const std::filesystem::path& path);
// The folder that "@model_path" means in a Core ML model of any format.
std::filesystem::path ModelFolder(const std::filesystem::path& path);

}  // namespace mlc
